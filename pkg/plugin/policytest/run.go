// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// Result is the result of a test file.
type Result struct {
	File string `json:"file"`
	// Error is why the test could not run; empty if it ran.
	Error string `json:"error,omitempty"`
	// Objects are the objects with an expectation, in the order of the file, and then those that lack one.
	Objects []ObjectResult `json:"objects,omitempty"`
}

// ObjectResult is the result for one object.
type ObjectResult struct {
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	// Failures say what is not as expected; none if everything is.
	Failures []string `json:"failures,omitempty"`
	// Add is the expectation to add to the test, if it has none for the object and this is right.
	Add string `json:"add,omitempty"`
	// The others are what Winnow decides.
	State  string `json:"state"`
	Reason string `json:"reason"`
	Policy string `json:"policy,omitempty"`
	Rule   string `json:"rule,omitempty"`
	Due    string `json:"due,omitempty"`
	// Deadline is when a running object ends by the deadline that Winnow sets for it.
	Deadline string `json:"deadline,omitempty"`
	Message  string `json:"message,omitempty"`
	// Hint is what the files lack, if a cluster could decide otherwise because it has it.
	Hint string `json:"hint,omitempty"`
}

// Failed reports whether anything is not as expected.
func (r *Result) Failed() bool {
	for i := range r.Objects {
		if len(r.Objects[i].Failures) > 0 {
			return true
		}
	}
	return false
}

// Run runs a test file.
func Run(ctx context.Context, path string) Result {
	return run(ctx, path, (&reader{left: sizeMost}).read)
}

