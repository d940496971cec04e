// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestReplayedEventsChangeNothing: no event with a lower resource version than memory has changes memory, however the engine learns of it.
func TestReplayedEventsChangeNothing(t *testing.T) {
	older := func(f *lifecycle.Fact) *facts.Compact {
		out := *f
		out.ResourceVersion--
		return facts.Compress(&out)
	}
	for name, replay := range map[string]func(w *world){
		"a policy before it was suspended": func(w *world) { w.SetPolicy(ttlPolicy("0s", 1).Version("1").Obj(), w.now) },
		"a policy that was deleted": func(w *world) {
			w.SetPolicy(testbuilders.Policy("hasty").Default("0s").Version("1").Obj(), w.now)
		},
		"the removal of a policy that is there again": func(w *world) {
			w.RemovePolicy(ttlPolicy("0s", 1).Version("1").Obj(), w.now)
		},
		"a list of policies": func(w *world) {
			w.ReplacePolicies([]*gc.CleanupPolicy{ttlPolicy("0s", 1).Version("1").Obj()}, "1", w.now)
			w.confirmFresh()
		},
		"a namespace before it was protected": func(w *world) {
			w.SetNamespace(testbuilders.Namespace("guarded", "1"), w.now)
		},
		"a namespace that was deleted": func(w *world) { w.SetNamespace(testbuilders.Namespace("other", "1"), w.now) },
		"the removal of a namespace":   func(w *world) { w.RemoveNamespace(testbuilders.Namespace(testbuilders.Home, "1"), w.now) },
		"a list of namespaces": func(w *world) {
			w.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace("guarded", "1")}, "1", w.now)
			w.confirmFresh()
		},
		"an object":                func(w *world) { w.Upsert(older(w.facts["kept"]), w.now) },
		"the removal of an object": func(w *world) { w.Remove(older(w.facts["kept"]), w.now) },
		"an object in a list":      func(w *world) { w.BeginList(gc.ResourceJobs).Add([]*facts.Compact{older(w.facts["kept"])}, w.now) },
		"an object in a merged list": func(w *world) {
			w.BeginMerge(gc.ResourceJobs, testbuilders.Home).Add([]*facts.Compact{older(w.facts["kept"])}, w.now)
		},
		"a CronJob": func(w *world) {
			w.SetCronJob(&lifecycle.CronJob{ObjectMeta: metav1.ObjectMeta{UID: "cron", ResourceVersion: "1"}}, w.now)
		},
		"stored marks":                func(w *world) { w.SetMarks(&memory.Marks{NamespacedName: marksName, ResourceVersion: "1"}, w.now) },
		"a quota before it was lower": func(w *world) { w.SetQuota(replayedQuota("1", 9), w.now) },
		"the removal of a quota":      func(w *world) { w.RemoveQuota(replayedQuota("1", 9), w.now) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("0s", 1))
			w.observeNamespace("other")
			w.observeNamespace("guarded", gc.LabelProtected, "true")
			w.policy(testbuilders.Policy("hasty").Default("0s"))
			w.SetCronJob(&lifecycle.CronJob{ObjectMeta: metav1.ObjectMeta{UID: "cron", ResourceVersion: "5"}, Active: []types.UID{"x"}}, w.now)
			w.SetMarks(&memory.Marks{NamespacedName: marksName, ResourceVersion: "5", Unused: map[types.UID]time.Time{"x": w.now}}, w.now)
			w.SetQuota(replayedQuota("5", 3), w.now)
			w.policy(ttlPolicy("0s", 2).Suspended())
			w.removePolicy(testbuilders.Policy("hasty"))
			delete(w.namespaces, types.NamespacedName{Name: "other"})
			w.RemoveNamespace(testbuilders.Namespace("other", w.next()), w.now)
			w.upsert(job(time.Hour, "gone"))
			w.removed("gone")
			w.upsert(job(time.Hour, "kept"))
			w.confirmFresh()
			before := w.Records.Get(testbuilders.UID("kept")).ResourceVersion
			replay(w)
			w.takes()
			w.decided("kept", policy.Hold, policy.ReasonSuspended)
			if got := w.Records.Get(testbuilders.UID("kept")).ResourceVersion; got != before || w.Totals(w.now).Objects != 1 {
				t.Errorf("%d objects, and the kept object in version %d, not %d", w.Totals(w.now).Objects, got, before)
			}
			if guarded := w.Engine.Namespaces["guarded"]; guarded == nil || !guarded.Protected {
				t.Error("the namespace is no longer protected")
			}
			if other := w.Engine.Namespaces["other"]; other != nil && other.Known {
				t.Error("the namespace that was deleted is there")
			}
			if n, _ := w.Quotas.Smallest(testbuilders.Home, gc.ResourceJobs); n != 3 {
				t.Errorf("the quota allows %d", n)
			}
			if len(w.CronJobs["cron"].Active) != 1 || len(w.Engine.Namespaces[testbuilders.Home].Marks["marks-0"].Unused) != 1 {
				t.Error("the CronJob or the marks are older")
			}
		})
	}
}

