// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package scripts_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
	"github.com/winnow-dev/winnow/pkg/controller/write/status"
)

// picture is the visible state of a replica, as a script prints it.
type picture struct {
	objects map[types.NamespacedName]string // state, and in brackets the reason and who decides
	holds   map[string]hold                 // by the names that the script uses
	pending sets.Set[string]                // policies with changes that are not assessed
}

// hold is a hold without its ID.
type hold struct {
	owner, where, why string
	objects           int64
}

// look returns the picture of a replica.
func (s *script) look(r *replica) picture {
	out := picture{map[types.NamespacedName]string{}, map[string]hold{}, sets.New[string]()}
	var page gc.CandidatePage
	query := gc.CandidateQuery{Resources: sets.KeySet(r.Resources("")), Fields: fields.Everything(), Labels: labels.Everything()}
	read(r.Candidates(query, &page))
	for _, c := range page.Items {
		out.objects[types.NamespacedName{Namespace: c.Namespace, Name: c.Status.Object.Name}] = describe(&c.Status)
	}
	for _, rep := range r.reports() {
		name := nameOf(rep.Stored)
		if rep.Unassessed {
			out.pending.Insert(name)
		}
		for _, h := range rep.Holds {
			if h.Policy == "" {
				out.holds[s.alias(h.ID)] = hold{name, cmp.Or(h.Namespace, "all namespaces"), h.Why, h.Objects}
			}
		}
	}
	return out
}

// alias returns the name that the script uses for a hold.
func (s *script) alias(id string) string {
	if !slices.Contains(s.ids, id) {
		s.ids = append(s.ids, id)
	}
	return "h" + strconv.Itoa(slices.Index(s.ids, id)+1)
}

// read waits until a reading has ended.
func read(r func(func(struct{}) bool)) {
	for range r {
	}
}

// reports returns the reports of all policies, by namespace.
func (r *replica) reports() []report.Report {
	var out []report.Report
	for _, namespace := range slices.Sorted(slices.Values(r.PolicyNamespaces())) {
		read(r.ReportOn(namespace, &out))
	}
	return out
}

func nameOf(p metav1.Object) string {
	return strings.TrimPrefix(p.GetNamespace()+"/"+p.GetName(), "/")
}

func describe(s *gc.CleanupCandidateStatus) string {
	by := ""
	if s.DecidedBy != nil {
		by = ", " + s.DecidedBy.Name
	}
	return fmt.Sprintf("%s (%s%s)", s.State, s.Reason, by)
}

// since returns what has changed since an earlier picture, one line each.
func (p picture) since(before picture, s *script) []string {
	out := slices.Concat(p.objectsSince(before, s.store), p.holdsSince(before, s.known))
	for _, name := range sets.List(p.pending.Difference(before.pending)) {
		out = append(out, name+": a change is not assessed yet")
	}
	for _, name := range sets.List(before.pending.Difference(p.pending)) {
		out = append(out, name+": all changes are assessed")
	}
	return out
}

// objectsSince says which objects have changed. Objects with the same change are in one line.
func (p picture) objectsSince(before picture, s *store) []string {
	names := map[[2]string][]string{} // by namespace and change
	for o := range sets.KeySet(p.objects).Union(sets.KeySet(before.objects)) {
		was, is := cmp.Or(before.objects[o], "new"), p.objects[o]
		switch {
		case was == is:
			continue
		case is == "" && s.jobs[o] != nil:
			is = "no candidate"
		case is == "":
			is = "gone"
		}
		key := [2]string{o.Namespace, was + " -> " + is}
		names[key] = append(names[key], o.Name)
	}
	var out []string
	for key, all := range names {
		slices.Sort(all)
		out = append(out, fmt.Sprintf("%s: %s: %s", key[0], strings.Join(all, " "), key[1]))
	}
	slices.Sort(out)
	return out
}

// holdsSince says which holds have begun, changed and ended. A replica that starts finds holds that the script knows already.
func (p picture) holdsSince(before picture, script sets.Set[string]) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf("hold "+format, args...)) }
	renamed := sets.New[string]()
	for _, id := range slices.Sorted(maps.Keys(p.holds)) {
		h := p.holds[id]
		was, known := before.holds[id]
		former := before.sameOwner(h, p)
		what := fmt.Sprintf("%d objects in %s, because %s", h.objects, h.where, h.why)
		switch {
		case known && was.owner != h.owner:
			say("%s passes from %s to %s, with %d objects in %s", id, was.owner, h.owner, h.objects, h.where)
		case known && was.objects != h.objects:
			say("%s has %d objects, not %d", id, h.objects, was.objects)
		case known:
		case former != "":
			renamed.Insert(former)
			say("%s of %s is %s from now on, with %s", former, h.owner, id, what)
		case script.Has(id):
			say("%s is found: %s holds %s", id, h.owner, what)
		default:
			say("%s begins: %s holds %s", id, h.owner, what)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(before.holds)) {
		if _, ok := p.holds[id]; !ok && !renamed.Has(id) {
			say("%s of %s ends", id, before.holds[id].owner)
		}
	}
	return out
}

// sameOwner returns the hold of the same owner in the same namespace, or in all, that is no longer in the later picture.
func (p picture) sameOwner(h hold, later picture) string {
	for _, id := range slices.Sorted(maps.Keys(p.holds)) {
		old := p.holds[id]
		if _, still := later.holds[id]; !still && old.owner == h.owner && old.where == h.where {
			return id
		}
	}
	return ""
}

// perReplica returns the changes of all replicas, each after who saw it.
func perReplica(changes map[string][]string) []string {
	var out []string
	for _, role := range roles {
		for _, change := range changes[role] {
			switch shared := slices.Contains(changes["leader"], change) && slices.Contains(changes["follower"], change); {
			case !shared:
				out = append(out, role+": "+change)
			case role == "leader":
				out = append(out, "both: "+change)
			}
		}
	}
	return out
}

// writeStatus writes the statuses that changed, as pkg/controller/write/status does.
func (s *script) writeStatus() {
	for _, r := range s.leader().reports() {
		name := types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
		is := status.Of(&r, metav1.NewTime(s.now))
		if p := s.policies[name]; p != nil && !apiequality.Semantic.DeepEqual(*statusOf(p), is) {
			s.setStatus(name, is)
			s.said = append(s.said, "status of "+nameOf(r.Stored)+": "+s.describeStatus(&is))
		}
	}
}

func (s *script) describeStatus(st *gc.CleanupPolicyStatus) string {
	out := fmt.Sprintf("observedGeneration %d, candidates %d, due %d, held %d, deleted %d",
		st.ObservedGeneration, st.Candidates, st.Due, st.Held, st.Deleted)
	if ready := meta.FindStatusCondition(st.Conditions, gc.ConditionReady); ready != nil {
		out += fmt.Sprintf(", Ready %s (%s)", ready.Status, ready.Reason)
	}
	for _, h := range st.Holds {
		of := ""
		if h.Policy != "" {
			of = " of " + h.Policy
		}
		out += fmt.Sprintf(", hold %s%s (%d)", s.alias(h.ID), of, h.Objects)
	}
	return out
}
