// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// wait is what due objects of a rule wait for.
type wait struct {
	expression *expressions.Expression
	atMost     time.Duration
	// deletes is set if objects are deleted after atMost; otherwise they stay held.
	deletes bool
}

// compileWait sets what due objects of a rule wait for.
func (r *Rule) compileWait(from *gc.WaitFor) error {
	if from == nil {
		return nil
	}
	e, err := expressions.Stored(from.Expression, expressions.Condition)
	switch {
	case err != nil:
		return fmt.Errorf("waitFor.expression: %w", err)
	case slices.Contains(r.resources, gc.ResourceSecrets) && !e.ReadsMetadata():
		return errors.New("waitFor.expression: may read only the metadata of Secrets")
	case from.AtMost == nil:
		return errors.New("waitFor.atMost is missing")
	}
	d, err := parseDuration(*from.AtMost)
	switch {
	case err != nil:
		return fmt.Errorf("waitFor.atMost: %w", err)
	case d.duration == 0:
		return errors.New("waitFor.atMost: 0s is not allowed")
	}
	r.wait = &wait{expression: e, atMost: d.duration, deletes: from.OnTimeout == gc.WaitTimeoutDelete}
	return oneOf("waitFor.onTimeout", from.OnTimeout, "", gc.WaitTimeoutKeep, gc.WaitTimeoutDelete)
}

// longerThan reports whether an object is kept for longer by w than by another wait.
func (w *wait) longerThan(o *wait) bool {
	if w.deletes != o.deletes {
		return o.deletes
	}
	return w.atMost > o.atMost
}

// met reports whether the expression is true for the object. It is not if it has failed, or is not evaluated yet.
func (w *wait) met(f *lifecycle.Fact) bool {
	is, _, _ := f.Conditions.Result(w.expression.String())
	return is
}

// addWait adds what a match waits for, unless the object has it. The longest wait applies: the object is deleted only when all are over.
func (e *Effective) addWait(m *Match) {
	w := m.Rule.wait
	if w == nil || w.met(e.Fact) {
		return
	}
	if e.wait == nil || w.longerThan(e.wait) || !e.wait.longerThan(w) && m.Policy.Name < e.waitsBy.Policy.Name {
		e.wait, e.waitsBy = w, Match{Policy: m.Policy, Rule: m.Rule}
	}
}

// dueByTime returns when time alone makes the object due, whatever limits count it. The result depends only on the object, its owner, the
// policies and the marks, so it is the same on all replicas and after a restart. When an object came to be above a limit is not stored.
func (e *Effective) dueByTime(limits Limits) answer {
	_, a := e.adjustMatches(e.by, e.latestByTime, limits, nil)
	return e.raise(a, limits)
}

// Waiting is what a due object waits for before it is deleted.
type Waiting struct {
	// Reason says why the object is kept because of the wait; empty if it waits for nothing. ReasonNotArchived says that the wait is over, and
	// that time changes nothing any more.
	Reason Reason
	// End is when the wait ends because time passes; zero if it does not.
	End time.Time
	// Deletes says that the object is deleted at End. Unknown says that the expression has not been evaluated for the object yet.
	Deletes, Unknown bool
	// policy and rule say what the object waits for.
	policy *Policy
	rule   *Rule
}

// IsWait reports whether a decision with this reason keeps an object only because of a wait: it waits to be archived, for its notice, or
// for a window.
func IsWait(reason Reason) bool {
	return IsWindow(reason) || slices.Contains([]Reason{
		ReasonWaitingForArchive, ReasonNotArchived, ReasonNoticePending, ReasonNotified,
	}, reason)
}

// IsWindow reports whether a decision with this reason keeps an object only because no window is open.
func IsWindow(reason Reason) bool {
	return reason == ReasonOutsideWindow || reason == ReasonWindowNeverOpens
}

