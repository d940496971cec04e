// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/synthetic"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	// boundNamespaces is how many namespaces the cluster policy selects; it does not touch the others.
	boundNamespaces, untouchedNamespaces = 50, 5
	allNamespaces                        = boundNamespaces + untouchedNamespaces
	boundLabel                           = "bench.winnow.dev/bound"
)

// field is a world in which synthetic Jobs stand, all of them finished and kept for a month by the policies of their namespaces.
// Each namespace has as many as its policy keeps, so that ranks count and nothing goes.
type field struct {
	*world
	front      *synthetic.Server
	kubeconfig string // for the front
	gc         gcclient.GcV1alpha1Interface
	jobs       int
	probes     prober
}

// newField has policies, and no Jobs yet.
func newField(ctx context.Context, o options, jobs int) (*field, error) {
	w, err := newWorld(ctx, o)
	if err != nil {
		return nil, err
	}
	f := &field{world: w, kubeconfig: filepath.Join(w.cluster.Dir, "kubeconfig-synthetic"), jobs: jobs}
	if err := f.start(ctx, o); err != nil {
		return nil, errors.Join(err, f.stop())
	}
	return f, nil
}

func (f *field) start(ctx context.Context, o options) (err error) {
	user, err := f.cluster.UserConfig(winnow.User, "system:serviceaccounts", "system:serviceaccounts:"+winnow.Namespace)
	if err != nil {
		return err
	}
	certFile, keyFile, caPEM, err := f.cluster.ServingCert("synthetic")
	if err != nil {
		return err
	}
	behind := synthetic.Options{Upstream: user, CertFile: certFile, KeyFile: keyFile, Finished: time.Now().Truncate(time.Second)}
	if behind.CronJobs, err = f.createNamespaces(ctx); err != nil {
		return err
	}
	for i := range allNamespaces {
		behind.Namespaces = append(behind.Namespaces, fieldNamespace(i))
	}
	if f.front, err = synthetic.New(behind); err != nil {
		return err
	}
	f.probes = newProber(f.front, f.jobs)
	if err := f.front.WriteKubeconfig(f.kubeconfig, caPEM); err != nil {
		return err
	}
	client, err := versioned.NewForConfig(f.cluster.RESTConfig())
	if err != nil {
		return err
	}
	f.gc = client.GcV1alpha1()
	if f.server, err = winnow.Start(ctx, f.cluster, winnow.Options{Binary: o.winnow, Kubeconfig: f.kubeconfig}); err != nil {
		return err
	}
	return parallel(ctx, allNamespaces, func(i int) error { return f.createPolicy(ctx, fieldNamespace(i)) })
}

func (f *field) stop() error {
	err := f.world.stop()
	if f.front != nil {
		err = errors.Join(err, f.front.Close())
	}
	return err
}

func fieldNamespace(i int) string { return fmt.Sprintf("field-%02d", i) }

// createNamespaces also creates the CronJobs that most Jobs belong to.
func (f *field) createNamespaces(ctx context.Context) (map[string]map[string]types.UID, error) {
	uids := make([]map[string]types.UID, allNamespaces)
	err := parallel(ctx, allNamespaces, func(i int) (err error) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fieldNamespace(i)}}
		if i < boundNamespaces {
			ns.Labels = map[string]string{boundLabel: "yes"}
		}
		if _, err := f.kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return err
		}
		uids[i], err = f.createCronJobs(ctx, ns.Name)
		return err
	})
	out := map[string]map[string]types.UID{}
	for i := range uids {
		out[fieldNamespace(i)] = uids[i]
	}
	return out, err
}

