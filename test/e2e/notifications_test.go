// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/jobs"
)

// TestNotifications: a receiver that fails at times gets each deletion of a run, and a hold with the command that approves it. If a rule
// demands that, nothing goes before the receiver has acknowledged its notice.
func TestNotifications(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w := newRestorable(t, stores(), append(r.flags, "--default-hold-above=50")...)

	const n = 300
	w.namespace("run", nil, 0, v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	// What finishes once the policy is observed is due because time passes, and not by the change.
	w.waitStatus("run", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.ObservedGeneration == 1 })
	want := w.finishedJobs("run", n)
	r.expectDeletions(t, "run", want)

	const held = 60
	w.namespace("held", nil, 0, v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1h")})
	want = w.finishedJobs("held", held)
	w.change("held", `{"ttlAfterFinished":"0s"}`)
	found := r.waitHold(t, "held", "Found")
	if !strings.HasPrefix(found.ApproveCommand, "kubectl annotate --overwrite cleanuppolicies.gc.winnow.dev p -n held ") || found.Objects != held {
		t.Errorf("the hold is %+v", found)
	}
	eventually(t, func(ctx context.Context) string { // It tries until Winnow has time to check the approval.
		if _, stderr, err := w.cluster.Kubectl(ctx, strings.Fields(strings.TrimPrefix(found.ApproveCommand, "kubectl "))...); err != nil {
			return fmt.Sprintf("%v: %s", err, stderr)
		}
		return ""
	})
	r.expectDeletions(t, "held", want)
	if ended := r.waitHold(t, "held", "Ended"); ended.ID != found.ID || ended.ApproveCommand != "" {
		t.Errorf("the hold %+v has ended as %+v", found, ended)
	}
	r.mu.Lock()
	if r.refused < 3 {
		t.Errorf("the receiver has failed only %d times", r.refused)
	}
	r.down = true
	r.mu.Unlock()
	testAcknowledgedNotices(w, r)
}

// testAcknowledgedNotices: the receiver is down at first.
func testAcknowledgedNotices(w *restorable, r *receiver) {
	w.namespace("told", nil, 0, v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{Name: "r", TTL: ttl("0s"), Notice: ttl("1s"), NoticeDelivery: v1alpha1.NoticeDeliveryRequired},
	}})
	want := w.finishedJobs("told", 3)
	eventually(w.T, func(ctx context.Context) string {
		out, stderr, err := w.cluster.Kubectl(ctx, "get", "cand", "-n", "told", "-o", "jsonpath={.items[*].status.message}")
		if n := strings.Count(out, "after the receiver of notifications has acknowledged that"); err != nil || n != want.Len() {
			return fmt.Sprintf("%d of %d objects wait for the receiver: %v: %s%s", n, want.Len(), err, stderr, out)
		}
		return ""
	})
	r.mu.Lock()
	r.down = false
	r.mu.Unlock()
	r.expectDeletions(w.T, "told", want)
	events, err := w.kube.EventsV1().Events("told").List(w.Context(), metav1.ListOptions{})
	must(w.T, err)
	announced := 0
	for i := range events.Items {
		if events.Items[i].Reason == "DeletionNotice" {
			announced++
		}
	}
	if announced != want.Len() {
		w.Errorf("%d events announce the deletion of %d Jobs", announced, want.Len())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	told := map[string]time.Time{}
	for _, e := range r.events {
		if e.Type == "dev.winnow.gc.notice.v1" {
			told[e.Data.Object.UID] = e.arrived
		}
	}
	for _, e := range r.events {
		if e.Type != "dev.winnow.gc.deletion.v1" || e.Data.Object.Namespace != "told" {
			continue
		}
		if at := told[e.Data.Object.UID]; at.IsZero() || e.Data.DeletedAt.Sub(at) < noticeOfASecond {
			w.Errorf("%s was deleted at %v, and the receiver has its notice since %v", e.Subject, e.Data.DeletedAt, at)
		}
	}
}

