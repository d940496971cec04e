// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"embed"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// CaseNow is the time of all cases.
var CaseNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Case is a world with the expected answers, written by hand. hack/semantics-docs generates docs/semantics.md from the same files.
type Case struct {
	// Name is unique, and says what the case shows.
	Name  string
	World *World
	// Answers are expected for all objects.
	Answers map[types.UID]Answer
	// Previews are expected for each Preview policy that would decide for an object.
	Previews map[PolicyRef]map[types.UID]Answer
	// Propagations are expected for the objects that have one in the file.
	Propagations map[types.UID]metav1.DeletionPropagation
	// Before is the world before the change that the case is about; nil if it is about no change.
	Before *World
	// NewlyDue is how many objects the change makes due.
	NewlyDue map[PolicyInNamespace]int
	// Order is the expected order of deletion, for the namespaces that have one in the file.
	Order map[string][]types.UID
}

//go:embed testdata/cases/*.yaml
var caseFiles embed.FS

// chapter is a file of cases. Its texts for readers are not used here.
type chapter struct {
	Chapter, Text string
	Sentences     []struct {
		Title, Text string
		Examples    []example
	}
}

type example struct {
	Name, Text string
	// Given are manifests of namespaces, quotas and policies. A namespace that is not among them has no labels.
	Given string
	// Before are the manifests that Given replaced, if the example is about a change.
	Before string
	// Refused is set if the API server would refuse the manifests.
	Refused bool
	// Unobserved are namespaces that have not been observed.
	Unobserved []string
	// CronJobs are the active Jobs of each CronJob, by name.
	CronJobs map[string][]string
	// LastScheduled is status.lastScheduleTime of CronJobs, by name.
	LastScheduled map[string]string
	Objects       []object
	// MakesDue is by "policy in namespace", Order by namespace.
	MakesDue map[string]int
	Order    map[string][]string
}

// object is one Job or Pod, or Count of them with numbered names. Times are relative to CaseNow: "2h ago", "in 5m".
type object struct {
	Job, Pod, Namespace     string
	ConfigMap               string
	Unused                  string // When a ConfigMap became unused; empty if something refers to it.
	ReferrersUnknown        bool
	Matched                 string // Since when all rules with after: Matched match that do; since now if empty.
	Count                   int
	Finished                string // Empty while it runs; after "first seen", when Winnow saw it finished that does not say when.
	Outcome                 gc.Outcome
	Created                 string // A day ago if empty.
	Started                 string // Of an object that runs.
	Suspended               bool   // Of a Job. It changes no answer: what counts is Started.
	ActiveDeadlineSeconds   *int64
	Labels, Annotations     map[string]string
	TTLSecondsAfterFinished *int64
	Controller              string // Kind/name; the group is the usual one for the kind.
	Scheduled               string // For when its CronJob scheduled it.
	Finalizers              []string
	Terminating, Recreated  bool
	Applied                 string // The tool that applied it.
	PodFailurePolicy        string // The action of a rule of a Job's podFailurePolicy.
	ManagedBy               string // spec.managedBy of a Job.
	Announced, Named        string // When notice was given, and the time that it names.
	Acknowledged            string // When the receiver of notifications acknowledged the notice.

	Answer, By, Due string
	Propagation     metav1.DeletionPropagation
	Why             string
	Previews        map[string]expected
}

// expected is an answer in a Preview.
type expected struct{ Answer, By, Due string }

// Cases returns the cases of all files.
func Cases() ([]Case, error) {
	entries, err := caseFiles.ReadDir("testdata/cases")
	if err != nil {
		return nil, err
	}
	var out []Case
	for _, entry := range entries {
		data, err := caseFiles.ReadFile("testdata/cases/" + entry.Name())
		if err != nil {
			return nil, err
		}
		var ch chapter
		if err := yaml.UnmarshalStrict(data, &ch); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		for _, s := range ch.Sentences {
			for _, e := range s.Examples {
				c, err := e.build()
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", entry.Name(), e.Name, err)
				}
				out = append(out, c)
			}
		}
	}
	return out, nil
}

func (e *example) build() (Case, error) {
	c := Case{
		Name: e.Name, Answers: map[types.UID]Answer{}, Previews: map[PolicyRef]map[types.UID]Answer{},
		Propagations: map[types.UID]metav1.DeletionPropagation{}, Order: map[string][]types.UID{},
	}
	var err error
	if c.World, err = e.world(e.Given); err != nil {
		return c, err
	}
	if e.Before != "" {
		c.NewlyDue = map[PolicyInNamespace]int{}
		if c.Before, err = e.world(e.Before); err != nil {
			return c, err
		}
	}
	for _, o := range e.Objects {
		for _, f := range o.facts() {
			if err := c.expect(f, &o); err != nil {
				return c, fmt.Errorf("%s: %w", f.Name, err)
			}
		}
	}
	for key, n := range e.MakesDue {
		policy, namespace, ok := strings.Cut(key, " in ")
		if !ok {
			return c, fmt.Errorf("makesDue: %q is not like %q", key, "policy in namespace")
		}
		c.NewlyDue[PolicyInNamespace{refOf(policy), namespace}] = n
	}
	for namespace, names := range e.Order {
		c.Order[namespace] = uids(names)
	}
	return c, nil
}

func (c *Case) expect(f *lifecycle.Fact, o *object) error {
	if _, twice := c.Answers[f.UID]; twice {
		return fmt.Errorf("names are unique in an example")
	}
	var err error
	if c.Answers[f.UID], err = (expected{o.Answer, o.By, o.Due}).answer(); err != nil {
		return err
	}
	if o.Propagation != "" {
		c.Propagations[f.UID] = o.Propagation
	}
	for policy, want := range o.Previews {
		ref := refOf(policy)
		if c.Previews[ref] == nil {
			c.Previews[ref] = map[types.UID]Answer{}
		}
		if c.Previews[ref][f.UID], err = want.answer(); err != nil {
			return err
		}
	}
	return nil
}

func (e expected) answer() (Answer, error) {
	action, reason, _ := strings.Cut(e.Answer, " ")
	out := Answer{Action: action, Reason: reason, By: e.By}
	if e.Due == "" {
		return out, nil
	}
	at, err := moments(e.Due)
	out.At = at
	return out, err
}

// moments parses "2h ago", "in 5m" and "now".
func moments(s string) (time.Time, error) {
	ago, past := strings.CutSuffix(s, " ago")
	in, future := strings.CutPrefix(s, "in ")
	switch {
	case past:
		d, err := gc.ParseDuration(ago)
		return CaseNow.Add(-d), err
	case future:
		d, err := gc.ParseDuration(in)
		return CaseNow.Add(d), err
	case s == "now":
		return CaseNow, nil
	}
	return time.Time{}, fmt.Errorf(`%q is not a time like "2h ago", "now" or "in 5m"`, s)
}

func refOf(policy string) PolicyRef {
	namespace, name, ok := strings.Cut(policy, "/")
	if !ok {
		return PolicyRef{Name: policy}
	}
	return PolicyRef{namespace, name}
}

func uids(names []string) []types.UID {
	var out []types.UID
	for _, name := range names {
		out = append(out, uidOf(name))
	}
	return out
}

func uidOf(name string) types.UID { return types.UID("uid-" + name) }
