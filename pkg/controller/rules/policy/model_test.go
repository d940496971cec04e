// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// The model below follows the documentation of the API, sentence by sentence, and computes with texts and whole seconds. It shares no code
// with the package.

const forever = 1 << 40 // seconds

// modelTTLs are the TTLs of the model and what they mean in seconds.
var modelTTLs = map[string]int{
	"0s":    0,
	"59s":   59,
	"1m":    60,
	"10m":   600,
	"600s":  600,
	"1h":    3600,
	"1d":    86400,
	"3650d": 315360000,
	"never": forever,
}

// malformed are texts that are not TTLs.
var malformed = []string{"", "1", "x", "1.5h", "1m1h", "-1s", "NEVER", "3651d"}

type modelObject struct {
	resource, label     string
	finished, succeeded bool
	sinceFinish         int // seconds
	native              int // -1 for none
	ttl, keepUntil      string
	hasTTL, hasUntil    bool
	untilFromFinish     int // when keepUntil can be read
	untilReadable       bool
	owner               lifecycle.OwnerState
	uncounted           bool
	terminating         bool
	doubtful            bool
}

type modelRule struct {
	resource, label, outcome, ttl string // empty for any
	afterOwner                    bool
}

type modelPolicy struct {
	preview    bool
	annotation gc.AnnotationTTLMode
	defaultTTL string // empty for none
	rules      []modelRule
}

type modelAnswer struct {
	Action policy.Action
	Reason policy.Reason
	By     string
	Due    int // seconds after the finish, -1 when it does not matter
}

// answerOf follows "Which answer holds for an object".
func answerOf(o modelObject, all []modelPolicy) modelAnswer {
	by, ttl, leave, mode := "", -1, false, gc.AnnotationAny
	for i, p := range all {
		name, d, withOwner, ok := answerOfPolicy(o, p)
		if p.preview || !ok { // 6: no match. 1: no match.
			continue
		}
		if d > ttl { // 4: the latest answer wins.
			by, ttl = fmt.Sprintf("p%d/%s", i, name), d
		}
		leave = leave || withOwner
		if p.annotation == gc.AnnotationIgnore || mode == gc.AnnotationAny { // 8: the strictest of all.
			mode = p.annotation
		}
	}
	switch { // These are not candidates.
	case by == "":
		return modelAnswer{policy.Ignore, policy.ReasonNoPolicy, "", -1}
	case !o.finished:
		return modelAnswer{policy.Ignore, policy.ReasonNotFinished, by, -1}
	case o.owner == lifecycle.OwnerRunning, o.owner == lifecycle.OwnerAbsent, (o.owner == lifecycle.OwnerFinished || o.owner == lifecycle.OwnerInDoubt) && leave:
		return modelAnswer{policy.Ignore, policy.ReasonLeftToOwner, by, -1}
	case o.terminating:
		return modelAnswer{policy.Await, policy.ReasonTerminating, by, -1}
	}
	if o.native >= 0 { // 7: a native TTL replaces the answer.
		ttl = o.native
	}
	due, invalid := annotated(o, ttl, mode)
	switch {
	case due >= forever:
		return modelAnswer{policy.Keep, policy.ReasonNever, by, -1}
	case o.doubtful:
		return modelAnswer{policy.Hold, policy.ReasonFinishTimeUnknown, by, -1}
	case o.sinceFinish < due:
		return modelAnswer{policy.Wait, policy.ReasonNotDue, by, due}
	case invalid:
		return modelAnswer{policy.Hold, policy.ReasonInvalidAnnotation, by, due}
	case o.owner == lifecycle.OwnerUnknown, o.owner == lifecycle.OwnerInDoubt:
		return modelAnswer{policy.Hold, policy.ReasonOwnerActive, by, due}
	case o.uncounted:
		return modelAnswer{policy.Hold, policy.ReasonUncounted, by, due}
	}
	return modelAnswer{policy.Delete, policy.ReasonExpired, by, due}
}

// answerOfPolicy: the first rule that matches decides, or the defaults if no rule matches.
func answerOfPolicy(o modelObject, p modelPolicy) (name string, ttl int, withOwner, ok bool) {
	for i, r := range p.rules {
		if r.resource != "" && r.resource != o.resource || r.label != "" && r.label != o.label {
			continue
		}
		if o.finished && (r.outcome == "Succeeded" && !o.succeeded || r.outcome == "Failed" && o.succeeded) {
			continue
		}
		return fmt.Sprintf("r%d", i), modelTTLs[r.ttl], !r.afterOwner, true
	}
	if p.defaultTTL == "" {
		return "", 0, false, false
	}
	return "default", modelTTLs[p.defaultTTL], true, true
}

