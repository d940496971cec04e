// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain says in words what happens to an object.
package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
)

// Explanation is a candidate in words. The engine writes the sentences.
type Explanation struct {
	Object    local.Object
	Candidate *v1alpha1.CleanupCandidate // nil if there is none
	// Lines say why there is none, or what the explanation leaves out.
	Lines []string
	// Native says what controllers of Kubernetes do.
	Native []string
	// Next are the commands that go on from here, each in a sentence.
	Next []string
	// Wide also shows the policies and rules that do not match.
	Wide bool
	Now  time.Time
}

// Words are what happens to an object, for people and for the page.
type Words struct {
	Title   string `json:"title"`
	State   string `json:"state,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Facts   []Fact `json:"facts,omitempty"`
	// Lines are sentences about what the explanation leaves out, and about controllers of Kubernetes.
	Lines []string `json:"lines,omitempty"`
}

// Fact is a part of an explanation.
type Fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Details explain it.
	Details []string `json:"details,omitempty"`
}

// Words returns the explanation as title, facts and sentences.
func (e *Explanation) Words() *Words {
	out := &Words{Title: fmt.Sprintf("%s/%s in namespace %s", e.Object.Resource, e.Object.Name, e.Object.Namespace)}
	if c := e.Candidate; c != nil {
		out.State, out.Message = string(c.Status.State), output.Sentence(c.Status.Message)
		if c.Status.Reason != out.State { // See Outcome.
			out.Reason = c.Status.Reason
		}
		out.Facts = append(e.reckoning(), e.policies()...)
	}
	for _, line := range append(slices.Clone(e.Lines), e.Native...) {
		out.Lines = append(out.Lines, output.Sentence(line))
	}
	return out
}

// Print prints the explanation.
func (e *Explanation) Print(w io.Writer) {
	words := e.Words()
	if e.Candidate == nil {
		output.Heading(w, "%s", words.Title)
	} else {
		output.Heading(w, "%s: %s", words.Title, Outcome(&e.Candidate.Status))
		output.PrintLine(w, "", words.Message)
		fmt.Fprintln(w)
		PrintFacts(w, words.Facts)
		if len(words.Lines)+len(e.Next) > 0 {
			fmt.Fprintln(w)
		}
	}
	for _, line := range words.Lines {
		output.PrintLine(w, "", line)
	}
	for _, line := range e.Next {
		output.PrintLine(w, "", line)
	}
}

// PrintFacts prints each fact on a line, and its details below.
func PrintFacts(w io.Writer, facts []Fact) {
	for _, f := range facts {
		fmt.Fprintf(w, "  %-11s %s\n", f.Name, output.OneLine(f.Text))
		for _, detail := range f.Details {
			output.PrintLine(w, "              ", detail)
		}
	}
}

// Outcome is the state of a candidate with the reason, unless both are the same word: "Held" says it once.
func Outcome(s *v1alpha1.CleanupCandidateStatus) string {
	if s.Reason == "" || s.Reason == string(s.State) {
		return string(s.State)
	}
	return fmt.Sprintf("%s (%s)", s.State, s.Reason)
}

// reckoning says how the answer follows.
func (e *Explanation) reckoning() []Fact {
	s := &e.Candidate.Status
	var out []Fact
	add := func(name, format string, args ...any) {
		out = append(out, Fact{Name: name, Text: fmt.Sprintf(format, args...)})
	}
	if s.Since != nil {
		outcome := ""
		if s.Outcome != "" {
			outcome = ", " + string(s.Outcome)
		}
		add(gc.TriggerOf(gc.After(s.After)).Since, "%s%s", at(s.Since, output.Ago(s.Since.Time, e.Now)), outcome)
	}
	if p := s.DecidedBy; p != nil {
		add("Decided by", "%s", policyAndRule(p))
	}
	if s.TTL != "" {
		add("Kept for", "%s", s.TTL)
	}
	if s.DueTime != nil {
		add("Due", "%s", at(s.DueTime, gc.ShownDue(string(s.State), s.DueTime.Time, e.Now)))
	}
	for i := range s.Adjustments {
		add("Changed by", "%s", Adjustment(&s.Adjustments[i]))
	}
	for i := range s.Limits {
		add("Counted by", "%s", limit(&s.Limits[i]))
	}
	if s.Owner != nil {
		add("Controller", "%s/%s (%s)", s.Owner.Kind, s.Owner.Name, s.Owner.State)
	}
	if len(s.Finalizers) > 0 {
		add("Waits for", "%s", strings.Join(s.Finalizers, ", "))
	}
	return out
}

// policies says what each policy says.
func (e *Explanation) policies() []Fact {
	var out []Fact
	for i := range e.Candidate.Status.Policies {
		p := &e.Candidate.Status.Policies[i]
		if p.Result == v1alpha1.ConsideredNoMatch && !e.Wide {
			continue
		}
		keeps := ""
		if p.KeepsUntil != "" {
			keeps = ", keeps " + until(p.KeepsUntil)
		}
		f := Fact{Name: "Policy", Text: fmt.Sprintf("%s: %s%s", policyAndRule(&p.CandidatePolicy), p.Result, keeps)}
		if p.Message != "" {
			f.Details = append(f.Details, output.Sentence(p.Message))
		}
		for _, r := range p.Rules {
			if !r.Matches && e.Wide {
				f.Details = append(f.Details, fmt.Sprintf("rule %s does not match: %s", r.Name, r.Message))
			}
		}
		out = append(out, f)
	}
	return out
}

// at formats a time with its distance from now.
func at(t *metav1.Time, distance string) string {
	return fmt.Sprintf("%s (%s)", t.UTC().Format(time.RFC3339), distance)
}

// Adjustment says what keeps an object for longer or shorter than the policy that decides.
func Adjustment(a *v1alpha1.CandidateAdjustment) string {
	source := a.Source
	if a.Policy != "" {
		source += " of ccup/" + a.Policy
	}
	if a.From == string(gc.TTLNever) { // Newer objects may replace it all the same.
		return fmt.Sprintf("%s: kept %s, and no longer without a time limit", source, until(a.To))
	}
	return fmt.Sprintf("%s: kept %s instead of %s", source, until(a.To), a.From)
}

// until says until when an object is kept.
func until(at string) string {
	if at == string(gc.TTLNever) {
		return "forever"
	}
	return "until " + at
}

func policyAndRule(p *v1alpha1.CandidatePolicy) string {
	out := gc.PolicyName(p.Kind, p.Name)
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
