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
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/write/records"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/winnow"
)

var (
	overRestarts = flag.Int("over-restarts", 300, "how many objects TestDeletionsOverRestarts deletes")
	restartsSeed = flag.Uint64("restarts-seed", 1, "the seed of what TestDeletionsOverRestarts does")
)

// betweenRestarts is how many objects are marked between two restarts.
const betweenRestarts = 60

// The test below stops replicas, so it is not parallel.

// TestDeletionsOverRestarts: an archiver marks one Job after the other, while the leader ends again and again at random moments, by SIGTERM
// or SIGKILL. No DELETE is sent before the mark, each object goes, and each has exactly one record, except that a SIGKILL may lose those of
// the last seconds.
func TestDeletionsOverRestarts(t *testing.T) {
	n, ns := *overRestarts, newNamespace(t)
	t.Logf("-restarts-seed=%d", *restartsSeed)
	r := rand.New(rand.NewPCG(*restartsSeed, 0))
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{Name: "waits", TTL: ttl("1s"), WaitFor: archived("7d", v1alpha1.WaitTimeoutDelete)},
	}})
	jobs := finishedJobs(t, ns, n)
	r.Shuffle(n, func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })

	marked, losses := make(map[string]time.Time, n), []loss{}
	for from := 0; from < n; from += betweenRestarts {
		some := jobs[from:min(from+betweenRestarts, n)]
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

	for _, d := range deletions(t, ns) {
		if early := marked[d.object].Sub(d.RequestReceivedTimestamp.Time); early > 0 {
			t.Errorf("the DELETE of %s was sent %v before it was archived", d.object, early)
		}
	}
	expectRecords(t, ns, losses...)
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