// run is Run with another file system.
func run(ctx context.Context, path string, readFile func(string) ([]byte, error)) Result {
	out := Result{File: path}
	l, err := load(ctx, path, readFile)
	if err == nil {
		out.Objects, err = l.compare(ctx)
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// compare compares what Winnow decides with the expectations.
func (l *loaded) compare(ctx context.Context) ([]ObjectResult, error) {
	world, err := l.World(ctx, l.Now.Time)
	if err != nil {
		return nil, err
	}
	var out []ObjectResult
	expected := map[local.Object]bool{}
	for i := range l.Expect {
		e := &l.Expect[i]
		expected[e.name()] = true
		got, _, err := l.decide(ctx, world, e.name())
		if err != nil {
			return nil, err
		}
		got.Failures = e.failures(&got)
		out = append(out, got)
	}
	for _, o := range l.objects {
		if expected[o] || l.Partial {
			continue
		}
		got, known, err := l.decide(ctx, world, o)
		if err != nil {
			return nil, err
		}
		if known {
			got.Failures, got.Add = []string{"it has no expectation, and the test is not partial"}, got.line(l.Namespace)
			out = append(out, got)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the test expects nothing: expect is empty, and no policy is about an object; check namespaces and resources")
	}
	return out, nil
}

// decide returns what Winnow decides for an object. known is false if no policy is about such objects in its namespace.
func (l *loaded) decide(ctx context.Context, world *local.World, o local.Object) (out ObjectResult, known bool, err error) {
	out = ObjectResult{
		Object: o.Resource + "/" + o.Name, Namespace: o.Namespace, State: string(gc.CandidateNone), Reason: string(policy.ReasonNoPolicy),
	}
	c, lines, err := world.Candidate(ctx, o)
	switch {
	case err != nil:
		return out, false, err
	case c == nil:
		reason, about := world.Excluded(o.Resource, o.Namespace)
		if reason != "" {
			out.Reason, lines = string(reason), []string{policy.Decision{Reason: reason}.Sentence()}
		}
		out.Message, out.Hint = strings.Join(lines, "\n"), l.namespaceHint(o.Namespace)
		return out, about && reason != "", nil
	}
	s := &c.Status
	out.State, out.Reason, out.Message = string(s.State), s.Reason, s.Message
	if s.DecidedBy != nil {
		if out.Policy, out.Rule = gc.PolicyName(s.DecidedBy.Kind, s.DecidedBy.Name), s.DecidedBy.Rule; s.DecidedBy.Mode == v1alpha1.ModePreview {
			out.Policy += " (Preview)"
		}
	}
	if s.DueTime != nil {
		out.Due = timeText(s.DueTime.Time)
	}
	if at := world.Deadline(o); !at.IsZero() {
		out.Deadline = timeText(at)
	}
	out.Hint, err = l.hint(o, policy.Reason(out.Reason))
	return out, true, err
}

func timeText(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// namespaceHint is hint for an object that no policy is about: cluster policies may select its namespace by labels that the files lack.
func (l *loaded) namespaceHint(namespace string) string {
	if slices.Contains(l.objects, local.Object{Resource: "namespaces", Name: namespace}) {
		return ""
	}
	for _, p := range l.ClusterPolicies {
		if s := p.Spec.NamespaceSelector; len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
			return fmt.Sprintf("cluster policy %s selects namespaces by label, and the files have no Namespace %s, so it has no labels",
				p.Name, namespace)
		}
	}
	return ""
}

// hint says what the files lack, if a cluster could decide otherwise because it has it; empty if they lack nothing.
func (l *loaded) hint(o local.Object, reason policy.Reason) (string, error) {
	u := l.Objects[slices.Index(l.objects, o)]
	switch reason { //nolint:exhaustive // No other reason depends on what files lack.
	case policy.ReasonLeftToOwner, policy.ReasonOwnerActive:
		owner, ok := l.Controller(u)
		switch at := slices.Index(l.objects, owner); {
		case !ok:
		case at < 0:
			const text = "its owner %s/%s is not in the files, and a cluster that has it may decide otherwise"
			return fmt.Sprintf(text, owner.Resource, owner.Name), nil
		case metav1.GetControllerOf(u).UID != l.Objects[at].GetUID():
			const text = "the %s/%s in the files is not its owner, because it has another uid, or none; remove uid from its ownerReferences"
			return fmt.Sprintf(text, owner.Resource, owner.Name), nil
		}
	case policy.ReasonManagedElsewhere:
		encoded, err := u.MarshalJSON()
		if err != nil {
			return "", err
		}
		if len(u.GetManagedFields()) == 0 && lifecycle.NeedsManagers(encoded) {
			return "its marks may be copies, and only managedFields tell; take it from the cluster with --show-managed-fields", nil
		}
	}
	return "", nil
}

// failures compares an expectation with what Winnow decides.
func (e *Expectation) failures(got *ObjectResult) []string {
	var out []string
	compare := func(field, got, want string) {
		if want != "" && got != want {
			if got == "" {
				got = "not set"
			}
			out = append(out, fmt.Sprintf("%s is %s, want %s", field, got, want))
		}
	}
	compareTime := func(field, got string, want *metav1.Time) {
		if want != nil {
			compare(field, got, timeText(want.Time))
		}
	}
	compare("state", got.State, e.State)
	compare("reason", got.Reason, e.Reason)
	compare("policy", got.Policy, e.Policy)
	compare("rule", got.Rule, e.Rule)
	compareTime("due", got.Due, e.Due)
	compareTime("deadline", got.Deadline, e.Deadline)
	return out
}

// withoutTime are reasons that no time brings about: the due time is only the time of the test.
var withoutTime = []policy.Reason{policy.ReasonOverCapacity, policy.ReasonOverCeiling}

// line returns the expectation that fits, as a line of the file.
func (r *ObjectResult) line(namespace string) string {
	out := "- {object: " + r.Object
	if r.Namespace != namespace {
		out += ", namespace: " + r.Namespace
	}
	out += ", state: " + r.State + ", reason: " + r.Reason
	if strings.HasPrefix(r.Policy, "ccup/") || strings.HasSuffix(r.Policy, ")") { // Those that others often write.
		out += ", policy: " + r.Policy
	}
	if r.Rule != "" {
		out += ", rule: " + r.Rule
	}
	if r.Due != "" && !slices.Contains(withoutTime, policy.Reason(r.Reason)) {
		out += fmt.Sprintf(", due: %q", r.Due)
	}
	if r.Deadline != "" {
		out += fmt.Sprintf(", deadline: %q", r.Deadline)
	}
	return out + "}"
}