var marksName = types.NamespacedName{Namespace: testbuilders.Home, Name: "marks-0"}

func replayedQuota(version string, jobs int64) *memory.Quota {
	return &memory.Quota{
		NamespacedName:  types.NamespacedName{Namespace: testbuilders.Home, Name: "q"},
		ResourceVersion: version, Counts: map[string]int64{memory.CountPrefix + gc.ResourceJobs: jobs},
	}
}

// restore makes the store go back to a version, with these policies and Jobs.
func (w *world) restore(version uint64, policies []*testbuilders.PolicyBuilder, jobs ...*lifecycle.Fact) {
	w.Helper()
	w.StartAnew(w.now)
	w.takes() // Nothing, whatever is due.
	w.version = version
	rv := strconv.FormatUint(version, 10)
	clear(w.policies)
	var all []*gc.CleanupPolicy
	for _, b := range policies {
		p := b.Version(rv).Obj()
		w.policies[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = freshness.SpecRevision(p.UID, p.Generation)
		all = append(all, p)
	}
	w.ReplacePolicies(all, rv, w.now)
	w.ReplaceClusterPolicies(nil, rv, w.now)
	clear(w.namespaces)
	w.namespaces[home] = freshness.Revision{UID: testbuilders.Namespace(testbuilders.Home, rv).UID, Version: rv}
	w.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, rv)}, rv, w.now)
	w.confirmFresh()
	w.takes() // Objects are not listed yet.
	clear(w.facts)
	var compact []*facts.Compact
	for _, f := range jobs {
		f.ResourceVersion = version
		w.facts[f.Name] = f
		compact = append(compact, facts.Compress(f))
	}
	w.ReplaceCronJobs(nil, w.now)
	for _, resource := range []string{gc.ResourceJobs, gc.ResourcePods} {
		w.Observing(resource, nil, w.now)
		w.driver.Replace(resource, compact, version, w.now)
		compact = nil
	}
	w.stepAll()
	w.confirmFresh()
}

// TestObjectsOfARestoredStoreAreDeleted: objects that were deleted after the backup come back with it, in versions that are older than the
// last ones seen. Objects that were created after the backup are gone.
func TestObjectsOfARestoredStoreAreDeleted(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.version = 1000
	w.upsert(job(2*time.Hour, "deleted"), job(0, "young"), job(0, "newer"))
	w.confirmFresh()
	w.takes("deleted")
	w.done("deleted", deletion.Accepted)
	w.removed("deleted")
	w.restore(500, []*testbuilders.PolicyBuilder{ttlPolicy("1h", 1)}, job(2*time.Hour, "deleted"), job(0, "young"))
	if n := w.Totals(w.now).Objects; n != 2 {
		t.Errorf("%d objects, want 2", n)
	}
	w.takes("deleted")
	if o := w.orders["deleted"]; o.Fact.ResourceVersion != 500 {
		t.Errorf("the order is for version %d", o.Fact.ResourceVersion)
	}
	if back := w.TakeWentBack(9); len(back) != 0 {
		t.Errorf("these went back: %+v", back)
	}
}

// TestAnAcceptedDeleteOfARestoredObjectDoesNotCount: the object is not being deleted any more.
func TestAnAcceptedDeleteOfARestoredObjectDoesNotCount(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.version = 1000
	w.upsert(job(2*time.Hour, "a"))
	w.confirmFresh()
	w.takes("a")
	w.done("a", deletion.Accepted)
	w.restore(500, []*testbuilders.PolicyBuilder{ttlPolicy("1h", 1)}, job(2*time.Hour, "a"))
	w.takes("a")
}

// TestAnswersFromBeforeARestore: whatever the API server answers to a request that was in flight when the store went back, the object is
// read before the next DELETE, even if it has the version of the request.
func TestAnswersFromBeforeARestore(t *testing.T) {
	for _, outcome := range []deletion.Outcome{deletion.Accepted, deletion.Conflict, deletion.NotFound} {
		w := newWorld(t, ttlPolicy("1h", 1))
		w.version = 499
		w.upsert(job(2*time.Hour, "a"))
		w.version = 1000
		w.confirmFresh()
		w.takes("a")
		w.restore(500, []*testbuilders.PolicyBuilder{ttlPolicy("1h", 1)}, job(2*time.Hour, "a"))
		w.done("a", outcome)
		w.pass(time.Minute)
		w.takes("a")
		again := w.orders["a"]
		if !again.Reread {
			t.Errorf("outcome %v: the object is not read again", outcome)
		}
		if _, ok := w.Retake(again, inVersion(job(2*time.Hour, "a"), 500), w.now); !ok {
			t.Errorf("outcome %v: the object in version 500 is not deleted", outcome)
		}
	}
}