// createCronJobs creates the CronJobs of a namespace, which have noted all that they scheduled and run nothing now.
func (f *field) createCronJobs(ctx context.Context, namespace string) (map[string]types.UID, error) {
	client, now, out := f.kube.BatchV1().CronJobs(namespace), metav1.Now(), map[string]types.UID{}
	for _, app := range synthetic.Apps() {
		cj, err := client.Create(ctx, &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: app},
			Spec:       batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: jobs.New("").Spec}},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		cj.Status.LastScheduleTime = &now
		if _, err := client.UpdateStatus(ctx, cj, metav1.UpdateOptions{}); err != nil {
			return nil, err
		}
		out[app] = cj.UID
	}
	return out, nil
}

func (f *field) createPolicy(ctx context.Context, namespace string) error {
	policy := &v1alpha1.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "bench"},
		Spec: v1alpha1.CleanupPolicySpec{
			TTLAfterFinished: ptr.To[v1alpha1.TTL]("30d"), AnnotationTTL: v1alpha1.AnnotationAny,
		},
	}
	_, err := f.gc.CleanupPolicies(namespace).Create(ctx, policy, metav1.CreateOptions{})
	return err
}

// limit has each policy limit its Jobs to as many as there are, and waits until the statuses of all know. It watches them, because Winnow
// would have to answer who asks again and again.
func (f *field) limit(ctx context.Context) error {
	var mu sync.Mutex
	generations := map[string]int64{} // by namespace, of the statuses that do not know yet
	err := parallel(ctx, allNamespaces, func(i int) error {
		patch := fmt.Sprintf(`{"spec":{"capacity":{"maxObjects":%d}}}`, (f.jobs+allNamespaces-1-i)/allNamespaces)
		written, err := f.gc.CleanupPolicies(fieldNamespace(i)).Patch(ctx, "bench", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		generations[written.Namespace] = written.Generation
		return nil
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, waitMost)
	defer cancel()
	watched, err := f.gc.CleanupPolicies(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watched.Stop()
	for event := range watched.ResultChan() {
		p, ok := event.Object.(*v1alpha1.CleanupPolicy)
		if ok && p.Status.ObservedGeneration >= generations[p.Namespace] {
			delete(generations, p.Namespace)
		}
		if len(generations) == 0 {
			return nil
		}
	}
	return fmt.Errorf("the statuses of %d policies do not know their limits", len(generations))
}

// bound is how many Jobs the cluster policy counts at first: all that it selects.
func (f *field) bound() int64 {
	whole, rest := f.jobs/allNamespaces, f.jobs%allNamespaces
	return int64(whole*boundNamespaces + min(rest, boundNamespaces))
}

// ceiling is a cluster policy that bounds the Jobs of the selected namespaces.
func ceiling(objects int64, maxTTL v1alpha1.TTL) *v1alpha1.ClusterCleanupPolicy {
	return &v1alpha1.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "bench"},
		Spec: v1alpha1.ClusterCleanupPolicySpec{
			Mode: v1alpha1.ModeEnforce, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{boundLabel: "yes"}},
			Guardrails: &v1alpha1.Guardrails{
				MaxTTL: &maxTTL, Ceilings: []v1alpha1.Ceiling{{Resources: []string{"jobs.batch"}, MaxObjects: &objects}},
			},
		},
	}
}

// bind creates the ceiling, or changes it, and waits until its status knows.
func (f *field) bind(ctx context.Context, objects int64, maxTTL v1alpha1.TTL) error {
	wanted, all := ceiling(objects, maxTTL), f.gc.ClusterCleanupPolicies()
	patch := fmt.Sprintf(`{"spec":{"guardrails":{"maxTTL":%q,"ceilings":[{"resources":["jobs.batch"],"maxObjects":%d}]}}}`, maxTTL, objects)
	written, err := all.Patch(ctx, wanted.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		written, err = all.Create(ctx, wanted, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, waitMost)
	defer cancel()
	watched, err := all.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watched.Stop()
	known := firstKnown(watched, func(s v1alpha1.CleanupPolicyStatus) bool { return s.ObservedGeneration >= written.Generation })
	if known.IsZero() {
		return fmt.Errorf("no status of the ceiling knows of generation %d", written.Generation)
	}
	return nil
}
