// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package scripts_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// replica is one replica of the controller, and how far it has observed the store.
type replica struct {
	*engine.Engine
	observed, told    int // events, of assessments too
	lagging, unlisted bool
	listed            map[string]memory.Covering // by resource and namespace
	seen              picture                    // after the command before
}

// startReplica starts a replica as pkg/controller/cleanup does: it follows, and lists everything.
func startReplica(s *store, c memory.Config, unlisted bool) *replica {
	s.started++
	c.Identity = fmt.Sprint("replica-", s.started)
	r := &replica{Engine: engine.New(c), unlisted: unlisted, observed: len(s.events), told: len(s.told), listed: map[string]memory.Covering{}}
	r.Follow()
	r.DoubtClocks()
	version := s.next()
	for _, list := range []func(){
		func() { s.listAssessments(r.Engine) },
		func() { r.ReplaceCronJobs(nil) },
		func() { r.ReplaceNamespaces(slices.Collect(maps.Values(s.namespaces)), version, s.now) },
		func() { r.ReplacePolicies(freshness.Policies, s.listPolicies(freshness.Policies), version, s.now) },
		func() {
			r.ReplacePolicies(freshness.ClusterPolicies, s.listPolicies(freshness.ClusterPolicies), version, s.now)
		},
	} {
		r.Turn(list, s.now)
	}
	return r
}

// catchUp lets the replica observe everything, unless it lags, and settle it.
func (r *replica) catchUp(s *store) {
	for !r.lagging && r.observed < len(s.events) {
		r.observe(s)
		r.list(s)
	}
	for ; !r.lagging && r.told < len(s.told); r.told++ {
		r.Turn(func() { s.told[r.told](r.Engine, s.now) }, s.now)
	}
	r.Turn(func() { r.CompareClocks(s.now, s.now, s.now) }, s.now)
	for more := true; more; {
		more = r.list(s)
	}
	for r.Step(s.now) {
	}
}

// observe lets the replica observe the next event, and settle it: a replica that is behind takes two changes for one if the second undoes
// the first.
func (r *replica) observe(s *store) {
	r.Turn(func() { s.events[r.observed](r.Engine, s.now) }, s.now)
	for r.observed++; r.Step(s.now); {
	}
}

// list lists the objects that the replica must observe and has not listed yet, unless it is unlisted. It reports whether there were any.
func (r *replica) list(s *store) (listed bool) {
	for resource, namespaces := range r.Coverage() {
		for namespace, covering := range namespaces {
			key := resource + " in " + namespace
			if r.unlisted || r.listed[key] == covering {
				continue
			}
			listed, r.listed[key] = true, covering
			r.merge(s, resource, namespace)
		}
	}
	return listed
}

func (r *replica) merge(s *store, resource, namespace string) {
	var all []*facts.Compact
	for name, f := range s.jobs {
		if f.Resource == resource && name.Namespace == namespace {
			all = append(all, facts.Compress(f))
		}
	}
	slices.SortFunc(all, func(a, b *facts.Compact) int { return strings.Compare(a.Name(), b.Name()) }) // Each run deletes in the same order.
	m := r.BeginMerge(resource, namespace)
	r.Turn(func() { m.Add(all, s.now) }, s.now)
	r.Turn(func() { m.End(true); r.Reached[resource] = s.version }, s.now)
}

// expire decides for the objects whose timers have ended.
func (r *replica) expire(now time.Time) {
	r.CompareClocks(now, now, now)
	for more := true; more; {
		r.Turn(func() { more = r.Expire(now) }, now)
	}
}

// leader returns the replica that leads.
func (s *script) leader() *replica {
	leader := s.replicas["leader"]
	if leader == nil {
		s.Fatalf(s.T, "no leader runs")
	}
	return leader
}

// delete deletes as pkg/controller/cleanup does. Each DELETE is answered at once.
func (s *script) delete() {
	leader, most := s.leader(), len(s.store.jobs)
	if len(s.CmdArgs) > 0 {
		most = s.number(s.arg(0))
	}
	leader.catchUp(s.store)
	if !leader.ConfirmFresh(s.consistentRead(), s.now) {
		s.said = append(s.said, "leader: deletes nothing, because it has not observed all policies and namespaces")
		return
	}
	for range most {
		o, ok := leader.Take(s.now)
		if !ok {
			break
		}
		result := deletion.Result{Outcome: deletion.NotFound}
		if name := (types.NamespacedName{Namespace: o.Fact.Namespace, Name: o.Fact.Name}); s.store.jobs[name] != nil {
			s.said = append(s.said, "leader: DELETE "+name.String())
			s.deleteJob(name)
			result.Outcome = deletion.Accepted
		}
		leader.Turn(func() { leader.Done(o, result, s.now) }, s.now)
	}
	if slices.Sort(s.said); len(s.said) == 0 {
		s.said = append(s.said, "leader: deletes nothing")
	}
}
