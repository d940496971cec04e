// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	informers "github.com/winnow-dev/winnow/pkg/generated/informers/externalversions"
)

// next returns the next event of a watch; bookmarks are left out unless wanted.
func next(t *testing.T, w watch.Interface, timeout time.Duration, bookmarks bool) (watch.EventType, *v1alpha1.CleanupPolicy) {
	t.Helper()
	for deadline := time.After(timeout); ; {
		select {
		case event, ok := <-w.ResultChan():
			policy, isPolicy := event.Object.(*v1alpha1.CleanupPolicy)
			if !ok || !isPolicy {
				t.Fatalf("the watch ended with %s %+v", event.Type, event.Object)
			}
			if event.Type != watch.Bookmark || bookmarks {
				return event.Type, policy
			}
		case <-deadline:
			t.Fatalf("no event within %s", timeout)
		}
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	created := create(t, ns, "a", `{ttlAfterFinished: 1h}`)
	w, err := client.GcV1alpha1().CleanupPolicies(ns).Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: created.ResourceVersion, AllowWatchBookmarks: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	kubectl(t, "patch", "cup", "a", "-n", ns, "--type=merge", "-p", `{"spec":{"ttlAfterFinished":"2h"}}`)
	create(t, ns, "b", `{ttlAfterFinished: 1h}`)
	kubectl(t, "delete", "cup", "a", "-n", ns)
	var last *v1alpha1.CleanupPolicy
	for _, want := range []string{"MODIFIED a", "ADDED b", "DELETED a"} {
		var event watch.EventType
		event, last = next(t, w, 10*time.Second, false)
		if got := fmt.Sprintf("%s %s", event, last.Name); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	event, bookmark := next(t, w, 2*time.Minute, true)
	if event != watch.Bookmark || revision(t, bookmark) < revision(t, last) {
		t.Errorf("got %s at %s, want a bookmark at %s or later", event, bookmark.ResourceVersion, last.ResourceVersion)
	}
}

func revision(t *testing.T, policy *v1alpha1.CleanupPolicy) int {
	t.Helper()
	n, err := strconv.Atoi(policy.ResourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWatchWithSelectors(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	w, err := client.GcV1alpha1().CleanupPolicies(ns).Watch(t.Context(), metav1.ListOptions{
		LabelSelector: "team=blue", FieldSelector: "spec.mode=Enforce",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	create(t, ns, "a", `{ttlAfterFinished: 1h}`)
	kubectl(t, "label", "cup", "a", "-n", ns, "team=blue")
	kubectl(t, "patch", "cup", "a", "-n", ns, "--type=merge", "-p", `{"spec":{"mode":"Preview"}}`)
	for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
		if got, _ := next(t, w, 10*time.Second, false); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

// TestStreamingList is how informers read since client-go 0.35: the list as events, and a bookmark that ends it.
func TestStreamingList(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	create(t, ns, "a", `{ttlAfterFinished: 1h}`)
	create(t, ns, "b", `{ttlAfterFinished: 1h}`)
	stream := true
	w, err := client.GcV1alpha1().CleanupPolicies(ns).Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &stream, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, want := range []string{"ADDED a", "ADDED b", "BOOKMARK "} {
		event, policy := next(t, w, 10*time.Second, true)
		if got := fmt.Sprintf("%s %s", event, policy.Name); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		if ends := policy.Annotations[metav1.InitialEventsAnnotationKey] == "true"; ends != (event == watch.Bookmark) {
			t.Errorf("%s %s: the annotation %s is %v", event, policy.Name, metav1.InitialEventsAnnotationKey, ends)
		}
	}
}

func TestInformer(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	create(t, ns, "a", `{ttlAfterFinished: 1h}`)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(ns))
	policies := factory.Gc().V1alpha1().CleanupPolicies()
	informer := policies.Informer()
	factory.Start(t.Context().Done())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	if _, err := policies.Lister().CleanupPolicies(ns).Get("a"); err != nil {
		t.Error(err)
	}
	kubectl(t, "delete", "cup", "a", "-n", ns)
	eventually(t, 10*time.Second, func(context.Context) error {
		if _, err := policies.Lister().CleanupPolicies(ns).Get("a"); err == nil {
			return errors.New("the deleted policy is still there")
		}
		return nil
	})
}

func TestWatchThroughKubectl(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	create(t, ns, "a", `{ttlAfterFinished: 1h}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	output := make(chan string, 1)
	go func() {
		out, _, _ := shared.Kubectl(ctx, "get", "cup", "-n", ns, "--watch", "--output-watch-events", "--request-timeout=3s", "--no-headers")
		output <- out
	}()
	eventually(t, 30*time.Second, func(context.Context) error {
		if _, _, err := shared.Kubectl(ctx, "annotate", "cup", "a", "-n", ns, "--overwrite", "at="+fmt.Sprint(time.Now().UnixNano())); err != nil {
			return err
		}
		select {
		case out := <-output:
			output <- out
			return nil
		default:
			return errors.New("kubectl still watches")
		}
	})
	contains(t, <-output, "ADDED", "MODIFIED", "Enforce")
}
