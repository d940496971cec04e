// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	informers "github.com/winnow-dev/winnow/pkg/generated/informers/externalversions"
)

// next returns the next event of a watch; bookmarks are left out unless wanted.
func next(t *testing.T, w watch.Interface, bookmarks bool) (watch.EventType, metav1.Object) {
	t.Helper()
	for deadline := time.After(waitMost); ; {
		select {
		case event, ok := <-w.ResultChan():
			policy, isPolicy := event.Object.(metav1.Object)
			if !ok || !isPolicy {
				t.Fatalf("the watch ended with %s %+v", event.Type, event.Object)
			}
			if event.Type != watch.Bookmark || bookmarks {
				return event.Type, policy
			}
		case <-deadline:
			t.Fatalf("no event within %s", waitMost)
		}
	}
}

// watch watches the policies of the scope, until the test ends.
func (p scope) watch(options metav1.ListOptions) watch.Interface {
	p.t.Helper()
	options.LabelSelector = strings.Trim(options.LabelSelector+","+p.selector(), ",")
	w, err := p.client().Watch(p.t.Context(), options)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(w.Stop)
	return w
}

func TestWatch(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		created := p.create("a", `{ttlAfterFinished: 1h}`)
		w := p.watch(metav1.ListOptions{ResourceVersion: created.ResourceVersion, AllowWatchBookmarks: true})
		kubectl(t, p.on("patch", "a", "--type=merge", "-p", `{"spec":{"ttlAfterFinished":"2h"}}`)...)
		p.create("b", `{ttlAfterFinished: 1h}`)
		kubectl(t, p.on("delete", "a")...)
		var last metav1.Object
		for _, want := range []string{"MODIFIED " + p.called("a"), "ADDED " + p.called("b"), "DELETED " + p.called("a")} {
			var event watch.EventType
			event, last = next(t, w, false)
			if got := fmt.Sprintf("%s %s", event, last.GetName()); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
		event, bookmark := next(t, w, true)
		if event != watch.Bookmark || revision(t, bookmark) < revision(t, last) {
			t.Errorf("got %s at %s, want a bookmark at %s or later", event, bookmark.GetResourceVersion(), last.GetResourceVersion())
		}
	})
}

func revision(t *testing.T, policy metav1.Object) int {
	t.Helper()
	n, err := strconv.Atoi(policy.GetResourceVersion())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWatchWithSelectors(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		w := p.watch(metav1.ListOptions{LabelSelector: "team=blue", FieldSelector: "spec.mode=Enforce"})
		p.create("a", `{ttlAfterFinished: 1h}`)
		kubectl(t, p.on("label", "a", "team=blue")...)
		kubectl(t, p.on("patch", "a", "--type=merge", "-p", `{"spec":{"mode":"Preview"}}`)...)
		for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
			if got, _ := next(t, w, false); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
	})
}

// TestStreamingList is how informers read since client-go 0.35: the list as events, and a bookmark that ends it.
func TestStreamingList(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		p.create("a", `{ttlAfterFinished: 1h}`)
		p.create("b", `{ttlAfterFinished: 1h}`)
		stream := true
		w := p.watch(metav1.ListOptions{
			SendInitialEvents: &stream, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		for _, want := range []string{"ADDED " + p.called("a"), "ADDED " + p.called("b"), "BOOKMARK "} {
			event, policy := next(t, w, true)
			if got := fmt.Sprintf("%s %s", event, policy.GetName()); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			if ends := policy.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"; ends != (event == watch.Bookmark) {
				t.Errorf("%s %s: the annotation %s is %v", event, policy.GetName(), metav1.InitialEventsAnnotationKey, ends)
			}
		}
	})
}

// TestInformer reads through the generated informers and listers, as a controller does.
func TestInformer(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		p.create("a", `{ttlAfterFinished: 1h}`)
		policies := informers.NewSharedInformerFactory(client, 0).Gc().V1alpha1()
		informer := policies.ClusterCleanupPolicies().Informer
		listed := func() error {
			_, err := policies.ClusterCleanupPolicies().Lister().Get(p.called("a"))
			return err
		}
		if p.namespaced {
			informer = policies.CleanupPolicies().Informer
			listed = func() error {
				_, err := policies.CleanupPolicies().Lister().CleanupPolicies(p.id).Get("a")
				return err
			}
		}
		go informer().Run(t.Context().Done())
		ctx, cancel := context.WithTimeout(t.Context(), waitMost)
		defer cancel()
		if !cache.WaitForCacheSync(ctx.Done(), informer().HasSynced) {
			t.Fatal("the informer does not sync")
		}
		if err := listed(); err != nil {
			t.Error(err)
		}
		kubectl(t, p.on("delete", "a")...)
		eventually(t, func(context.Context) error {
			if listed() == nil {
				return errors.New("the deleted policy is still there")
			}
			return nil
		})
	})
}

func TestWatchThroughKubectl(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		p.create("a", `{ttlAfterFinished: 1h}`)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		output := make(chan string, 1)
		go func() {
			out, _, _ := shared.Kubectl(ctx, p.onAll("get", "--watch", "--output-watch-events", "--request-timeout=20s", "--no-headers")...)
			output <- out
		}()
		eventually(t, func(context.Context) error {
			if _, _, err := shared.Kubectl(ctx, p.on("annotate", "a", "--overwrite", "at="+fmt.Sprint(time.Now().UnixNano()))...); err != nil {
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
	})
}
