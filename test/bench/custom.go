// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/platforms"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	customGroup     = "bench.example.com"
	customNamespace = "custom"
	// customCondition is a match condition that reads a field which nothing else does.
	customCondition = "object.spec.size != 'small'"
	// customContent makes an object some 4 kB.
	customContent = 3500
)

// customFigures are of one process and of kube-apiserver.
type customFigures struct {
	used, server usage
	heap         float64 // bytes
}

// measureCustom measures memory and CPU of Winnow with many kinds that have no objects, then with many finished objects of one kind that
// wait, and then with a match condition on these.
func measureCustom(ctx context.Context, o options, r *report) (err error) {
	w, err := newWorldWithWinnow(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	client, err := dynamic.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		return err
	}
	if err := w.newNamespace(ctx, customNamespace, "30d"); err != nil {
		return err
	}
	all := customResources(o.kinds)
	none, err := w.custom(ctx, o, 0)
	if err != nil {
		return err
	}
	r.progress("custom: %d kinds ...", len(all))
	if err := w.installCustom(ctx, client, all); err != nil {
		return err
	}
	watched, err := w.custom(ctx, o, 0)
	if err != nil {
		return err
	}
	informers, err := w.besideCustom(ctx, o, len(all))
	if err != nil {
		return err
	}
	r.progress("custom: %d objects ...", o.custom)
	if err := createCustom(ctx, client, all[0], o.custom); err != nil {
		return err
	}
	full, err := w.custom(ctx, o, o.custom)
	if err != nil {
		return err
	}
	if err := w.customPolicy(ctx, all, customCondition); err != nil {
		return err
	}
	conditional, err := w.custom(ctx, o, o.custom)
	if err != nil {
		return err
	}
	r.add(customRows(fmt.Sprintf("%d idle kinds", len(all)), watched, "no kind", none)...)
	r.add(informers...)
	r.add(customRows(fmt.Sprintf("%d objects", o.custom), full, "no objects", watched)...)
	r.add(customRows("a match condition", conditional, "none", full)...)
	each := func(more, fewer customFigures) sample { return sample{(more.heap - fewer.heap) / float64(o.custom)} }
	r.add(row{"each object: live heap", "bytes", each(full, watched), "", nil},
		row{"each object with a match condition: live heap", "bytes", each(conditional, watched), "", nil})
	r.progress("custom: %d objects expire together ...", customBurst)
	return w.raceCustom(ctx, client, all[0], r)
}

func customResources(n int) []platforms.Resource {
	var out []platforms.Resource
	for i := range n {
		out = append(out, platforms.Resource{
			Group: customGroup, Kind: fmt.Sprintf("Kind%d", i), Plural: fmt.Sprintf("kind%ds", i), Versions: []string{"v1"},
		})
	}
	return out
}

// custom starts Winnow anew and measures it once it has this many timers.
func (w *world) custom(ctx context.Context, o options, timers int) (f customFigures, err error) {
	if err := errors.Join(w.replica().Stop(), w.replica().Start(ctx)); err != nil {
		return f, err
	}
	if err := w.waitMetric(ctx, "winnow_leading", 1); err != nil {
		return f, err
	}
	if err := w.waitMetric(ctx, "winnow_tracker_timers", float64(timers)); err != nil {
		return f, err
	}
	if err := poll.Pause(ctx, settle); err != nil {
		return f, err
	}
	return w.customOf(ctx, o, w.replica().Process.Pid(), w.replica().Get)
}

// besideCustom measures informers over the first n resources.
func (w *world) besideCustom(ctx context.Context, o options, n int) ([]row, error) {
	none, err := w.customInformers(ctx, o, 0)
	if err != nil {
		return nil, err
	}
	watches, err := w.customInformers(ctx, o, n)
	return customRows(fmt.Sprintf("%d informers", n), watches, "no informer", none), err
}

// customInformers measures metadata informers over the first n resources, beside Winnow.
func (w *world) customInformers(ctx context.Context, o options, n int) (f customFigures, err error) {
	i, err := w.startInformer(ctx, fmt.Sprint(customInformers, n), w.cluster.Kubeconfig(), 0)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, i.Kill()) }()
	if err := poll.Pause(ctx, settle); err != nil {
		return f, err
	}
	return w.customOf(ctx, o, i.Pid(), i.get)
}