// IsDoubt reports whether a decision with this reason keeps an object only until Winnow is certain, or tries again. Nobody has to act.
func IsDoubt(reason Reason) bool {
	return reason == ReasonClockInDoubt || reason == ReasonUnobserved || reason == ReasonRetrying
}

// KeptByPeople reports whether a decision with this reason keeps an object that is due only because people want it to wait: for an
// approval, until deletions are resumed, or as IsWait says. It is not late until then.
func KeptByPeople(reason Reason) bool {
	return IsWait(reason) || reason == ReasonHeld || reason == ReasonSuspended
}

// ChangesAt returns when time changes what the wait does; zero if it does not.
func (w Waiting) ChangesAt() time.Time {
	if w.Reason == ReasonNotArchived {
		return time.Time{}
	}
	return w.End
}

// Wait returns what the object waits for once it is due; empty if that is nothing.
func (e *Effective) Wait(limits Limits) Waiting {
	if e.wait == nil {
		return Waiting{}
	}
	_, _, known := e.Conditions.Result(e.wait.expression.String())
	out := Waiting{
		Reason: ReasonWaitingForArchive, Deletes: e.wait.deletes, Unknown: !known, policy: e.waitsBy.Policy, rule: e.waitsBy.Rule,
	}
	if due := e.dueByTime(limits); !due.never {
		out.End = due.at.Add(e.wait.atMost)
	}
	return out
}

// decideWait decides at now for a due object that has to wait, and that nothing else holds. a is the answer.
func (e *Effective) decideWait(a answer, limits Limits, now time.Time) Decision {
	d, w := Decision{Action: Delete, Reason: a.reason, At: a.at}, e.Wait(limits)
	if !w.End.IsZero() && !now.Before(w.End) {
		d.At = w.End
		if w.Deletes {
			d.WaitTimedOut = true
			return d
		}
		w.Reason = ReasonNotArchived
	}
	d.Wait = w
	return d
}

// Detail says in messages what an object waits for, until when, and what follows.
func (w Waiting) Detail(f *lifecycle.Fact) string {
	expression := w.rule.wait.expression.String()
	note := ""
	switch _, failure, known := f.Conditions.Result(expression); {
	case !known:
		note = " (it has not been evaluated for this object yet)"
	case failure != "":
		if strings.HasPrefix(failure, "expression '") { // The message shows the expression anyway. A long one may have left no room for the rest.
			_, rest, _ := strings.Cut(failure, "' resulted in error: ")
			failure = cmp.Or(rest, "it failed")
		}
		note = " (" + onOneLine(shownFailure(f, failure)) + ")"
	}
	by := Match{Policy: w.policy, Rule: w.rule}
	what := fmt.Sprintf("waitFor of %s is not true%s: %s", by.title(), note, onOneLine(expression))
	at := gc.WholeSecond(w.End).UTC().Format(time.RFC3339)
	switch {
	case w.Reason == ReasonNotArchived:
		return fmt.Sprintf("the wait is over since %s, so it stays held (onTimeout: Keep); %s", at, what)
	case w.End.IsZero():
		return what + "; it waits without end, because atMost counts from the end of a TTL, and it has none"
	case w.Deletes:
		return fmt.Sprintf("%s; it waits until %s at most, and is deleted then (onTimeout: Delete)", what, at)
	}
	return fmt.Sprintf("%s; the wait ends at %s, and it stays held even then (onTimeout: Keep)", what, at)
}

// onOneLineMost is how much of an expression or of its error messages show.
const onOneLineMost = 200

// onOneLine returns the beginning of a text without line breaks.
func onOneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > onOneLineMost {
		return strings.ToValidUTF8(text[:onOneLineMost], "") + "..."
	}
	return text
}

// String says what the wait is for.
func (w *wait) String() string {
	then := "keeps them after that"
	if w.deletes {
		then = "deletes them after that"
	}
	return fmt.Sprintf("waits for at most %s with due objects until waitFor is true, and %s", ttl{duration: w.atMost}, then)
}
