// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/write/marks"
	"github.com/winnow-dev/winnow/pkg/controller/write/records"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/winnow"
)

var (
	overRestarts = flag.Int("over-restarts", 180, "how many objects TestDeletionsOverRestarts deletes")
	restartsSeed = flag.Uint64("restarts-seed", 1, "the seed of what TestDeletionsOverRestarts does")
)

// betweenRestarts is how many objects are marked between two restarts at least. There are about twenty restarts at most.
const betweenRestarts = 60

// The test below stops replicas, so it is not parallel.

// TestDeletionsOverRestarts: an archiver marks one Job after the other, while the leader ends again and again at random moments, by SIGTERM
// or SIGKILL. No DELETE is sent before the mark, or before the notice has been out for long enough that was given first; each object goes,
// and each has exactly one record, except that a SIGKILL may lose those of the last seconds.
func TestDeletionsOverRestarts(t *testing.T) {
	n, ns := *overRestarts, newNamespace(t)
	t.Logf("-restarts-seed=%d", *restartsSeed)
	r := rand.New(rand.NewPCG(*restartsSeed, 0))
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{Name: "waits", TTL: ttl("1s"), WaitFor: archived("7d", v1alpha1.WaitTimeoutDelete), Notice: ttl("1s")},
	}})
	stopWatching, given := noticesGiven(t, ns)
	jobs := finishedJobs(t, ns, n)
	uids := map[string]types.UID{}
	for _, j := range jobs {
		uids["jobs/"+j.Name] = j.UID
	}
	r.Shuffle(n, func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })

	between := max(betweenRestarts, n/20)
	marked, losses := make(map[string]time.Time, n), []loss{}
	for from := 0; from < n; from += between {
		some := jobs[from:min(from+between, n)]
		for _, j := range some {
			marked["jobs/"+j.Name] = time.Now() // before any of the requests below is sent
		}
		each(len(some), func(i int) {
			patch := []byte(`{"metadata":{"annotations":{"example.com/archived":"true"}}}`)
			_, err := kube.BatchV1().Jobs(ns).Patch(t.Context(), some[i].Name, types.MergePatchType, patch, metav1.PatchOptions{})
			must(t, err)
		})
		must(t, poll.Pause(t.Context(), time.Duration(r.IntN(2000))*time.Millisecond))
		last := leader(t)
		if r.IntN(2) == 0 {
			must(t, last.Stop())
		} else {
			losses = append(losses, killLosing(t, last))
		}
		must(t, last.Start(whole))
	}
	waitJobs(t, ns, 0)
	stopWatching()

	for _, d := range deletions(t, ns) {
		at := d.RequestReceivedTimestamp.Time
		if early := marked[d.object].Sub(at); early > 0 {
			t.Errorf("the DELETE of %s was sent %v before it was archived", d.object, early)
		}
		told, ok := given[uids[d.object]]
		if early := told.Add(noticeOfASecond).Sub(at); !ok || early > 0 {
			t.Errorf("the DELETE of %s was sent %v before its notice of %v was over", d.object, early, told)
		}
	}
	expectRecords(t, ns, losses...)
}

// noticeOfASecond is for how long a notice is out of which a rule demands a second: two minutes more, because clocks may be apart.
const noticeOfASecond = time.Second + 2*time.Minute

// noticesGiven returns when the notice of each object of a namespace was given last, as Winnow has stored it, until it is stopped.
func noticesGiven(t *testing.T, ns string) (stop func(), given map[types.UID]time.Time) {
	t.Helper()
	client, err := dynamic.NewForConfig(suite.RESTConfig())
	must(t, err)
	stored := client.Resource(marks.Resource).Namespace(ns)
	list, err := stored.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return stored.Watch(ctx, options)
		},
	})
	must(t, err)
	given = map[types.UID]time.Time{}
	go func() {
		for e := range watcher.ResultChan() {
			if object, ok := e.Object.(*unstructured.Unstructured); ok {
				m, _ := marks.Decode(object) // Without an object of the map, the test fails.
				for uid, n := range m.Announced {
					given[uid] = n.Given
				}
			}
		}
	}()
	return func() { watcher.Stop(); <-watcher.Done() }, given
}

// loss is a time whose deletions may lack a record, because the leader was killed.
type loss struct{ from, until time.Time }

// killLosing kills the leader, and returns what may be lost by that.
func killLosing(t *testing.T, r *winnow.Replica) loss {
	t.Helper()
	from := time.Now().Add(-records.LostAtMost)
	kill(t, r)
	return loss{from, time.Now()}
}

// expectRecords waits until each accepted DELETE of a namespace has exactly one record, except that those of these times may lack it.
func expectRecords(t *testing.T, ns string, losses ...loss) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		got, err := recorded(ctx, ns)
		if err != nil {
			return err.Error()
		}
		all, certain := accepted(t, ns, losses)
		if more := without(got, all); len(more) > 0 {
			return fmt.Sprintf("records of objects whose DELETE was not accepted, or more than one: %q", more)
		}
		if missing := without(certain, got); len(missing) > 0 {
			return fmt.Sprintf("%d records of %d deletions, %d of them certain; missing: %q", len(got), len(all), len(certain), missing)
		}
		t.Logf("%d records of %d deletions, %d of them certain", len(got), len(all), len(certain))
		return ""
	})
}
