// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/winnow"
)

// politeJobs are no more than one change may make due without approval.
const politeJobs = 1000

// TestEtiquette: on an API server that does few requests at once, no request of a workload is refused while Winnow deletes many Jobs, and
// each kind of request of Winnow has the priority that it is to have. "make bench BENCHFLAGS=-run=etiquette" measures how much slower the
// requests of a workload are.
func TestEtiquette(t *testing.T) {
	c := smallServer(t)
	admin, err := kubernetes.NewForConfig(c.RESTConfig())
	must(t, err)
	created, err := jobs.Create(t.Context(), admin, "default", politeJobs)
	must(t, err)
	finished := time.Now().Truncate(time.Second).Add(time.Second) // not before the creation, in whole seconds
	must(t, jobs.Finish(t.Context(), admin, created, func(int) time.Time { return finished }))
	clients, err := versioned.NewForConfig(c.RESTConfig())
	must(t, err)
	_, err = clients.GcV1alpha1().CleanupPolicies("default").Create(t.Context(), &v1alpha1.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")},
	}, metav1.CreateOptions{})
	must(t, err)

	ask := newWorkload(t, c, admin)
	asked := 0
	eventually(t, func(ctx context.Context) string {
		for range 16 {
			must(t, ask(ctx))
			asked++
		}
		list, err := admin.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil || len(list.Items) > 0 {
			return fmt.Sprintf("Jobs are left: %v", err)
		}
		return ""
	})
	t.Logf("%d requests of the workload were answered", asked)
	expectDispatched(t, admin)
}

// smallServer is a cluster whose API server does few requests at once, with Winnow as it is installed.
func smallServer(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Start(whole, cluster.Options{
		Components: []string{cluster.Etcd, cluster.APIServer}, OwnEtcd: *inEtcd,
		Flags: map[string][]string{cluster.APIServer: {"--max-requests-inflight=8", "--max-mutating-requests-inflight=4"}},
	})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	_, stderr, err := c.Kubectl(t.Context(), "apply", "--validate=strict", "-f", "../../artifacts/optional/priority.yaml")
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	s, err := winnow.Start(whole, c, winnow.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	return c
}

// newWorkload returns a request of a client like any other, with the rights of a ServiceAccount.
func newWorkload(t *testing.T, c *cluster.Cluster, admin kubernetes.Interface) func(context.Context) error {
	t.Helper()
	const user = "system:serviceaccount:default:workload"
	_, err := admin.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "workload"},
		// Not "edit": nobody aggregates roles here.
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	must(t, err)
	config, err := c.UserConfig(user, "system:serviceaccounts", "system:serviceaccounts:default")
	must(t, err)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	maps := client.CoreV1().ConfigMaps("default")
	_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config"}}, metav1.CreateOptions{})
	must(t, err)
	return func(ctx context.Context) error {
		_, err := maps.Patch(ctx, "config", types.MergePatchType, []byte(`{"data":{"key":"value"}}`), metav1.PatchOptions{})
		return err
	}
}

// expectDispatched: each kind of request of Winnow had the priority that it is to have.
func expectDispatched(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	text, err := admin.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	for schema, want := range map[string]struct {
		level string
		least float64
	}{"winnow-deletes": {"winnow-deletes", politeJobs}, "winnow-policies": {"workload-high", 10}, "winnow-leader-election": {"leader-election", 5}} {
		prefix := fmt.Sprintf("apiserver_flowcontrol_dispatched_requests_total{flow_schema=%q,priority_level=%q} ", schema, want.level)
		_, rest, found := strings.Cut(string(text), prefix)
		var got float64
		if found {
			_, err := fmt.Sscan(rest, &got)
			must(t, err)
		}
		if got < want.least {
			t.Errorf("%v requests were dispatched by FlowSchema %s at level %s, want at least %v", got, schema, want.level, want.least)
		}
	}
}
