// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/write/deleter"
)

// usageAnswers answers what refers to an object, and notes what it was asked.
type usageAnswers struct {
	answer func(ctx context.Context) (string, error)
	asked  []string
}

func (u *usageAnswers) InUse(ctx context.Context, resource, namespace, name string) (string, error) {
	u.asked = append(u.asked, resource+" "+namespace+"/"+name)
	return u.answer(ctx)
}

// recordedDeletes accepts every DELETE, and reads the fact of the order.
type recordedDeletes struct{ deleted []string }

func (d *recordedDeletes) Delete(_ context.Context, o *deletion.Order) deleter.Answer {
	d.deleted = append(d.deleted, o.Fact.Name)
	return deleter.Answer{Result: deletion.Result{Outcome: deletion.Accepted}}
}

func (d *recordedDeletes) Read(_ context.Context, o *deletion.Order) (*lifecycle.Fact, error) {
	return o.Fact, nil
}

func (d *recordedDeletes) ReadFailed(_ context.Context, _ *deletion.Order, err error) deleter.Answer {
	return notSent(deletion.Unknown, err.Error())
}

func (d *recordedDeletes) ReadWhole(_ context.Context, o *deletion.Order) (*lifecycle.Fact, []byte, error) {
	return o.Fact, []byte("{}"), nil
}

// newUnusedWorld returns a world in which nothing refers to a ConfigMap, and a policy that deletes it for that.
func newUnusedWorld(t *testing.T, answer func(context.Context) (string, error)) (*world, *usageAnswers, *recordedDeletes) {
	t.Helper()
	w, usage, deletes := newWorld(t), &usageAnswers{answer: answer}, &recordedDeletes{}
	w.loop.usage, w.loop.deleter = usage, deletes
	c, err := kinds.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	served := kinds.Served{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Plural: gc.ResourceConfigMaps}
	w.tracker.SetKinds(c.Table([]kinds.Served{served}, nil, kinds.Builtin()), testbuilders.Now)
	k, err := w.tracker.Kinds().For(gc.ResourceConfigMaps)
	if err != nil {
		t.Fatal(err)
	}
	w.tracker.StartObserving(k)
	rule := testbuilders.Rule("unused", "0s").For(gc.ResourceConfigMaps).Labelled("app", "web").AfterUnused()
	w.tracker.ReplacePolicies([]*gc.CleanupPolicy{testbuilders.Policy("p").Rules(rule).Obj()}, "1", testbuilders.Now)
	fact, err := k.Fact(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: testbuilders.Home, UID: "uid-a", ResourceVersion: "1", Labels: map[string]string{"app": "web"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	list(w.tracker, gc.ResourceConfigMaps, facts.Compress(fact))
	w.tracker.SetReferrerSources([]string{"pods"}, "", testbuilders.Now)
	w.tracker.BeginReferrers("pods", testbuilders.Now)
	w.tracker.EndReferrers("pods", testbuilders.Now)
	w.tracker.ReplaceMarks(nil, testbuilders.Now)
	w.confirmFresh()
	return w, usage, deletes
}

// refer lets a Pod b refer to the ConfigMap.
func (w *world) refer() {
	w.tracker.SetReferring([]knowledge.Referring{{
		Source: "pods", Referrer: references.Referrer{UID: "u", Namespace: testbuilders.Home, Name: "b"},
		Keys: references.Keys([]references.Reference{{To: references.ConfigMaps, Namespace: testbuilders.Home, Name: "a"}}),
	}}, w.time.Now())
}

// says returns the reason and the message for the ConfigMap.
func (w *world) says() (reason, message string) {
	page, err := w.tracker.Candidates(w.Context(), gc.CandidateQuery{
		Resources: sets.New(gc.ResourceConfigMaps), Labels: labels.Everything(), Fields: fields.Everything(), All: true,
	})
	if err != nil || len(page.Items) != 1 {
		w.Fatal(len(page.Items), err)
	}
	return page.Items[0].Status.Reason, page.Items[0].Status.Message
}

// TestWhatMayBeUsedIsKept: before the DELETE of an object that is unused, all that may refer to it is read. Unless that says that nothing
// does, no DELETE is sent, and people are told why.
func TestWhatMayBeUsedIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		by      string
		err     error
		takes   time.Duration // how long the reading takes
		reread  bool
		outcome deletion.Outcome
		reason  string
		message string
	}{
		"nothing refers to it":             {outcome: deletion.Accepted, reason: "Terminating"},
		"nothing, after a GET":             {reread: true, outcome: deletion.Accepted, reason: "Terminating"},
		"nothing, and it takes some time":  {takes: freshness.For - 1, outcome: deletion.Accepted, reason: "Terminating"},
		"nothing, and it takes too long":   {takes: freshness.For, outcome: deletion.Released, reason: "Expired"},
		"something does":                   {by: "an object of pods refers to it", outcome: deletion.Unknown, reason: "Retrying", message: "an object of pods refers to it"},
		"something does, after a GET":      {by: "an object of pods refers to it", reread: true, outcome: deletion.Unknown, reason: "Retrying", message: "an object of pods refers to it"},
		"something does, and it took long": {by: "it has an owner", takes: time.Minute, outcome: deletion.Unknown, reason: "Retrying", message: "it has an owner"},
		"it cannot be read":                {err: errors.New("pods is forbidden"), outcome: deletion.Unknown, reason: "Retrying", message: "it is not known whether anything refers to it: pods is forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			var w *world
			w, usage, deletes := newUnusedWorld(t, func(context.Context) (string, error) {
				w.time.Step(c.takes)
				return c.by, c.err
			})
			order := w.take()
			order.Reread = c.reread
			answer := w.carryOut(t.Context(), order)
			if answer.Outcome != c.outcome || answer.NotSent != (c.outcome != deletion.Accepted) {
				t.Errorf("got %+v", answer)
			}
			if len(deletes.deleted) > 0 != (c.outcome == deletion.Accepted) {
				t.Errorf("deleted %q", deletes.deleted)
			}
			if len(usage.asked) != 1 || usage.asked[0] != "configmaps team-a/a" {
				t.Errorf("asked for %q", usage.asked)
			}
			if reason, message := w.says(); reason != c.reason || !strings.Contains(message, c.message) {
				t.Errorf("it is %s: %s", reason, message)
			}
		})
	}
}

