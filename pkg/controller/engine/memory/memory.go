// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory is the first stage of the engine: what there is. It has the objects, namespaces, policies, owners and quotas that were
// observed, the last decision for each object, and which objects are touched: these must be settled again.
package memory

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/expiry"
	"github.com/winnow-dev/winnow/pkg/controller/rules/turns"
	"github.com/winnow-dev/winnow/pkg/windows"
)

// Memory has everything that was observed, and what the engine derived from it.
type Memory struct {
	Config Config
	// Table is the table of the resources that are known.
	Table     *kinds.Table
	Protected sets.Set[string]
	LastRun   time.Time // when a controller was last seen to run before this one
	Effects   Effects

	Records         index
	Dependents      map[types.UID]*index // by the UID of their controller
	CronJobs        map[types.UID]*lifecycle.CronJob
	CronJobsListed  bool // CronJobs contains all of them
	Namespaces      map[string]*Namespace
	ClusterPolicies []*PolicyState // by name
	Quotas          Quotas
	// OpenLists are the lists that have begun and not ended, by resource.
	OpenLists map[string]*List

	Touched touched
	Queue   turns.FairQueue[*Record] // of records that are ready to be deleted
	// Windows are the namespaces whose windows open or close at a known time.
	Windows  expiry.Heap[*Namespace]
	calendar windows.Calendar
	// Pending are the namespaces with changes that are not assessed yet.
	Pending sets.Set[*Namespace]
	// Writes numbers the states of policies, in the order in which they were observed.
	Writes uint64
	// Counts are the numbers of records for metrics. A number that became zero stays.
	Counts map[Counted]int
	// DeadlineEnds counts the deadlines that Winnow has set by their resource and EndMinute.
	DeadlineEnds map[string]map[int64]int

	// Unwritten are the namespaces whose reports may have changed; "" stands for the cluster policies.
	Unwritten sets.Set[string]
	// Urgent are the namespaces with a new spec of a policy that is not reported yet, numbered by urgentCount.
	Urgent      map[string]uint64
	urgentCount uint64
	// Following is set if this replica does not lead, so that it writes no reports.
	Following bool
	// Terms is how often this replica has begun to follow.
	Terms int
}

// New returns an empty memory.
func New(c Config) *Memory {
	return &Memory{
		Config:       c,
		Table:        kinds.Builtin(),
		Protected:    sets.New(alwaysProtected...).Insert(c.Protected...),
		Dependents:   map[types.UID]*index{},
		CronJobs:     map[types.UID]*lifecycle.CronJob{},
		Namespaces:   map[string]*Namespace{},
		Quotas:       NewQuotas(),
		OpenLists:    map[string]*List{},
		Touched:      newTouched(),
		Pending:      sets.New[*Namespace](),
		Counts:       map[Counted]int{},
		DeadlineEnds: map[string]map[int64]int{},
		Unwritten:    sets.New[string](),
		Urgent:       map[string]uint64{},
	}
}
