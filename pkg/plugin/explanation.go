// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// explanation is a candidate in words. The sentences are those of the engine.
type explanation struct {
	object    local.Object
	candidate *v1alpha1.CleanupCandidate // nil if there is none
	// lines say why there is none, or what the explanation could not consider.
	lines []string
	// native says what controllers of Kubernetes do.
	native []string
	// wide also shows the policies and rules that do not match.
	wide bool
	now  time.Time
}

func (e *explanation) print(w io.Writer) {
	title := fmt.Sprintf("%s/%s in namespace %s", e.object.Resource, e.object.Name, e.object.Namespace)
	if c := e.candidate; c == nil {
		heading(w, "%s", title)
	} else {
		heading(w, "%s: %s (%s)", title, c.Status.State, c.Status.Reason)
		sentence(w, "", c.Status.Message)
		e.printReckoning(w)
	}
	for _, line := range e.lines {
		sentence(w, "", line)
	}
	for _, line := range e.native {
		sentence(w, "", line)
	}
}

// sentence prints a sentence of somebody else, with a full stop and a capital letter.
func sentence(w io.Writer, indent, text string) {
	if text = oneLine(text); text == "" {
		return
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	fmt.Fprintf(w, "%s%s%s\n", indent, strings.ToUpper(text[:1]), text[1:])
}

// printReckoning prints how the answer follows.
func (e *explanation) printReckoning(w io.Writer) {
	s := &e.candidate.Status
	fmt.Fprintln(w)
	if s.Since != nil {
		what := "Finished"
		if s.After == v1alpha1.AfterCreated {
			what = "Created"
		}
		outcome := ""
		if s.Outcome != "" {
			outcome = ", " + string(s.Outcome)
		}
		e.line(w, what, "%s%s", e.at(s.Since), outcome)
	}
	if p := s.DecidedBy; p != nil {
		e.line(w, "Decided by", "%s", policyAndRule(p))
	}
	if s.TTL != "" {
		e.line(w, "Kept for", "%s", s.TTL)
	}
	if s.DueTime != nil {
		e.line(w, "Due", "%s", e.at(s.DueTime))
	}
	for _, a := range s.Adjustments {
		source := a.Source
		if a.Policy != "" {
			source += " of ccup/" + a.Policy
		}
		e.line(w, "Changed by", "%s: kept until %s instead of %s", source, a.To, a.From)
	}
	for i := range s.Limits {
		e.line(w, "Counted by", "%s", limit(&s.Limits[i]))
	}
	if s.Owner != nil {
		e.line(w, "Controller", "%s/%s (%s)", s.Owner.Kind, s.Owner.Name, s.Owner.State)
	}
	if len(s.Finalizers) > 0 {
		e.line(w, "Waits for", "%s", strings.Join(s.Finalizers, ", "))
	}
	e.printPolicies(w)
	fmt.Fprintln(w)
}

// printPolicies prints what each policy says.
func (e *explanation) printPolicies(w io.Writer) {
	for i := range e.candidate.Status.Policies {
		p := &e.candidate.Status.Policies[i]
		if p.Result == v1alpha1.ConsideredNoMatch && !e.wide {
			continue
		}
		keeps := ""
		if p.KeepsUntil != "" {
			keeps = ", keeps until " + p.KeepsUntil
		}
		e.line(w, "Policy", "%s: %s%s", policyAndRule(&p.CandidatePolicy), p.Result, keeps)
		sentence(w, "              ", p.Message)
		for _, r := range p.Rules {
			if !r.Matches && e.wide {
				fmt.Fprintf(w, "              rule %s does not match: %s\n", oneLine(r.Name), oneLine(r.Message))
			}
		}
	}
}

func (e *explanation) line(w io.Writer, name, format string, args ...any) {
	fmt.Fprintf(w, "  %-11s %s\n", name, oneLine(fmt.Sprintf(format, args...)))
}

// at formats a time with its distance from now.
func (e *explanation) at(t *metav1.Time) string {
	return fmt.Sprintf("%s (%s)", t.UTC().Format(time.RFC3339), when(t.Time, e.now))
}

func policyAndRule(p *v1alpha1.CandidatePolicy) string {
	out := local.PolicyName(p.Kind, p.Name)
	if p.Rule != "" {
		out += ", rule " + p.Rule
	}
	if p.Mode == v1alpha1.ModePreview {
		out += " (Preview)"
	}
	return out
}

// limit describes a limit by count.
func limit(l *v1alpha1.CandidateLimit) string {
	out := policyAndRule(&l.Policy)
	if l.Key != "" {
		out += ", for " + l.Key
	}
	if l.MaxObjects == nil {
		return out + ": no limit"
	}
	out += fmt.Sprintf(": keeps %d of %d objects", *l.MaxObjects, l.Objects)
	if l.Rank != nil {
		out += fmt.Sprintf(", this is number %d, counted from the newest", *l.Rank)
	}
	if l.Over {
		out += ", over the limit"
	}
	return out
}