// annotated returns when an object is due after its annotations have changed a TTL.
func annotated(o modelObject, ttl int, mode gc.AnnotationTTLMode) (due int, invalid bool) {
	due = ttl
	if mode == gc.AnnotationIgnore {
		return due, false
	}
	if o.hasTTL {
		own, readable := modelTTLs[o.ttl]
		switch {
		case !readable:
			invalid = true
		case mode == gc.AnnotationAny || own > ttl:
			due = own
		}
	}
	if o.hasUntil {
		if !o.untilReadable {
			invalid = true
		} else {
			due = max(due, o.untilFromFinish)
		}
	}
	return due, invalid
}

func TestDecisionsAgreeWithTheModel(t *testing.T) {
	testbuilders.Checks(t, 10000)
	seen := map[policy.Reason]int{}
	rapid.Check(t, func(t *rapid.T) {
		o, all := drawObject(t), rapid.SliceOfN(rapid.Custom(drawPolicy), 0, 4).Draw(t, "policies")
		want := answerOf(o, all)
		fact := realObject(o)
		var enforcing []*policy.Policy
		for i, p := range all {
			if c := compiled(t, realPolicy(fmt.Sprintf("p%d", i), p)); !c.Preview {
				enforcing = append(enforcing, c)
			}
		}
		r, d := decide(fact, o.owner, enforcing)
		got := modelAnswer{Action: d.Action, Reason: d.Reason, Due: -1}
		if r.Policy != nil {
			got.By = r.Policy.Name + "/" + r.RuleName()
		}
		if !d.At.IsZero() {
			got.Due = int(d.At.Sub(fact.FinishedAt) / time.Second)
		}
		if got != want {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
		if due := d.Action == policy.Hold || d.Action == policy.Delete || d.Action == policy.Await; d.Due() != due ||
			d.Candidate() != (d.Action != policy.Ignore) {
			t.Fatalf("%+v: due %v, candidate %v", d, d.Due(), d.Candidate())
		}
		seen[d.Reason]++
	})
	for _, reason := range []policy.Reason{
		policy.ReasonNoPolicy, policy.ReasonNotFinished, policy.ReasonLeftToOwner, policy.ReasonTerminating, policy.ReasonNever,
		policy.ReasonFinishTimeUnknown, policy.ReasonNotDue, policy.ReasonInvalidAnnotation, policy.ReasonOwnerActive, policy.ReasonExpired,
	} {
		if seen[reason] == 0 {
			t.Errorf("no case came to %s, so the test says nothing of it: %v", reason, seen)
		}
	}
}

func drawPolicy(t *rapid.T) modelPolicy {
	ttls := rapid.SampledFrom([]string{"0s", "59s", "1m", "10m", "600s", "1h", "1d", "3650d", "never"})
	p := modelPolicy{
		preview: rapid.IntRange(0, 4).Draw(t, "preview") == 0,
		annotation: rapid.SampledFrom([]gc.AnnotationTTLMode{gc.AnnotationExtendOnly, gc.AnnotationAny, gc.AnnotationIgnore}).
			Draw(t, "annotationTTL"),
	}
	if rapid.Bool().Draw(t, "hasDefault") {
		p.defaultTTL = ttls.Draw(t, "default")
	}
	p.rules = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) modelRule {
		return modelRule{
			resource:   rapid.SampledFrom([]string{"", gc.ResourceJobs, gc.ResourcePods}).Draw(t, "resource"),
			label:      rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, "label"),
			outcome:    rapid.SampledFrom([]string{"", "", "Succeeded", "Failed"}).Draw(t, "outcome"),
			ttl:        ttls.Draw(t, "ttl"),
			afterOwner: rapid.Bool().Draw(t, "afterOwnerFinished"),
		}
	}), 0, 3).Draw(t, "rules")
	return p
}