func (w *world) customOf(
	ctx context.Context, o options, pid int, get func(context.Context, string) (string, error),
) (f customFigures, err error) {
	used, err := watchProcesses(ctx, o.window, pid, w.cluster.Process("kube-apiserver").Pid())
	if err != nil {
		return f, err
	}
	f.used, f.server = used[0], used[1]
	f.heap, err = heapOf(ctx, get)
	return f, err
}

// installCustom installs the resources with a lifecycle for each, grants Winnow the permissions, and writes the policy.
func (w *world) installCustom(ctx context.Context, client dynamic.Interface, all []platforms.Resource) error {
	if err := platforms.Grant(ctx, w.kube, winnow.Namespace, "winnow", customGroup, "*"); err != nil {
		return err
	}
	for _, r := range all {
		definition := r.Definition()
		for _, version := range definition.Object["spec"].(map[string]any)["versions"].([]any) {
			delete(version.(map[string]any), "subresources") // Objects are created with their status.
		}
		if _, err := client.Resource(platforms.Definitions).Create(ctx, definition, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := platforms.Install(ctx, client, all...); err != nil { // It waits until all are served.
		return err
	}
	gc, err := versioned.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		return err
	}
	for _, r := range all {
		l := &v1alpha1.ResourceLifecycle{
			ObjectMeta: metav1.ObjectMeta{Name: r.Name()},
			Spec: v1alpha1.ResourceLifecycleSpec{Finished: &v1alpha1.FinishedExpressions{
				When: "object.?status.phase.orValue('') in ['Succeeded', 'Failed']", Succeeded: "object.status.phase == 'Succeeded'",
				At: "object.status.finishedAt",
			}},
		}
		if _, err := gc.GcV1alpha1().ResourceLifecycles().Create(ctx, l, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return w.customPolicy(ctx, all, "")
}

// customPolicy names all resources, sixteen in a rule, with a match condition unless it is empty.
func (w *world) customPolicy(ctx context.Context, all []platforms.Resource, condition string) error {
	client, err := versioned.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		return err
	}
	const most = 16
	ttl := v1alpha1.TTL("30d")
	p := &v1alpha1.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "custom"}}
	for begin := 0; begin < len(all); begin += most {
		rule := v1alpha1.CleanupRule{Name: fmt.Sprintf("rule-%d", begin/most), TTL: &ttl}
		for _, r := range all[begin:min(begin+most, len(all))] {
			rule.Resources = append(rule.Resources, r.Name())
		}
		if condition != "" {
			rule.MatchConditions = []v1alpha1.MatchCondition{{Name: "c", Expression: condition}}
		}
		p.Spec.Rules = append(p.Spec.Rules, rule)
	}
	policies := client.GcV1alpha1().CleanupPolicies(customNamespace)
	if condition == "" {
		_, err = policies.Create(ctx, p, metav1.CreateOptions{})
	} else {
		_, err = policies.Update(ctx, p, metav1.UpdateOptions{})
	}
	return err
}

// createCustom creates n finished objects, which wait.
func createCustom(ctx context.Context, client dynamic.Interface, r platforms.Resource, n int) error {
	objects := client.Resource(r.GroupVersionResource()).Namespace(customNamespace)
	return createFinished(ctx, objects, r, "run", n, time.Now().Add(time.Hour), nil) // A finish before the creation would not be trusted.
}

// createFinished creates n objects with some labels that finish at a time.
func createFinished(
	ctx context.Context, objects dynamic.ResourceInterface, r platforms.Resource, name string, n int, at time.Time, labels map[string]any,
) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(64)
	for i := range n {
		group.Go(func() error {
			own := map[string]any{"app": fmt.Sprintf("app-%d", i%10)}
			maps.Copy(own, labels)
			_, err := objects.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": customGroup + "/v1", "kind": r.Kind,
				"metadata": map[string]any{"name": fmt.Sprintf("%s-%06d", name, i), "labels": own},
				"spec":     map[string]any{"size": "large", "content": strings.Repeat("x", customContent)},
				"status":   map[string]any{"phase": "Succeeded", "finishedAt": at.UTC().Format(time.RFC3339)},
			}}, metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

func customRows(what string, f customFigures, beside string, than customFigures) []row {
	return []row{
		{what + ": resident", "MB", f.used.resident, beside, than.used.resident},
		{what + ": live heap", "MB", sample{f.heap / mega}, beside, sample{than.heap / mega}},
		{what + ": CPU", "% of a core", f.used.cpu, beside, than.used.cpu},
		{what + ": CPU of kube-apiserver", "% of a core", f.server.cpu, beside, than.server.cpu},
	}
}
