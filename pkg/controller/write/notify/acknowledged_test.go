// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// given is when the notices were given that must be acknowledged.
var given = testbuilders.Now.Add(-time.Hour)

// engineOf has the notices that must be acknowledged, by namespace and object.
type engineOf struct {
	mu           sync.Mutex
	must         map[string]map[types.UID]view.DeletionNotice
	acknowledged []types.UID
}

func (e *engineOf) needs(namespace string, names ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.must[namespace] == nil {
		e.must[namespace] = map[types.UID]view.DeletionNotice{}
	}
	for _, name := range names {
		f := testbuilders.Job(name).Complete(given).Fact()
		f.Namespace = namespace
		e.must[namespace][f.UID] = view.DeletionNotice{
			Fact: f, PolicyUID: "uid-p", Due: testbuilders.Now, Announcement: policy.Announcement{Given: given, At: given},
		}
	}
}

func (e *engineOf) NamespacesToDeliver() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.must))
}

func (e *engineOf) NoticesToDeliver(ns string, except func(types.UID) bool, most int, _ time.Time) (out []view.DeletionNotice) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, uid := range slices.Sorted(maps.Keys(e.must[ns])) {
		if !except(uid) && len(out) < most {
			out = append(out, e.must[ns][uid])
		}
	}
	return out
}

func (e *engineOf) NoticeDelivered(of types.UID, at, _, _ time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, all := range e.must {
		if n, ok := all[of]; ok && n.Given.Equal(at) {
			delete(all, of)
			e.acknowledged = append(e.acknowledged, of)
		}
	}
}

func (e *engineOf) got() []types.UID {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(slices.Values(e.acknowledged))
}

// delivering runs a test with a leader whose engine has notices that must be acknowledged.
func delivering(t *testing.T, test func(f *fixture, e *engineOf)) {
	t.Helper()
	bubble(t, func(f *fixture) {
		e := &engineOf{must: map[string]map[types.UID]view.DeletionNotice{}}
		f.demanded.tracker, f.Notifier.Tracker = e, e
		f.Lead()
		test(f, e)
	})
}

const noticeOfA = "uid-a/notice/2026-03-01T12:00:00Z" // The due time: the advance of these notices is empty.

// TestDemandedNotices: a notice is sent until the receiver acknowledges it, however long it is down, and counts from then.
func TestDemandedNotices(t *testing.T) {
	delivering(t, func(f *fixture, e *engineOf) {
		f.set(true)
		e.needs(testbuilders.Home, "a")
		for range 3 {
			f.Deliver()
			passes(time.Hour)
		}
		if got := e.got(); len(got) > 0 {
			t.Fatalf("acknowledged %v", got)
		}
		f.set(false)
		f.Deliver()
		passes(2 * backoffMost)
		f.expect(noticeOfA)
		f.Deliver()
		passes(time.Minute)
		f.expect(noticeOfA)
		if got := e.got(); !slices.Equal(got, []types.UID{"uid-a"}) {
			t.Errorf("acknowledged %v", got)
		}
	})
}

// TestARefusedNotice: it is sent again after a while, and does not keep others from being acknowledged.
func TestARefusedNotice(t *testing.T) {
	delivering(t, func(f *fixture, e *engineOf) {
		f.judge = refusing(answer{err: errDown, refused: true}, noticeOfA)
		e.needs(testbuilders.Home, "a", "b")
		for range 5 {
			f.Deliver()
			passes(time.Minute)
		}
		if got := e.got(); !slices.Equal(got, []types.UID{"uid-b"}) {
			t.Fatalf("acknowledged %v", got)
		}
		f.mu.Lock()
		f.judge = nil
		f.mu.Unlock()
		f.Deliver()
		passes(time.Second)
		if got := e.got(); len(got) != 1 {
			t.Errorf("sent again at once: acknowledged %v", got)
		}
		passes(refusedFor)
		f.Deliver()
		passes(time.Minute)
		if got := e.got(); len(got) != 2 {
			t.Errorf("acknowledged %v", got)
		}
	})
}

// TestManyDemandedNotices: none is lost, namespaces take turns, and little is in memory while the receiver is down.
func TestManyDemandedNotices(t *testing.T) {
	delivering(t, func(f *fixture, e *engineOf) {
		f.set(true)
		var names []string
		for i := range 1000 {
			names = append(names, fmt.Sprint("job-", i))
		}
		e.needs("many", names...)
		e.needs("other", "x")
		f.Deliver()
		passes(time.Hour)
		if n := len(f.demanded.sent); n > batchMost+asideMost {
			t.Errorf("%d are on the way", n)
		}
		f.set(false)
		f.Deliver()
		passes(2 * backoffMost)
		if all, _ := f.got(); len(all) < 1001 || !slices.Contains(e.got(), "uid-x") {
			t.Errorf("accepted %d", len(all))
		}
		if got := len(e.got()); got != 1001 {
			t.Errorf("%d are acknowledged", got)
		}
	})
}

// TestLanesTakeTurns: many notices do not keep deletions waiting.
func TestLanesTakeTurns(t *testing.T) {
	delivering(t, func(f *fixture, e *engineOf) {
		var names []string
		for i := range 10 * batchMost {
			names = append(names, fmt.Sprint("job-", i))
		}
		e.needs("many", names...)
		f.Deliver()
		f.Deleted([]deletion.Gone{gone("a")})
		passes(time.Minute)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.accepted) < 10 || f.accepted[0][0].Type() != TypeDeletion && f.accepted[1][0].Type() != TypeDeletion {
			t.Errorf("%d requests, and the second has %s", len(f.accepted), f.accepted[1][0].Type())
		}
	})
}

// TestOnlyTheLeaderDelivers: a replica that follows sends nothing, and loses nothing when it ends.
func TestOnlyTheLeaderDelivers(t *testing.T) {
	delivering(t, func(f *fixture, e *engineOf) {
		f.Follow()
		e.needs(testbuilders.Home, "a")
		f.Deliver()
		passes(time.Minute)
		f.expect()
		f.Lead()
		f.set(true)
		f.Deliver()
		passes(time.Minute)
		f.end()
		<-f.ended
		if lost := f.lanes[demandedNotices].losses.lost; lost.QueueFull+lost.Refused > 0 {
			t.Errorf("lost %+v", lost)
		}
	})
}
