// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"
)

const (
	// servedObjects is how many objects are created, read and updated by each number of clients.
	servedObjects = 400
	// servedNamespace has the objects of both APIs.
	servedNamespace = "default"
	updatedTTL      = "8d"
)

// servedCRD is a custom resource of the shape of a CleanupPolicy, which kube-apiserver serves by itself.
//
//go:embed served-crd.yaml
var servedCRD string

var (
	servedPolicies = schema.GroupVersionKind{Group: "gc.winnow.dev", Version: "v1alpha1", Kind: "CleanupPolicy"}
	servedCustom   = schema.GroupVersionKind{Group: "bench.winnow.dev", Version: "v1alpha1", Kind: "BenchPolicy"}
)

// served is one of the two APIs.
type served struct {
	kind    schema.GroupVersionKind
	objects dynamic.ResourceInterface
}

// servedFigures are the latencies of one API in milliseconds, by verb; watch is from when an update is sent until a watch tells
// of it.
type servedFigures struct{ create, get, update, watch sample }

// measureServed measures requests for policies through the aggregator, beside those for a custom resource.
func measureServed(ctx context.Context, o options, r *report) (err error) {
	w, err := newWorldWithWinnow(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	ours, theirs, err := w.serveBoth(ctx)
	if err != nil {
		return err
	}
	for _, clients := range []int{1, 16} {
		r.progress("served: %d at once ...", clients)
		ourFigures, err := ours.measure(ctx, clients)
		if err != nil {
			return fmt.Errorf("%s by %d: %w", ours.kind.Kind, clients, err)
		}
		theirFigures, err := theirs.measure(ctx, clients)
		if err != nil {
			return fmt.Errorf("%s by %d: %w", theirs.kind.Kind, clients, err)
		}
		r.add(servedRows(clients, ourFigures, theirFigures)...)
	}
	return nil
}

// serveBoth creates the custom resource, and waits until it is served.
func (w *world) serveBoth(ctx context.Context) (ours, theirs served, err error) {
	if _, _, err := w.cluster.KubectlStdin(ctx, servedCRD, "apply", "-f", "-"); err != nil {
		return ours, theirs, err
	}
	client, err := dynamic.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		return ours, theirs, err
	}
	api := func(kind schema.GroupVersionKind, resource string) served {
		return served{kind, client.Resource(kind.GroupVersion().WithResource(resource)).Namespace(servedNamespace)}
	}
	ours, theirs = api(servedPolicies, "cleanuppolicies"), api(servedCustom, "benchpolicies")
	return ours, theirs, eventually(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		_, err := theirs.objects.Create(ctx, theirs.object("first"), metav1.CreateOptions{})
		return err
	})
}

// object is a policy with two rules.
func (s served) object(name string) *unstructured.Unstructured {
	const spec = `
ttlAfterFinished: 7d
rules:
- name: failed
  resources: [jobs.batch]
  selector: {matchLabels: {app: nightly, team: data}}
  ttl: 30d
- name: previews
  resources: [jobs.batch]
  selector: {matchLabels: {app: preview}}
  ttl: 1h
`
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
	object.SetGroupVersionKind(s.kind)
	var decoded map[string]any
	if err := yaml.Unmarshal([]byte(spec), &decoded); err != nil {
		panic(err) // a constant
	}
	object.Object["spec"] = decoded
	return object
}

// measure creates objects by several clients at once, then reads all, then updates all.
func (s served) measure(ctx context.Context, clients int) (f servedFigures, err error) {
	name := func(i int) string { return fmt.Sprintf("by-%d-%d", clients, i) }
	f.create, err = timed(clients, func(i int) (time.Duration, error) {
		begin := time.Now()
		_, err := s.objects.Create(ctx, s.object(name(i)), metav1.CreateOptions{})
		return time.Since(begin), err
	})
	if err != nil {
		return f, err
	}
	f.get, err = timed(clients, func(i int) (time.Duration, error) {
		begin := time.Now()
		_, err := s.objects.Get(ctx, name(i), metav1.GetOptions{})
		return time.Since(begin), err
	})
	if err != nil {
		return f, err
	}
	watching, stop := context.WithTimeout(ctx, waitMost)
	defer stop() // which ends the watch
	watched, err := s.objects.Watch(watching, metav1.ListOptions{})
	if err != nil {
		return f, err
	}
	seen := make(chan map[string]time.Time, 1)
	go func() { seen <- firstUpdated(watched, servedObjects) }()
	begun := make([]time.Time, servedObjects)
	f.update, err = timed(clients, func(i int) (took time.Duration, err error) {
		begun[i], took, err = s.update(ctx, name(i))
		return took, err
	})
	if err != nil {
		return f, err
	}
	at := <-seen
	if len(at) < servedObjects {
		return f, fmt.Errorf("the watch told of %d of %d updates", len(at), servedObjects)
	}
	for i := range begun {
		f.watch = append(f.watch, milliseconds(at[name(i)].Sub(begun[i])))
	}
	return f, nil
}

// timed carries out all requests by several clients at once, and returns how long each took, in milliseconds.
func timed(clients int, request func(i int) (time.Duration, error)) (sample, error) {
	out := make(sample, servedObjects)
	var group errgroup.Group
	group.SetLimit(clients)
	for i := range out {
		group.Go(func() error {
			took, err := request(i)
			out[i] = milliseconds(took)
			return err
		})
	}
	return out, group.Wait()
}

// update changes an object, and returns when its request was sent and how long that took. A status that was written meanwhile
// makes it read the object again, which is not counted.
func (s served) update(ctx context.Context, name string) (begin time.Time, took time.Duration, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := s.objects.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedField(object.Object, updatedTTL, "spec", "ttlAfterFinished"); err != nil {
			return err
		}
		begin = time.Now()
		_, err = s.objects.Update(ctx, object, metav1.UpdateOptions{})
		took = time.Since(begin)
		return err
	})
	return begin, took, err
}

// firstUpdated is when a watch first told of the update of each of n objects; it ends when all were told of, or with the watch.
func firstUpdated(watched watch.Interface, n int) map[string]time.Time {
	out := map[string]time.Time{}
	for event := range watched.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		ttl, _, _ := unstructured.NestedString(object.Object, "spec", "ttlAfterFinished")
		if _, known := out[object.GetName()]; known || event.Type != watch.Modified || ttl != updatedTTL {
			continue
		}
		if out[object.GetName()] = time.Now(); len(out) == n {
			break
		}
	}
	return out
}

func servedRows(clients int, ours, theirs servedFigures) []row {
	var rows []row
	for _, figure := range []struct {
		name string
		of   func(servedFigures) sample
	}{
		{"create", func(f servedFigures) sample { return f.create }},
		{"get", func(f servedFigures) sample { return f.get }},
		{"update", func(f servedFigures) sample { return f.update }},
		{"update sent to watch event", func(f servedFigures) sample { return f.watch }},
	} {
		for _, q := range []struct {
			name string
			q    float64
		}{{"p50", 0.5}, {"p99", 0.99}} {
			rows = append(rows, row{
				fmt.Sprintf("policies, %d at once: %s, %s", clients, figure.name, q.name), "ms",
				sample{figure.of(ours).quantile(q.q)}, "custom resource", sample{figure.of(theirs).quantile(q.q)},
			})
		}
	}
	return rows
}
