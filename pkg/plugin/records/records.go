// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package records reads the records of deleted objects from the server, and says in words what they contain.
package records

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/humantime"
	"github.com/winnow-dev/winnow/pkg/plugin/explain"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
)

// perPage is how many records are read at once.
const perPage = 500

// Query says which records to read.
type Query struct {
	// Namespace is empty for all namespaces.
	Namespace string
	Fields    fields.Selector
	// Since is the earliest time of a deletion; zero for any.
	Since time.Time
	// Limit is how many to read at most; 0 for all.
	Limit int
}

// Read reads records page by page, in the order of the server: by namespace, then the newest first. It reports whether there are more.
func Read(ctx context.Context, client gcclient.CleanupRecordsGetter, q Query) (found []v1alpha1.CleanupRecord, more bool, err error) {
	selector := q.Fields.String()
	if !q.Since.IsZero() {
		since := fields.OneTermEqualSelector(gc.FieldSince, q.Since.UTC().Format(time.RFC3339Nano)).String()
		selector = strings.TrimPrefix(selector+","+since, ",")
	}
	for options := (metav1.ListOptions{FieldSelector: selector, Limit: perPage}); ; {
		page, err := client.CleanupRecords(q.Namespace).List(ctx, options)
		if err != nil {
			return nil, false, fmt.Errorf("listing cleanuprecords %s: %w", gc.InNamespace(q.Namespace), err)
		}
		for i := range page.Items {
			if q.Limit > 0 && len(found) == q.Limit {
				return found, true, nil
			}
			found = append(found, page.Items[i])
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return found, false, nil
		}
	}
}

// LastOf returns the record of the last deletion of an object of this name; nil if there is none that the caller may see.
func LastOf(ctx context.Context, client gcclient.CleanupRecordsGetter, o local.Object) (*v1alpha1.CleanupRecord, error) {
	found, _, err := Read(ctx, client, Query{
		Namespace: o.Namespace, Limit: 1, Fields: fields.OneTermEqualSelector(gc.FieldObject, o.Resource+"/"+o.Name),
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// SortNewest sorts records of any namespaces, the newest first.
func SortNewest(found []v1alpha1.CleanupRecord) {
	slices.SortStableFunc(found, func(a, b v1alpha1.CleanupRecord) int {
		return cmp.Or(b.Status.DeletionTime.Compare(a.Status.DeletionTime.Time), cmp.Compare(a.Namespace, b.Namespace))
	})
}

// reasons are the reasons of deletions in words.
var reasons = map[string]string{
	string(policy.ReasonExpired):      "its TTL had ended",
	string(policy.ReasonOverCapacity): "over capacity, because newer objects filled the limit of the rule",
	string(policy.ReasonOverCeiling):  "over a ceiling, because newer objects filled the share of the namespace",
}

// Words returns a record as title, facts and sentences.
func Words(r *v1alpha1.CleanupRecord, now time.Time) *explain.Words {
	s := &r.Status
	by := gc.PolicyName(s.Policy.Kind, s.Policy.Name)
	if s.Policy.Rule != "" {
		by += ", rule " + s.Policy.Rule
	}
	if why := reasons[s.Reason]; why != "" {
		by += ": " + why
	}
	out := &explain.Words{
		Title: fmt.Sprintf("%s/%s in namespace %s", s.Object.Resource, s.Object.Name, r.Namespace), State: "Deleted", Reason: s.Reason,
		Message: fmt.Sprintf("Winnow deleted it at %s, by %s.", at(s.DeletionTime.Time, now), by),
	}
	if s.AnswerLost {
		out.Message += " The answer of the API server was lost. Somebody else may have deleted the object at the same time."
	}
	add := func(name, text string) {
		if text != "" {
			out.Facts = append(out.Facts, explain.Fact{Name: name, Text: text})
		}
	}
	if s.Since != nil {
		outcome := ""
		if s.Outcome != "" {
			outcome = ", " + string(s.Outcome)
		}
		add(gc.TriggerOf(gc.After(s.After)).Since, at(s.Since.Time, now)+outcome)
	}
	if s.DueTime != nil {
		add("Due", at(s.DueTime.Time, now)+", deleted "+gc.FormatLateness(s.Lateness)+" later")
	}
	add("Generation", fmt.Sprintf("%d of the policy", s.Policy.Generation))
	if s.Owner != nil {
		add("Controller", Owner(s))
	}
	add("Deleted as", s.ServiceAccountName)
	if s.WaitTimedOut {
		add("Waited", "for as long as waitFor allows; its expression was not found to be true")
	}
	if s.ApprovedHold != "" {
		add("Approved", "it waited under the hold "+s.ApprovedHold+", which somebody approved")
	}
	if until := Copy(s, now); until != "-" {
		add("Copy", fmt.Sprintf("kept until %s: kubectl winnow restore %s/%s -n %s", s.CopyExpirationTime.UTC().Format(time.RFC3339),
			s.Object.Resource, s.Object.Name, r.Namespace))
	}
	add("UID", string(s.Object.UID))
	return out
}

// Print explains a record.
func Print(w io.Writer, r *v1alpha1.CleanupRecord, now time.Time) {
	words := Words(r, now)
	output.Heading(w, "%s: %s (%s)", words.Title, words.State, words.Reason)
	output.PrintLine(w, "", words.Message)
	fmt.Fprintln(w)
	explain.PrintFacts(w, words.Facts)
}

func at(t, now time.Time) string {
	return fmt.Sprintf("%s (%s)", t.UTC().Format(time.RFC3339), output.Ago(t, now))
}

// Copy says for how long there is a copy of a deleted object.
func Copy(s *v1alpha1.CleanupRecordStatus, now time.Time) string {
	if s.CopyExpirationTime == nil || s.CopyExpirationTime.Time.Before(now) {
		return "-"
	}
	return humantime.Duration(s.CopyExpirationTime.Sub(now))
}

// Owner names the controller of a deleted object.
func Owner(s *v1alpha1.CleanupRecordStatus) string {
	if s.Owner == nil {
		return "-"
	}
	return s.Owner.Kind + "/" + s.Owner.Name
}
