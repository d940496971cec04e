// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package unused

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// State says why an object is in a report.
type State string

const (
	// Unused says that nothing uses the object.
	Unused State = "Unused"
	// Referenced says of a claim that no Pod uses it, but something refers to it or keeps it.
	Referenced State = "Referenced"
	// Unknown says that nothing uses the object that the caller may list, and that something else may. It counts as used.
	Unknown State = "Unknown"
	// used objects are not in the report.
	used State = ""
)

// Object is one object of a report.
type Object struct {
	Resource  string    `json:"resource"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	State     State     `json:"state"`
	Created   time.Time `json:"created"`
	Claim     *Claim    `json:"claim,omitempty"`
	// UsedBy are the first of Users that refer to the object or keep it.
	UsedBy []string `json:"usedBy,omitempty"`
	Users  int      `json:"users,omitempty"`
}

// Claim is what a report says of a PersistentVolumeClaim.
type Claim struct {
	Status       string `json:"status,omitempty"`
	StorageClass string `json:"storageClass,omitempty"`
	// Requested and Capacity are bytes. Capacity is 0 as long as there is no volume.
	Requested int64 `json:"requested"`
	Capacity  int64 `json:"capacity"`
	// NoPodSince is since when no Pod uses the claim, as its condition Unused says. It is not set if Kubernetes does not say so.
	NoPodSince time.Time `json:"noPodSince,omitzero"`
}

// Total is what the unused claims of a namespace and storage class have together.
type Total struct {
	Namespace    string `json:"namespace"`
	StorageClass string `json:"storageClass,omitempty"`
	Claims       int    `json:"claims"`
	Requested    int64  `json:"requested"`
	Capacity     int64  `json:"capacity"`
}

// Report is what was found.
type Report struct {
	Time time.Time `json:"time"`
	// Namespace is empty for all namespaces.
	Namespace string `json:"namespace,omitempty"`
	// OlderThan is how long nothing must have used the objects.
	OlderThan string   `json:"olderThan,omitempty"`
	Objects   []Object `json:"objects"`
	Totals    []Total  `json:"totals"`
	// Undated counts the claims that are left out because it is not known since when no Pod uses them.
	Undated int `json:"undated,omitempty"`
	// Differences say where Kubernetes and this report do not agree. These claims count as used.
	Differences []string `json:"differences,omitempty"`
	// Incomplete says what could not be read.
	Incomplete []Gap `json:"incomplete,omitempty"`
}

// Report returns what has not been used for at least this time. ServiceAccounts and Services do not say since when they are not used, so of
// them it counts since when they exist.
func (f *Finder) Report(now time.Time, olderThan time.Duration) *Report {
	r := &Report{Time: now, Objects: []Object{}, Totals: []Total{}}
	for _, s := range f.subjects {
		state, difference := f.state(s)
		if difference != "" {
			r.Differences = append(r.Differences, s.Namespace+"/"+s.Name+": "+difference)
		}
		switch {
		case state == used:
		case olderThan > 0 && !s.olderThan(now, olderThan):
			if s.undated() && now.Sub(s.Created) >= olderThan {
				r.Undated++
			}
		default:
			o := s.Object
			o.State = state
			r.Objects = append(r.Objects, o)
		}
	}
	slices.SortFunc(r.Objects, compare)
	slices.Sort(r.Differences)
	r.Totals = append(r.Totals, totals(r.Objects)...)
	r.Incomplete = f.gaps
	for i := range r.Incomplete {
		slices.Sort(r.Incomplete[i].Resources)
	}
	slices.SortFunc(r.Incomplete, func(a, b Gap) int { return cmp.Or(cmp.Compare(a.Where, b.Where), cmp.Compare(a.Why, b.Why)) })
	return r
}

func compare(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// state returns what becomes of a subject in the report. If Kubernetes says something else of a claim, difference says so.
func (f *Finder) state(s *subject) (state State, difference string) {
	blind := f.blind&s.to != 0
	switch {
	case s.pod != "":
		if s.said != nil && s.said.Status == corev1.ConditionTrue {
			difference = fmt.Sprintf("its condition Unused says that no Pod uses it since %s, but %s does",
				s.Claim.NoPodSince.Format(time.RFC3339), s.pod)
		}
		return used, difference
	case s.said != nil && s.said.Status == corev1.ConditionFalse:
		if !blind {
			difference = "its condition Unused says that a Pod uses it, but no Pod names it"
		}
		return used, difference
	case len(s.UsedBy) > 0:
		if s.Claim == nil {
			return used, ""
		}
		return Referenced, ""
	case blind:
		return Unknown, ""
	}
	return Unused, ""
}

// undated reports whether it is not known since when no Pod uses a claim.
func (o *Object) undated() bool { return o.Claim != nil && o.Claim.NoPodSince.IsZero() }

func (o *Object) olderThan(now time.Time, age time.Duration) bool {
	since := o.Created
	if o.Claim != nil {
		since = o.Claim.NoPodSince
	}
	return !o.undated() && now.Sub(since) >= age
}

// totals returns the sums of unused claims, by namespace and storage class.
func totals(all []Object) (out []Total) {
	at := map[[2]string]int{}
	for _, o := range all {
		if o.Claim == nil || o.State != Unused {
			continue
		}
		key := [2]string{o.Namespace, o.Claim.StorageClass}
		i, ok := at[key]
		if !ok {
			i, at[key] = len(out), len(out)
			out = append(out, Total{Namespace: o.Namespace, StorageClass: o.Claim.StorageClass})
		}
		t := &out[i]
		t.Claims, t.Requested, t.Capacity = t.Claims+1, t.Requested+o.Claim.Requested, t.Capacity+o.Claim.Capacity
	}
	slices.SortFunc(out, func(a, b Total) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.StorageClass, b.StorageClass))
	})
	return out
}