// finishedJobs creates Jobs that have just finished, and returns their UIDs.
func (w *restorable) finishedJobs(ns string, n int) sets.Set[string] {
	w.Helper()
	created, err := jobs.Create(w.Context(), w.kube, ns, n)
	must(w.T, err)
	at := time.Now()
	must(w.T, jobs.Finish(w.Context(), w.kube, created, func(int) time.Time { return at }))
	uids := sets.New[string]()
	for _, j := range created {
		uids.Insert(string(j.UID))
	}
	return uids
}

// receiver is a webhook that fails at times.
type receiver struct {
	flags []string

	mu       sync.Mutex
	requests int
	refused  int
	down     bool                    // it accepts nothing
	events   map[string]notification // by source and ID: an event may come twice
}

type notification struct {
	arrived                   time.Time // first
	ID, Type, Source, Subject string
	Data                      struct {
		ID, Phase, ApproveCommand string
		Objects                   int
		DeletedAt                 time.Time
		Object                    struct{ Resource, Namespace, Name, UID string }
		Policy                    struct {
			Namespace, Name string
			Generation      int64
		}
	}
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{events: map[string]notification{}}
	server := httptest.NewTLSServer(r)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	must(t, os.WriteFile(token, []byte("secret\n"), 0o600))
	r.flags = []string{"--notify-url=" + server.URL + "/winnow", "--notify-ca-file=" + ca, "--notify-token-file=" + token}
	return r
}

// ServeHTTP fails every other request, each time in another way.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.requests++
	if r.requests%2 == 1 {
		r.refused++
		switch r.requests / 2 % 3 {
		case 0:
			w.WriteHeader(http.StatusInternalServerError)
		case 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			panic(http.ErrAbortHandler)
		}
		return
	}
	if request.Header.Get("Authorization") != "Bearer secret" || request.Header.Get("Content-Type") != "application/cloudevents-batch+json" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var events []notification
	if err := json.NewDecoder(request.Body).Decode(&events); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, e := range events {
		key := e.Source + " " + e.ID
		if e.arrived = r.events[key].arrived; e.arrived.IsZero() {
			e.arrived = time.Now()
		}
		r.events[key] = e
	}
}

// expectDeletions waits until the deletions of a namespace that have arrived are those of these Jobs.
func (r *receiver) expectDeletions(t *testing.T, ns string, want sets.Set[string]) {
	t.Helper()
	source := "/apis/gc.winnow.dev/v1alpha1/namespaces/" + ns + "/cleanuppolicies/p"
	eventually(t, func(context.Context) string {
		r.mu.Lock()
		defer r.mu.Unlock()
		got := sets.New[string]()
		for _, e := range r.events {
			object := e.Data.Object
			if e.Type != "dev.winnow.gc.deletion.v1" || object.Namespace != ns {
				continue
			}
			if e.Source != source || e.Subject != "jobs.batch/"+ns+"/"+object.Name || e.Data.Policy.Name != "p" || e.Data.Policy.Generation < 1 {
				t.Errorf("got %+v", e)
			}
			got.Insert(object.UID)
		}
		if !got.Equal(want) {
			return fmt.Sprintf("%d deletions of %s have arrived, %d of %d expected ones are missing", len(got), ns, len(want.Difference(got)), len(want))
		}
		return ""
	})
}

// waitHold waits until a hold of a namespace has arrived in a phase, and returns its data.
func (r *receiver) waitHold(t *testing.T, ns, phase string) (hold struct {
	ID, ApproveCommand string
	Objects            int
}) {
	t.Helper()
	eventually(t, func(context.Context) string {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range r.events {
			if e.Type == "dev.winnow.gc.hold.v1" && e.Data.Policy.Namespace == ns && e.Data.Phase == phase {
				hold.ID, hold.ApproveCommand, hold.Objects = e.Data.ID, e.Data.ApproveCommand, e.Data.Objects
				return ""
			}
		}
		return fmt.Sprintf("no hold of %s is %s", ns, phase)
	})
	return hold
}
