// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	etiquetteNamespace = "workload"
	etiquetteUser      = "system:serviceaccount:" + etiquetteNamespace + ":workload"
	etiquetteWorkers   = 16   // each of which has a request under way all the time
	etiquetteJobs      = 1000 // no more than one change may make due without approval
	etiquetteQuiet     = 5 * time.Second
)

// measureEtiquette measures how long requests of a workload take on an API server that does few requests at once, while Winnow deletes many
// Jobs and while it has nothing to do, in turn.
func measureEtiquette(ctx context.Context, o options, r *report) (err error) {
	w, err := newSmallWorld(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	load, err := w.newWorkload(ctx)
	if err != nil {
		return err
	}
	var quiet, busy sample
	for round := range o.rounds {
		r.progress("etiquette: round %d of %d ...", round+1, o.rounds)
		ns := fmt.Sprint("burst-", round)
		if err := w.finishBurst(ctx, ns); err != nil {
			return err
		}
		rest, err := load.during(ctx, func(ctx context.Context) error { return poll.Pause(ctx, etiquetteQuiet) })
		if err != nil {
			return err
		}
		burst, err := load.during(ctx, func(ctx context.Context) error { return w.deleteBurst(ctx, ns) })
		if err != nil {
			return err
		}
		quiet, busy = append(quiet, rest.quantile(0.99)), append(busy, burst.quantile(0.99))
	}
	r.add(row{"requests of a workload beside deletes, p99", "ms", busy, "without deletes", quiet})
	lines := [][]string{{"round", "busy p99 ms", "quiet p99 ms"}}
	for i := range busy {
		lines = append(lines, []string{strconv.Itoa(i + 1), number(busy[i]), number(quiet[i])})
	}
	return r.writeCSV("etiquette", lines)
}

// newSmallWorld has an API server that does few requests at once, and the priorities of artifacts/optional.
func newSmallWorld(ctx context.Context, o options) (*world, error) {
	c, err := cluster.Start(ctx, cluster.Options{
		Components: []string{cluster.Etcd, cluster.APIServer},
		Flags: map[string][]string{
			cluster.Etcd:      {fmt.Sprintf("--unsafe-no-fsync=%t", !o.fsync)},
			cluster.APIServer: {"--max-requests-inflight=8", "--max-mutating-requests-inflight=4"},
		},
	})
	if err != nil {
		return nil, err
	}
	w := &world{cluster: c}
	if _, stderr, err := c.Kubectl(ctx, "apply", "-f", filepath.Join("artifacts", "optional", "priority.yaml")); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, stderr), c.Stop())
	}
	if w.kube, err = kubernetes.NewForConfig(c.RESTConfig()); err == nil {
		err = w.startWinnow(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, w.stop())
	}
	return w, nil
}

// finishBurst creates Jobs that have finished.
func (w *world) finishBurst(ctx context.Context, ns string) error {
	if err := w.newNamespace(ctx, ns, ""); err != nil {
		return err
	}
	all, err := jobs.Create(ctx, w.kube, ns, etiquetteJobs)
	if err != nil {
		return err
	}
	now := time.Now().Truncate(time.Second).Add(time.Second) // not before the creation, in whole seconds
	return jobs.Finish(ctx, w.kube, all, func(int) time.Time { return now })
}

// deleteBurst creates a policy by which the Jobs of a namespace are due, and waits until they are gone.
func (w *world) deleteBurst(ctx context.Context, ns string) error {
	if err := w.newPolicy(ctx, ns, v1alpha1.CleanupPolicySpec{TTLAfterFinished: new(v1alpha1.TTL("0s"))}); err != nil {
		return err
	}
	return eventually(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		list, err := w.kube.BatchV1().Jobs(ns).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("namespace %s still has Jobs", ns)
		}
		return err
	})
}

// workload is a client like any other, with the rights of a ServiceAccount.
type workload struct{ client kubernetes.Interface }

func (w *world) newWorkload(ctx context.Context) (*workload, error) {
	if err := w.newNamespace(ctx, etiquetteNamespace, ""); err != nil {
		return nil, err
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "workload"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: etiquetteUser}},
	}
	if _, err := w.kube.RbacV1().RoleBindings(etiquetteNamespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	for i := range etiquetteWorkers {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("config-", i)}}
		if _, err := w.kube.CoreV1().ConfigMaps(etiquetteNamespace).Create(ctx, config, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	config, err := w.cluster.UserConfig(etiquetteUser, "system:serviceaccounts", "system:serviceaccounts:"+etiquetteNamespace)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	return &workload{client}, err
}

// during has each worker read and write in turn while f runs, and returns how long each pair of requests took, in milliseconds.
func (l *workload) during(ctx context.Context, f func(context.Context) error) (sample, error) {
	var lock sync.Mutex
	var took sample
	var workers sync.WaitGroup
	failed := make(chan error, etiquetteWorkers+1)
	working, stop := context.WithCancel(ctx)
	for i := range etiquetteWorkers {
		workers.Go(func() {
			for working.Err() == nil {
				begin := time.Now()
				if err := l.ask(ctx, fmt.Sprint("config-", i), begin); err != nil {
					failed <- err
					return
				}
				lock.Lock()
				took = append(took, float64(time.Since(begin).Microseconds())/1000)
				lock.Unlock()
			}
		})
	}
	failed <- f(ctx)
	stop()
	workers.Wait()
	close(failed)
	var errs []error
	for err := range failed {
		errs = append(errs, err)
	}
	return took, errors.Join(errs...)
}

func (l *workload) ask(ctx context.Context, name string, now time.Time) error {
	maps := l.client.CoreV1().ConfigMaps(etiquetteNamespace)
	config, err := maps.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	config.Data = map[string]string{"at": now.String()}
	_, err = maps.Update(ctx, config, metav1.UpdateOptions{})
	return err
}
