// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/write/marks"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/platforms"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/winnow"
)

// unusedFigures are of one process over all Pods, ConfigMaps and Secrets.
type unusedFigures struct {
	held
	server sample // percent of a core, of kube-apiserver at rest
}

// measureUnused measures memory and CPU of Winnow with a rule with after: Unused, without one, and of informers: over many Pods, ConfigMaps
// and Secrets that do not change, and then while Pods change.
func measureUnused(ctx context.Context, o options, r *report) (err error) {
	w, err := newWorldWithWinnow(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if w.kube, err = kubernetes.NewForConfig(protobuf(w.cluster.RESTConfig())); err != nil {
		return err
	}
	if err := platforms.Grant(ctx, w.kube, winnow.Namespace, "winnow", "*", "*"); err != nil {
		return err
	}
	r.progress("unused: creating %d namespaces ...", o.unusedNamespaces)
	if err := w.populateUnused(ctx, o.unusedNamespaces); err != nil {
		return err
	}
	r.progress("unused: without the policy ...")
	without, err := w.judgeUnused(ctx, o, 0)
	if err != nil {
		return err
	}
	r.progress("unused: the policy ...")
	stored, err := w.createUnusedPolicy(ctx, o)
	if err != nil {
		return err
	}
	r.progress("unused: informers ...")
	informers, beside, err := w.unusedInformers(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, informers.Kill()) }()
	r.progress("unused: with the policy ...")
	judged, err := w.judgeUnused(ctx, o, o.unusedNamespaces*unusedEach)
	if err != nil {
		return err
	}
	r.add(unusedRows(o, judged, without, beside)...)
	r.add(row{"from the policy until all marks are stored", "s", sample{stored}, "", nil})
	return w.measureUnusedEvents(ctx, o, r, informers.Pid(), judged, beside)
}

// judgeUnused starts Winnow anew and measures it once it has this many timers: one for each object that is unused.
func (w *world) judgeUnused(ctx context.Context, o options, timers int) (f unusedFigures, err error) {
	if err := w.replica().Stop(); err != nil {
		return f, err
	}
	begin := time.Now()
	started, objects := make(chan error, 1), o.unusedNamespaces*(podsEach+contentsEach)
	go func() {
		err := w.replica().Start(ctx)
		if seconds := objects / profileJobsInStart; err == nil && seconds > 0 && timers > 0 {
			err = w.profile(ctx, fmt.Sprint("profile?seconds=", seconds), filepath.Join(o.out, "unused-start.pprof"))
		}
		started <- err
	}()
	err = poll.Until(ctx, knownMost(objects), armedEvery, func(ctx context.Context) error { return w.armed(ctx, timers) })
	if err == nil { // The profile may take longer.
		f.held, err = reach(ctx, begin, w.replica().Process.Pid(), w.replica().Get)
	}
	if err := errors.Join(err, <-started); err != nil {
		return f, err
	}
	if err = w.restUnused(ctx, o, &f, w.replica().Process.Pid(), w.replica().Get); err != nil || timers == 0 {
		return f, err
	}
	return f, w.profile(ctx, "heap?gc=1", filepath.Join(o.out, "unused-heap.pprof"))
}

// restUnused measures a process at rest, and kube-apiserver beside it.
func (w *world) restUnused(
	ctx context.Context, o options, f *unusedFigures, pid int, get func(context.Context, string) (string, error),
) error {
	if err := f.restFor(ctx, o.window, pid, get); err != nil {
		return err
	}
	used, err := watchProcesses(ctx, o.window, w.cluster.Process("kube-apiserver").Pid())
	if err != nil {
		return err
	}
	f.server = used[0].cpu
	return nil
}

// createUnusedPolicy waits until Winnow has stored since when objects are unused, and stops Winnow. It returns how many seconds that took.
func (w *world) createUnusedPolicy(ctx context.Context, o options) (seconds float64, err error) {
	client, err := versioned.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		return 0, err
	}
	ttl, begin := v1alpha1.TTL("30d"), time.Now()
	_, err = client.GcV1alpha1().ClusterCleanupPolicies().Create(ctx, &v1alpha1.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "unused"},
		Spec: v1alpha1.ClusterCleanupPolicySpec{
			Mode: v1alpha1.ModeEnforce, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{crowdLabel: "yes"}},
			Rules: []v1alpha1.CleanupRule{{
				Name: "unused", Resources: []string{"configmaps", "secrets"}, After: v1alpha1.AfterUnused, TTL: &ttl,
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/part-of": "web"}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	// Winnow writes up to five marks a second: one for each namespace.
	err = poll.Until(ctx, waitMost+time.Duration(o.unusedNamespaces)*time.Second/2, time.Second, func(ctx context.Context) error {
		stored, err := w.countObjects(ctx, marks.Resource)
		if err == nil && stored != o.unusedNamespaces {
			err = fmt.Errorf("the marks of %d namespaces of %d are stored", stored, o.unusedNamespaces)
		}
		return err
	})
	return time.Since(begin).Seconds(), errors.Join(err, w.replica().Stop())
}

// unusedResources are the resources that the informers watch.
var unusedResources = []schema.GroupVersionResource{
	corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithResource("configmaps"),
	corev1.SchemeGroupVersion.WithResource("secrets"),
}

// unusedInformers starts informers while Winnow does not run, and measures them.
func (w *world) unusedInformers(ctx context.Context, o options) (i *informer, f unusedFigures, err error) {
	n, err := w.countObjects(ctx, unusedResources...)
	if err != nil {
		return nil, f, err
	}
	begin := time.Now()
	if i, err = w.startInformer(ctx, unusedInformers, w.cluster.Kubeconfig(), n); err != nil {
		return nil, f, err
	}
	if f.held, err = reach(ctx, begin, i.Pid(), i.get); err == nil {
		err = w.restUnused(ctx, o, &f, i.Pid(), i.get)
	}
	return i, f, err
}

func (w *world) countObjects(ctx context.Context, resources ...schema.GroupVersionResource) (n int, err error) {
	client, err := metadata.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		return 0, err
	}
	for _, r := range resources {
		page, err := client.Resource(r).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return 0, err
		}
		n += len(page.Items) + int(ptr.Deref(page.RemainingItemCount, 0))
	}
	return n, nil
}

func unusedRows(o options, judged, without, informers unusedFigures) (rows []row) {
	pods, contents := o.unusedNamespaces*podsEach, o.unusedNamespaces*contentsEach
	what := fmt.Sprintf("%d Pods, %d ConfigMaps and Secrets: ", pods, contents)
	for _, beside := range []struct {
		name string
		unusedFigures
	}{{metadataInformer + "s", informers}, {"without the policy", without}} {
		for _, figure := range heldFigures {
			rows = append(rows, row{what + figure.name, figure.unit, figure.of(judged.held), beside.name, figure.of(beside.held)})
		}
		rows = append(rows, row{what + "CPU of kube-apiserver at rest", "% of a core", judged.server, beside.name, beside.server})
	}
	each := (judged.after - without.after) / float64(pods+contents)
	return append(rows, row{"each Pod, ConfigMap and Secret: live heap", "bytes", sample{each}, "", nil})
}