// TestUsedAfterAll: once the watch reports what the reading has found, the object is in use, and nothing more is tried.
func TestUsedAfterAll(t *testing.T) {
	w, usage, deletes := newUnusedWorld(t, func(context.Context) (string, error) { return "an object of pods refers to it", nil })
	w.carryOut(t.Context(), w.take())
	w.refer()
	w.time.Step(time.Hour)
	w.tracker.Expire(w.time.Now())
	w.confirmFresh()
	if _, ok := w.tracker.Take(w.time.Now()); ok || len(deletes.deleted) > 0 {
		t.Error("it is still to be deleted")
	}
	if reason, message := w.says(); reason != "InUse" || !strings.Contains(message, "pods/b refers to it") {
		t.Errorf("it is %s: %s", reason, message)
	}
	w.tracker.RemoveReferrer("pods", "u", w.time.Now())
	usage.answer = func(context.Context) (string, error) { return "", nil }
	if answer := w.carryOut(t.Context(), w.take()); answer.Outcome != deletion.Accepted {
		t.Errorf("unused again: %+v", answer)
	}
}

// TestUsedDuringTheReading: the lists may have passed what a watch reports meanwhile.
func TestUsedDuringTheReading(t *testing.T) {
	var w *world
	w, _, deletes := newUnusedWorld(t, func(context.Context) (string, error) {
		w.refer()
		return "", nil
	})
	if answer := w.carryOut(t.Context(), w.take()); answer.Outcome != deletion.Released || !answer.NotSent || len(deletes.deleted) > 0 {
		t.Errorf("got %+v, deleted %q", answer, deletes.deleted)
	}
	if reason, message := w.says(); reason != "InUse" || !strings.Contains(message, "pods/b refers to it") {
		t.Errorf("it is %s: %s", reason, message)
	}
}

// TestUsageIsNotReadAtTheEnd: when this replica no longer leads, the order is given back, and the object is not held for it.
func TestUsageIsNotReadAtTheEnd(t *testing.T) {
	w, _, deletes := newUnusedWorld(t, func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	ctx, stop := context.WithCancel(t.Context())
	order := w.take()
	stop()
	if answer := w.carryOut(ctx, order); answer.Outcome != deletion.Released || !answer.NotSent || len(deletes.deleted) > 0 {
		t.Errorf("got %+v, deleted %q", answer, deletes.deleted)
	}
	if again := w.take(); again.Reread {
		t.Error("the object is read before it is deleted")
	}
}

// TestOnlyUnusedObjectsAreAskedFor: other rules do not depend on what refers to an object.
func TestOnlyUnusedObjectsAreAskedFor(t *testing.T) {
	w := newWorld(t)
	usage := &usageAnswers{}
	w.loop.usage = usage
	w.job("a")
	w.confirmFresh()
	if answer := w.carryOut(t.Context(), w.take()); answer.Outcome != deletion.Accepted || len(usage.asked) > 0 {
		t.Errorf("got %+v, asked for %q", answer, usage.asked)
	}
}
