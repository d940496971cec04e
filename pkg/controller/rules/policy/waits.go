// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
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

// waitEnds returns when the wait of the object ends because time passes; zero if it does not. There must be a wait.
func (e *Effective) waitEnds(limits Limits) time.Time {
	due := e.dueByTime(limits)
	if due.never {
		return time.Time{}
	}
	return due.at.Add(e.wait.atMost)
}

// decideWait decides at now for a due object that has to wait, and that nothing else holds. a is the answer.
func (e *Effective) decideWait(a answer, limits Limits, now time.Time) Decision {
	end := e.waitEnds(limits)
	over := !end.IsZero() && !now.Before(end)
	if over && e.wait.deletes {
		return Decision{Action: Delete, Reason: a.reason, At: end}
	}
	d := Decision{Action: Hold, Reason: ReasonWaitingForArchive, At: a.at, WaitsUntil: end, Wanted: a.reason}
	d.Detail = e.describeWait(end, over)
	if over {
		d.At, d.WaitsUntil = end, time.Time{}
	}
	return d
}

// expressionMost is how much of an expression messages show.
const expressionMost = 200

// describeWait says what the object waits for, until when, and what follows. end is when the wait ends, zero if never, and over is set once
// it has.
func (e *Effective) describeWait(end time.Time, over bool) string {
	text := e.wait.expression.String()
	if len(text) > expressionMost {
		text = text[:expressionMost] + "..."
	}
	what, at := fmt.Sprintf("waitFor of %s is not true: %s", e.waitsBy.title(), text), gc.WholeSecond(end).UTC().Format(time.RFC3339)
	switch _, failure, known := e.Conditions.Result(e.wait.expression.String()); {
	case !known:
		what += " (it has not been evaluated for this object yet)"
	case failure != "":
		what += " (" + shownFailure(e.Fact, failure) + ")"
	}
	switch {
	case over:
		return fmt.Sprintf("the wait is over since %s, and nobody has archived it, so it stays held (onTimeout: Keep); %s", at, what)
	case end.IsZero():
		return what + "; it waits without end, because atMost counts from the end of a TTL, and it has none"
	case e.wait.deletes:
		return fmt.Sprintf("%s; it waits until %s at most, and is deleted then (onTimeout: Delete)", what, at)
	}
	return fmt.Sprintf("%s; the wait ends at %s, and it stays held even then (onTimeout: Keep)", what, at)
}

// String says what the wait is for.
func (w *wait) String() string {
	then := "keeps them after that"
	if w.deletes {
		then = "deletes them after that"
	}
	return fmt.Sprintf("waits for at most %s with due objects until waitFor is true, and %s", ttl{duration: w.atMost}, then)
}
