// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
)

// reviewed is a CleanupReview or a ClusterCleanupReview.
type reviewed interface {
	runtime.Object
	metav1.Object
}

// reviewPrinter prints a review as a plan.
type reviewPrinter struct {
	io.Writer
	wide bool
	now  time.Time
}

// printReview prints a review as a plan.
func printReview(w io.Writer, review reviewed, wide bool, now time.Time) error {
	p := reviewPrinter{w, wide, now}
	switch r := review.(type) {
	case *v1alpha1.CleanupReview:
		return p.review(fmt.Sprintf("Policy %s in namespace %s", r.Name, r.Namespace), &r.Status)
	case *v1alpha1.ClusterCleanupReview:
		return p.clusterReview(r)
	}
	return fmt.Errorf("cannot print %T", review)
}

func (p reviewPrinter) review(title string, s *v1alpha1.CleanupReviewStatus) error {
	if err := p.deletions(title, s); err != nil {
		return err
	}
	if err := p.sample(s); err != nil {
		return err
	}
	p.totals(s)
	if len(s.HiddenResources) > 0 {
		fmt.Fprintf(p, "Not counted, because you may not list them: %s\n", output.OneLine(strings.Join(s.HiddenResources, ", ")))
	}
	p.incomplete(s)
	return nil
}

func (p reviewPrinter) clusterReview(r *v1alpha1.ClusterCleanupReview) error {
	s := &r.Status
	for _, part := range []func() error{
		func() error { return p.deletions("Cluster policy "+r.Name, &s.CleanupReviewStatus) },
		func() error { return p.namespaces(s) },
		func() error { return p.ceilings(s) },
		func() error { return p.holds(s) },
		func() error { return p.sample(&s.CleanupReviewStatus) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	p.totals(&s.CleanupReviewStatus)
	if len(s.HiddenResources) > 0 {
		fmt.Fprintf(p, "Counted only in namespaces in which you may list them: %s\n", output.OneLine(strings.Join(s.HiddenResources, ", ")))
	}
	p.incomplete(&s.CleanupReviewStatus)
	return nil
}

// table prints a table below a heading. more is what the table leaves out.
func (p reviewPrinter) table(heading string, t *output.Table, more int64) error {
	if len(t.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(p)
	output.Heading(p.Writer, "%s", heading)
	if err := t.Print(p, p.wide); err != nil {
		return err
	}
	if more > 0 {
		fmt.Fprintf(p, "and %d more\n", more)
	}
	return nil
}

func (p reviewPrinter) deletions(title string, s *v1alpha1.CleanupReviewStatus) error {
	if len(s.Deletions) == 0 {
		fmt.Fprintf(p, "%s would delete nothing within a week.\n", output.OneLine(title))
		return nil
	}
	output.Heading(p.Writer, "%s would delete", title)
	t := output.NewTable("Resource", "Rule", "Now", "1h", "1d", "7d", "Held")
	for _, d := range s.Deletions {
		t.Add(d.Resource, ruleOf(d.Rule), d.Now, d.Hour, d.Day, d.Week, d.Held)
	}
	return t.Print(p, p.wide)
}

// ruleOf returns a rule for a table.
func ruleOf(rule string) string { return cmp.Or(rule, "(ceiling)") }

func (p reviewPrinter) namespaces(s *v1alpha1.ClusterCleanupReviewStatus) error {
	t := output.NewTable("Namespace", "Now", "1h", "1d", "7d", "Held", "Now without", "7d without")
	for _, ns := range s.Namespaces {
		with, without := ns.WithDraft, ns.WithoutDraft
		t.Add(ns.Namespace, with.Now, with.Hour, with.Day, with.Week, with.Held, without.Now, without.Week)
	}
	return p.table("All policies together would delete", t, s.UnlistedNamespaces)
}

// ceilings prints the ceilings for all namespaces together, and for the namespaces that have more than their fair share.
func (p reviewPrinter) ceilings(s *v1alpha1.ClusterCleanupReviewStatus) error {
	t := output.NewTable("Ceiling", "Namespace", "Objects", "Keeps", "Over")
	add := func(namespace string, all []v1alpha1.CeilingStatus) {
		for _, c := range all {
			t.Add(c.Resource, namespace, c.Objects, c.MaxObjects, c.Over)
		}
	}
	add("(all)", s.Ceilings)
	for _, ns := range s.Namespaces {
		add(ns.Namespace, ns.Ceilings)
	}
	return p.table("Its ceilings", t, 0)
}

func (p reviewPrinter) holds(s *v1alpha1.ClusterCleanupReviewStatus) error {
	t := output.NewTable("Namespace", "Objects", "Why")
	for _, h := range s.Holds {
		t.Add(cmp.Or(h.Namespace, "(all)"), h.Objects, h.Why)
	}
	return p.table("These would wait for approval", t, s.UnlistedHolds)
}

func (p reviewPrinter) sample(s *v1alpha1.CleanupReviewStatus) error {
	t := output.NewTable("Object", "Rule", "Due", "Reason")
	for _, object := range s.Sample {
		due, namespace := "now", ""
		if object.DueTime != nil {
			due = output.When(object.DueTime.Time, p.now)
		}
		if object.Namespace != "" {
			namespace = object.Namespace + " "
		}
		t.Add(namespace+object.Resource+"/"+object.Name, ruleOf(object.Rule), due, object.Reason)
	}
	return p.table("The first of them", t, 0)
}

func (p reviewPrinter) totals(s *v1alpha1.CleanupReviewStatus) {
	with, without := s.WithDraft, s.WithoutDraft
	fmt.Fprintf(p, "\nAll policies together delete %d now and %d within a week. Without this policy: %d and %d.\n",
		with.Now, with.Week, without.Now, without.Week)
	switch {
	case len(s.HeldBy) > 0:
		printHeld(p, s.HeldBy, true)
	case with.Held > 0: // The server is older than this plugin.
		fmt.Fprintf(p, "Due within a week, but something keeps them: %d.\n", with.Held)
	}
}

func (p reviewPrinter) incomplete(s *v1alpha1.CleanupReviewStatus) {
	if !s.Complete {
		fmt.Fprintln(p, "There are more objects than were counted, so every number is a minimum.")
	}
}