func drawObject(t *rapid.T) modelObject {
	chance := func(oneIn int, label string) bool { return rapid.IntRange(1, oneIn).Draw(t, label) == 1 }
	o := modelObject{
		resource:    rapid.SampledFrom([]string{gc.ResourceJobs, gc.ResourcePods}).Draw(t, "resource"),
		label:       rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "label"),
		finished:    !chance(5, "running"),
		succeeded:   rapid.Bool().Draw(t, "succeeded"),
		sinceFinish: rapid.SampledFrom([]int{-60, 0, 58, 59, 60, 61, 599, 600, 3599, 3600, 7200, 86400, 400000000}).Draw(t, "sinceFinish"),
		native:      -1,
		terminating: chance(8, "terminating"),
		doubtful:    chance(8, "doubtful"),
		owner: rapid.SampledFrom([]lifecycle.OwnerState{lifecycle.OwnerNone, lifecycle.OwnerNone, lifecycle.OwnerNone, lifecycle.OwnerRunning,
			lifecycle.OwnerFinished, lifecycle.OwnerInDoubt, lifecycle.OwnerAbsent, lifecycle.OwnerUnknown}).
			Draw(t, "owner"),
	}
	if o.resource == gc.ResourceJobs && chance(4, "hasNative") {
		o.native = rapid.SampledFrom([]int{0, 60, 3600, 2147483647}).Draw(t, "native")
	}
	o.uncounted = o.resource == gc.ResourcePods && chance(4, "uncounted")
	if o.hasTTL = chance(2, "hasTTL"); o.hasTTL {
		o.ttl = rapid.SampledFrom(append([]string{"0s", "59s", "10m", "1h", "1d", "never"}, malformed...)).Draw(t, "ttlAnnotation")
	}
	if o.hasUntil = chance(3, "hasUntil"); o.hasUntil {
		o.untilReadable = !chance(4, "untilUnreadable")
		o.untilFromFinish = rapid.SampledFrom([]int{-100, 0, 59, 60, 600, 3600, 100000, 500000000}).Draw(t, "until")
		o.keepUntil = "soon"
	}
	return o
}

func realObject(o modelObject) *lifecycle.Fact {
	at := testbuilders.Now.Add(-time.Duration(o.sinceFinish) * time.Second)
	until := o.keepUntil
	if o.untilReadable {
		until = at.Add(time.Duration(o.untilFromFinish) * time.Second).Format(time.RFC3339)
	}
	if o.resource == gc.ResourceJobs {
		return shape(testbuilders.Job("o"), o, until, func(b *testbuilders.JobBuilder) *lifecycle.Fact {
			if o.native >= 0 {
				b.NativeTTL(int32(o.native))
			}
			if o.finished && o.succeeded {
				b.Complete(at)
			} else if o.finished {
				b.Failed(at)
			}
			return b.Fact()
		})
	}
	return shape(testbuilders.Pod("o"), o, until, func(b *testbuilders.PodBuilder) *lifecycle.Fact {
		if o.uncounted {
			b.Finalizer(batchv1.JobTrackingFinalizer)
		}
		if o.finished && o.succeeded {
			b.Succeeded(at)
		} else if o.finished {
			b.Failed(at)
		}
		return b.Fact()
	})
}

// shaped is the interface of the builders of Jobs and Pods.
type shaped[B any] interface {
	Label(key, value string) B
	Created(time.Time) B
	TTL(string) B
	KeepUntil(string) B
	ControlledBy(apiVersion, kind, name string) B
	Terminating() B
}

func shape[B shaped[B]](b B, o modelObject, until string, fact func(B) *lifecycle.Fact) *lifecycle.Fact {
	if o.label != "" {
		b.Label("app", o.label)
	}
	b.Created(testbuilders.Now.Add(-20 * 365 * 24 * time.Hour))
	if o.hasTTL {
		b.TTL(o.ttl)
	}
	if o.hasUntil {
		b.KeepUntil(until)
	}
	if o.owner != lifecycle.OwnerNone {
		b.ControlledBy("example.com/v1", "Thing", "t")
	}
	if o.terminating {
		b.Terminating()
	}
	f := fact(b)
	if o.doubtful && o.finished {
		f.FinishedAt, f.Doubt = time.Time{}, "nobody says when it finished"
	}
	return f
}

func realPolicy(name string, p modelPolicy) *testbuilders.PolicyBuilder {
	b := testbuilders.Policy(name).Annotations(p.annotation)
	if p.preview {
		b.Preview()
	}
	if p.defaultTTL != "" {
		b.Default(gc.TTL(p.defaultTTL))
	}
	for i, r := range p.rules {
		rule := testbuilders.Rule(fmt.Sprintf("r%d", i), gc.TTL(r.ttl)).Outcome(gc.Outcome(r.outcome))
		if r.resource != "" {
			rule.For(r.resource)
		}
		if r.label != "" {
			rule.Labelled("app", r.label)
		}
		if r.afterOwner {
			rule.Dependents(gc.DependentsAfterOwnerFinished)
		}
		b.Rules(rule)
	}
	return b
}