// TestAPolicyThatWentBackIsAChange: the change is assessed and reported.
func TestAPolicyThatWentBackIsAChange(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.Config.HoldAbove = 2
	w.version = 1000
	w.policy(ttlPolicy("never", 2))
	w.upsert(job(2*time.Hour, "a"), job(2*time.Hour, "b"), job(2*time.Hour, "c"))
	w.restore(500, []*testbuilders.PolicyBuilder{ttlPolicy("1h", 1)},
		job(2*time.Hour, "a"), job(2*time.Hour, "b"), job(2*time.Hour, "c"))
	w.takes()
	w.oneHold("p", 3)
	back := w.TakeWentBack(9)
	if len(back) != 1 || back[0].Name != "p" || !strings.Contains(back[0].Text, "from generation 2 (resourceVersion 1001) to generation 1 (resourceVersion 500)") {
		t.Errorf("these went back: %+v", back)
	}
}

// TestFollowersTellWhatWentBack: the leader cannot renew its Lease during a restore, so the next leader reports what went back: a policy
// that was created after the backup, one that was deleted, and the labels of a namespace.
func TestFollowersTellWhatWentBack(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.version = 1000
	w.policy(testbuilders.Policy("created").Default("1h"))
	w.SetNamespace(testbuilders.Namespace(testbuilders.Home, w.next(), "team", "a"), w.now)
	w.Follow()
	w.now = w.now.Add(time.Minute)
	w.restore(500, []*testbuilders.PolicyBuilder{ttlPolicy("1h", 1), testbuilders.Policy("deleted").Default("1h")})
	w.Lead()
	var got []string
	for _, back := range append(w.TakeWentBack(1), w.TakeWentBack(9)...) {
		if !back.Since.Equal(w.now) {
			t.Errorf("%s went back at %v", back.Name, back.Since)
		}
		_, change, _ := strings.Cut(back.Text, "with it ")
		change, _, _ = strings.Cut(change, ". Check")
		got = append(got, change)
	}
	want := []string{
		"cleanuppolicies.gc.winnow.dev/created: from generation 1 (resourceVersion 1001) to none",
		"cleanuppolicies.gc.winnow.dev/deleted: from none to generation 1 (resourceVersion 500)",
		`the labels of namespace "team-a": from team=a to `,
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || len(w.TakeWentBack(9)) > 0 {
		t.Errorf("these went back: %q", got)
	}
}

// TestObjectsThatCameBackAreAChange: a restore that makes too many objects due at once is held, even if no policy went back.
func TestObjectsThatCameBackAreAChange(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.Config.HoldAbove = 2
	w.version = 1000
	w.restore(500, []*testbuilders.PolicyBuilder{ttlPolicy("1h", 1)},
		job(2*time.Hour, "a"), job(2*time.Hour, "b"), job(2*time.Hour, "c"))
	w.takes()
	w.oneHold("p", 3)
}

// TestAListThatShowsThatTheStoreWentBack: a list that is newer than memory has an object in an older state than memory.
func TestAListThatShowsThatTheStoreWentBack(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.version = 1000
	w.upsert(job(0, "a"))
	w.driver.Replace(gc.ResourceJobs, []*facts.Compact{facts.Compress(inVersion(job(2*time.Hour, "a"), 500))}, 2000, w.now)
	w.confirmFresh()
	w.takes("a")
	w.SetQuota(replayedQuota("1002", 9), w.now)
	if w.ReplaceQuotas([]*memory.Quota{replayedQuota("500", 3)}, w.now); w.Quotas.ByNamespace[testbuilders.Home]["q"].Counts["count/jobs.batch"] != 3 {
		t.Error("the quota is not that of the list")
	}
}

// TestUnconfirmedHoldsEverything: while no reading agrees, people see why nothing is deleted, until a reading agrees.
func TestUnconfirmedHoldsEverything(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.upsert(job(2*time.Hour, "a"))
	wrong := w.consistentRead()
	for range 70 {
		w.now = w.now.Add(time.Second)
		wrong.Began, wrong.ServerTime = w.now, w.now
		wrong.Namespaces.Version, wrong.Namespaces.Revisions = "5000", nil
		if w.ConfirmFresh(wrong, w.now) {
			t.Fatal("the reading agrees")
		}
		w.ReadFailed("", w.now)
		w.Expire(w.now)
	}
	w.decided("a", policy.Hold, policy.ReasonUnobserved)
	if r := w.report("p"); !strings.Contains(r.Unobserved, "the watch of namespaces") || !w.Totals(w.now).Unconfirmed || !w.NeedsRead(w.now) {
		t.Errorf("the report says %q, needs a reading: %v", r.Unobserved, w.NeedsRead(w.now))
	}
	w.pass(time.Second)
	w.takes("a")
	if w.Totals(w.now).Unconfirmed {
		t.Error("the metric still says that nothing is confirmed")
	}
}
