// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/forecast"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe"
)

// inventory counts finished objects while they are listed.
type inventory struct {
	entries map[pile]*Finished
	created map[pile]map[string]int64
}

// pile is a resource in a namespace.
type pile struct{ namespace, resource string }

// Finished are the finished objects of a resource in a namespace.
type Finished struct {
	Namespace string `json:"namespace"`
	Resource  string `json:"resource"`
	Objects   int64  `json:"objects"`
	Failed    int64  `json:"failed"`
	// Oldest is when the first of them finished.
	Oldest time.Time `json:"oldest,omitzero"`
	// Bytes is an estimate of what they take in etcd: the size in which the API server sends them.
	Bytes int64 `json:"bytes"`
	// Creators are who controls them, the most frequent first.
	Creators []Creator `json:"creators,omitempty"`
	// Names are the names of the objects.
	Names []string `json:"-"`
}

// Creator controls objects.
type Creator struct {
	// Name is "Kind/name", or "Kind" for all controllers of a kind that finishes itself, because there are many of them. It is empty for
	// objects without a controller.
	Name    string `json:"name"`
	Objects int64  `json:"objects"`
}

func newInventory() *inventory {
	return &inventory{entries: map[pile]*Finished{}, created: map[pile]map[string]int64{}}
}

// add adds the finished objects of a page.
func (i *inventory) add(table *kinds.Table, page observe.Page) {
	for at, k := range page.Facts {
		if !k.Finished {
			continue
		}
		key := pile{k.Namespace, k.Resource}
		e := i.entries[key]
		if e == nil {
			e = &Finished{Namespace: k.Namespace, Resource: k.Resource}
			i.entries[key], i.created[key] = e, map[string]int64{}
		}
		e.add(k)
		if at < len(page.Sizes) {
			e.Bytes += int64(page.Sizes[at])
		}
		i.created[key][creatorOf(table, k)]++
	}
}

func (e *Finished) add(k *facts.Compact) {
	e.Objects++
	e.Names = append(e.Names, k.Name())
	if k.Outcome == gc.OutcomeFailed {
		e.Failed++
	}
	if at := k.FinishedAt(); !at.IsZero() && (e.Oldest.IsZero() || at.Before(e.Oldest)) {
		e.Oldest = at
	}
}

// creatorOf returns the name of a Creator.
func creatorOf(table *kinds.Table, k *facts.Compact) string {
	if k.Controller == nil {
		return ""
	}
	if owner := table.ForOwner(k.Controller.GroupKind); owner != nil && owner.Finishes {
		return k.Controller.Kind
	}
	return k.Controller.String()
}

// Finished returns the finished objects of all resources that were listed, by namespace and resource.
func (w *World) Finished() []Finished {
	i := w.inventory
	out := make([]Finished, 0, len(i.entries))
	for key, e := range i.entries {
		for name, n := range i.created[key] {
			e.Creators = append(e.Creators, Creator{name, n})
		}
		slices.SortFunc(e.Creators, func(a, b Creator) int {
			return cmp.Or(cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.Name, b.Name))
		})
		slices.Sort(e.Names)
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b Finished) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Resource, b.Resource))
	})
	return out
}

// Deletions are the objects of a resource in a namespace that a rule deletes.
type Deletions struct {
	Namespace string `json:"namespace"`
	Resource  string `json:"resource"`
	// Policy is the name of the policy as kubectl takes it.
	Policy string `json:"policy"`
	Rule   string `json:"rule,omitempty"`
	// Count is how many there are.
	v1alpha1.ReviewedCount `json:",inline"`
	// HeldBy counts the held objects by the reason.
	HeldBy map[string]int64 `json:"heldBy,omitempty"`
}

// Deletions returns what all policies delete, by namespace, policy, rule and resource.
func (w *World) Deletions() []Deletions {
	type key struct{ namespace, policy, rule, resource string }
	counts, reasons := map[key]*gc.ReviewedCount{}, map[key]map[string]int64{}
	decided, now := w.decided(), w.options.Now
	for _, ns := range w.namespaces {
		for _, v := range decided.Verdicts(ns.Name, now, now.Add(forecast.Week)) {
			in, ok := forecast.DueIn(v, now)
			if !ok {
				continue
			}
			k := key{ns.Name, gc.PolicyName(v.By.Kind, v.By.Name), v.By.Rule, v.Resource}
			if counts[k] == nil {
				counts[k], reasons[k] = &gc.ReviewedCount{}, map[string]int64{}
			}
			if forecast.Add(counts[k], v, in); v.State == gc.CandidateHeld {
				reasons[k][string(v.Reason)]++
			}
		}
	}
	var out []Deletions
	for _, k := range slices.SortedFunc(maps.Keys(counts), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.policy, b.policy), cmp.Compare(a.rule, b.rule),
			cmp.Compare(a.resource, b.resource))
	}) {
		out = append(out, Deletions{k.namespace, k.resource, k.policy, k.rule, v1alpha1.ReviewedCount(*counts[k]), reasons[k]})
	}
	return out
}
