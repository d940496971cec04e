// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/programs"
)

// peer is another tool that deletes the Jobs of a burst, in a process of its own beside a controller manager that collects garbage.
type peer struct {
	start func(context.Context, *track) (*cluster.Process, error)
	// mark tells the tool when it must delete each Job; nil if the Jobs say so themselves.
	mark func(context.Context, *track, *litBurst) error
}

var (
	// ttlAlone is the controller of Kubernetes for ttlSecondsAfterFinished, with as many workers and requests as it needs.
	ttlAlone = racer{name: "ttl-after-finished", manager: unlimited, native: true, peer: &peer{start: startTTLAfterFinished}}
	// kyverno is its cleanup controller, with as many requests as it needs. It has three workers for each resource. It takes a minute until it
	// has found the resources.
	kyverno = racer{name: "Kyverno", manager: unlimited, peer: &peer{start: startKyverno, mark: labelForKyverno}}
)

// measurePeers lets many Jobs expire at once, and has Winnow and other tools delete them in turn. Only make bench-peers asks for it,
// because the others take some minutes to build.
func measurePeers(ctx context.Context, o options, r *report) (err error) {
	if !o.peers {
		return nil
	}
	paths, err := programs.Provide(ctx, os.Stderr, programs.KyvernoCleanup)
	if err != nil {
		return err
	}
	t, err := newTrack(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	t.kyverno = paths[programs.KyvernoCleanup]
	if err := t.installKyverno(ctx); err != nil {
		return err
	}
	for _, n := range o.throughput {
		for _, namespaces := range []int{1, min(manyNamespaces, n)} {
			if err := t.compare(ctx, r, burst{jobs: n, namespaces: namespaces}, o.rounds, ttlAlone, kyverno); err != nil {
				return err
			}
		}
	}
	return r.writeCSV("peers", t.lines)
}

func startTTLAfterFinished(ctx context.Context, t *track) (*cluster.Process, error) {
	return t.runControllers(ctx, "ttl-after-finished", ttlController, unlimited)
}

const (
	kyvernoNamespace = "kyverno"
	// kyvernoName is the name of everything that the controller has in its namespace.
	kyvernoName = "kyverno-cleanup-controller"
	kyvernoUser = "system:serviceaccount:" + kyvernoNamespace + ":" + kyvernoName
	// kyvernoTTL is the label that says when Kyverno deletes an object, and kyvernoTime the format of a time in it.
	kyvernoTTL  = "cleanup.kyverno.io/ttl"
	kyvernoTime = "2006-01-02T150405Z"
	// kyvernoPropagation is the annotation that says what becomes of the dependents.
	kyvernoPropagation = "cleanup.kyverno.io/propagation-policy"
)

// installKyverno installs what the cleanup controller of Kyverno needs. Its own role does not let it delete Jobs, so it may do everything.
func (t *track) installKyverno(ctx context.Context) error {
	manifests, err := programs.KyvernoManifests(ctx)
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"apply", "--server-side", "--recursive", "-f", manifests},
		{"create", "namespace", kyvernoNamespace},
		{"create", "configmap", kyvernoName, "--namespace", kyvernoNamespace},
		{"create", "clusterrolebinding", kyvernoName, "--clusterrole=cluster-admin", "--user=" + kyvernoUser},
	} {
		if _, _, err := t.cluster.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// startKyverno starts the cleanup controller of Kyverno, and waits until it deletes.
func startKyverno(ctx context.Context, t *track) (*cluster.Process, error) {
	kubeconfig, err := t.cluster.KubeconfigFor(kyvernoUser, "system:serviceaccounts", "system:serviceaccounts:"+kyvernoNamespace)
	if err != nil {
		return nil, err
	}
	port, err := cluster.FreePort()
	if err != nil {
		return nil, err
	}
	flags := []string{
		"--kubeconfig=" + kubeconfig, "--clientRateLimitQPS=10000", "--clientRateLimitBurst=10000", "--caSecretName=ca",
		"--tlsSecretName=tls", "--disableMetrics", "--serverIP=127.0.0.1",
		"--cleanupServerHost=127.0.0.1", "--cleanupServerPort=" + strconv.Itoa(port), "--servicePort=" + strconv.Itoa(port),
	}
	env := []string{
		"KYVERNO_NAMESPACE=" + kyvernoNamespace, "KYVERNO_SERVICEACCOUNT_NAME=" + kyvernoName, "KYVERNO_DEPLOYMENT=" + kyvernoName,
		"KYVERNO_POD_NAME=" + kyvernoName, "KYVERNO_SVC=" + kyvernoName, "INIT_CONFIG=" + kyvernoName, "METRICS_CONFIG=" + kyvernoName,
	}
	process, err := t.cluster.Run(ctx, fmt.Sprintf("kyverno-%d", t.started), t.kyverno, flags, env)
	if err != nil {
		return nil, err
	}
	if err := t.waitKyverno(ctx); err != nil {
		return nil, errors.Join(err, process.Kill())
	}
	return process, nil
}

// waitKyverno waits until Kyverno has deleted a Job.
func (t *track) waitKyverno(ctx context.Context) error {
	created, err := jobs.Create(ctx, t.kube, kyvernoNamespace, 1, func(j *batchv1.Job) {
		j.Labels = map[string]string{kyvernoTTL: "1s"}
	})
	if err != nil {
		return err
	}
	return eventually(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		_, err := t.kube.BatchV1().Jobs(kyvernoNamespace).Get(ctx, created[0].Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil:
			return errors.New("its first Job is not deleted by Kyverno")
		}
		return err
	})
}

// labelForKyverno labels each Job of a burst with the time at which it is due. The Pods of a Job go with it, as under Winnow: without the
// annotation they would stay, because this is what the API server does for Jobs if nobody says otherwise.
func labelForKyverno(ctx context.Context, t *track, b *litBurst) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q},"annotations":{%q:%q}}}`,
		kyvernoTTL, b.due.UTC().Format(kyvernoTime), kyvernoPropagation, metav1.DeletePropagationBackground)
	return parallel(ctx, len(b.all), func(i int) error {
		j := b.all[i]
		_, err := t.kube.BatchV1().Jobs(j.Namespace).Patch(ctx, j.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}
