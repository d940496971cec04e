// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/ui"
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

// words returns the explanation as title, facts and sentences.
func (e *explanation) words() *ui.Explanation {
	out := &ui.Explanation{Title: fmt.Sprintf("%s/%s in namespace %s", e.object.Resource, e.object.Name, e.object.Namespace)}
	if c := e.candidate; c != nil {
		out.State, out.Reason, out.Message = string(c.Status.State), c.Status.Reason, sentence(c.Status.Message)
		out.Facts = append(e.reckoning(), e.policies()...)
	}
	for _, line := range append(slices.Clone(e.lines), e.native...) {
		out.Lines = append(out.Lines, sentence(line))
	}
	return out
}

func (e *explanation) print(w io.Writer) {
	words := e.words()
	if e.candidate == nil {
		heading(w, "%s", words.Title)
	} else {
		heading(w, "%s: %s (%s)", words.Title, words.State, words.Reason)
		printLine(w, "", words.Message)
		fmt.Fprintln(w)
		for _, f := range words.Facts {
			fmt.Fprintf(w, "  %-11s %s\n", f.Name, oneLine(f.Text))
			for _, detail := range f.Details {
				printLine(w, "              ", detail)
			}
		}
		fmt.Fprintln(w)
	}
	for _, line := range words.Lines {
		printLine(w, "", line)
	}
}

// printLine prints a line, or nothing if there is no text.
func printLine(w io.Writer, indent, text string) {
	if text != "" {
		fmt.Fprintf(w, "%s%s\n", indent, oneLine(text))
	}
}

// sentence returns a sentence of somebody else with a full stop and a capital letter.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// reckoning says how the answer follows.
func (e *explanation) reckoning() []ui.Fact {
	s := &e.candidate.Status
	var out []ui.Fact
	add := func(name, format string, args ...any) {
		out = append(out, ui.Fact{Name: name, Text: fmt.Sprintf(format, args...)})
	}
	if s.Since != nil {
		what := map[v1alpha1.After]string{v1alpha1.AfterCreated: "Created", v1alpha1.AfterUnused: "Unused since"}[s.After]
		outcome := ""
		if s.Outcome != "" {
			outcome = ", " + string(s.Outcome)
		}
		add(cmp.Or(what, "Finished"), "%s%s", e.at(s.Since), outcome)
	}
	if p := s.DecidedBy; p != nil {
		add("Decided by", "%s", policyAndRule(p))
	}
	if s.TTL != "" {
		add("Kept for", "%s", s.TTL)
	}
	if s.DueTime != nil {
		add("Due", "%s", e.at(s.DueTime))
	}
	for _, a := range s.Adjustments {
		source := a.Source
		if a.Policy != "" {
			source += " of ccup/" + a.Policy
		}
		add("Changed by", "%s: kept until %s instead of %s", source, a.To, a.From)
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
func (e *explanation) policies() []ui.Fact {
	var out []ui.Fact
	for i := range e.candidate.Status.Policies {
		p := &e.candidate.Status.Policies[i]
		if p.Result == v1alpha1.ConsideredNoMatch && !e.wide {
			continue
		}
		keeps := ""
		if p.KeepsUntil != "" {
			keeps = ", keeps until " + p.KeepsUntil
		}
		f := ui.Fact{Name: "Policy", Text: fmt.Sprintf("%s: %s%s", policyAndRule(&p.CandidatePolicy), p.Result, keeps)}
		if p.Message != "" {
			f.Details = append(f.Details, sentence(p.Message))
		}
		for _, r := range p.Rules {
			if !r.Matches && e.wide {
				f.Details = append(f.Details, fmt.Sprintf("rule %s does not match: %s", r.Name, r.Message))
			}
		}
		out = append(out, f)
	}
	return out
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
