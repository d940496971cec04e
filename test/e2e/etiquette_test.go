// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	// politeJobs are due in politeBursts, so that what else happens on the machine meets both: the bursts, and the time between.
	politeJobs   = 5000
	politeBursts = 5
	politeFirst  = 60 * time.Second // from the finish until the first burst
	politeEvery  = 15 * time.Second
	// politeWindow is how long requests are watched for one quantile; the median of all windows counts.
	politeWindow = time.Second
	// politeMost is by which factor a workload may become slower while Winnow deletes.
	politeMost = 1.5
	// workers of the workload have a request under way all the time.
	workers = 16
)

// TestEtiquette: on an API server that does few requests at once, thousands of deletes hardly slow down the requests of a workload,
// which never stops asking.
func TestEtiquette(t *testing.T) {
	c := smallServer(t)
	admin, err := kubernetes.NewForConfig(c.RESTConfig())
	must(t, err)
	w := newWorkload(t, c, admin)
	bursts := newBursts(t, c, admin)
	quiet, busy := w.watch(t, bursts)
	ratio := float64(median(busy)) / float64(median(quiet))
	t.Logf("p99 of a workload: %v between, %v while Jobs are deleted, ratio of the medians %.2f", quiet, busy, ratio)
	if len(quiet) < 5 || len(busy) < 5 {
		t.Fatalf("only %d windows between and %d while Jobs are deleted", len(quiet), len(busy))
	}
	if ratio > politeMost {
		t.Errorf("p99 of a workload is %v while %d Jobs are deleted, %.2f times the %v between, want at most %v",
			median(busy), politeJobs, ratio, median(quiet), politeMost)
	}
	expectDispatched(t, admin)
}

// smallServer is a cluster whose API server does few requests at once, with Winnow as it is installed.
func smallServer(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Start(whole, cluster.Options{
		Components: []string{cluster.Etcd, cluster.APIServer},
		Flags:      map[string][]string{cluster.APIServer: {"--max-requests-inflight=8", "--max-mutating-requests-inflight=4"}},
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

// bursts of Jobs that are due together, one burst after the other.
type bursts struct {
	admin kubernetes.Interface
	first time.Time // when the first is due
}

func newBursts(t *testing.T, c *cluster.Cluster, admin kubernetes.Interface) bursts {
	t.Helper()
	const label = "burst"
	var rules []v1alpha1.CleanupRule
	for i := range politeBursts {
		rules = append(rules, v1alpha1.CleanupRule{
			Name: fmt.Sprintf(
				"burst-%d",
				i,
			), Resources: []string{"jobs.batch"}, Selector: matching(map[string]string{label: strconv.Itoa(i)}),
			TTL: ttl(v1alpha1.TTL(fmt.Sprintf("%ds", int((politeFirst + time.Duration(i)*politeEvery).Seconds())))),
		})
	}
	clients, err := versioned.NewForConfig(c.RESTConfig())
	must(t, err)
	_, err = clients.GcV1alpha1().CleanupPolicies("default").Create(t.Context(), &v1alpha1.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.CleanupPolicySpec{Rules: rules},
	}, metav1.CreateOptions{})
	must(t, err)
	created, err := jobs.Create(t.Context(), admin, "default", politeJobs, func(j *batchv1.Job) {
		i, err := strconv.Atoi(strings.TrimPrefix(j.Name, "job-"))
		must(t, err)
		j.Labels = map[string]string{label: strconv.Itoa(i % politeBursts)}
	})
	must(t, err)
	finished := time.Now().Truncate(time.Second).Add(time.Second) // not before the creation, in whole seconds
	must(t, jobs.Finish(t.Context(), admin, created, func(int) time.Time { return finished }))
	b := bursts{admin: admin, first: finished.Add(politeFirst)}
	if left := time.Until(b.first); left < 3*politeWindow {
		t.Fatalf("the Jobs were finished %v before they were due", left)
	}
	return b
}

// left is how many Jobs there are, and how many of them are due.
func (b bursts) left(t *testing.T) (all, due int) {
	t.Helper()
	now := time.Now()
	list, err := b.admin.BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{Limit: 1})
	must(t, err)
	all = len(list.Items)
	if more := list.RemainingItemCount; more != nil {
		all += int(*more)
	}
	begun := 0
	if !now.Before(b.first) {
		begun = min(int(now.Sub(b.first)/politeEvery)+1, politeBursts)
	}
	return all, all - politeJobs/politeBursts*(politeBursts-begun)
}

// workload is a client like any other, with the rights of a ServiceAccount.
type workload struct{ client kubernetes.Interface }

func newWorkload(t *testing.T, c *cluster.Cluster, admin kubernetes.Interface) *workload {
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
	for i := range workers {
		_, err := admin.CoreV1().ConfigMaps("default").Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("config-%d", i)}}, metav1.CreateOptions{})
		must(t, err)
	}
	return &workload{client}
}

// watch measures p99, window after window until all Jobs are gone: of windows in which no Job was due, and of those in which some
// were all the time.
func (w *workload) watch(t *testing.T, b bursts) (quiet, busy []time.Duration) {
	t.Helper()
	end := time.Now().Add(politeBursts*politeEvery + 2*waitMost)
	for all, due := b.left(t); all > 0; {
		took := w.window(t)
		slices.Sort(took)
		p99 := took[len(took)*99/100]
		before := due
		switch all, due = b.left(t); {
		case before <= 0 && due <= 0:
			quiet = append(quiet, p99)
		case before > 0 && due > 0:
			busy = append(busy, p99)
		}
		if time.Now().After(end) {
			t.Fatalf("%d Jobs are left", all)
		}
	}
	return quiet, busy
}

// window has each worker read and write in turn, and returns how long every request took.
func (w *workload) window(t *testing.T) []time.Duration {
	t.Helper()
	var lock sync.Mutex
	var all []time.Duration
	var asking sync.WaitGroup
	end := time.Now().Add(politeWindow)
	for i := range workers {
		asking.Go(func() {
			for time.Now().Before(end) {
				begin := time.Now()
				if err := w.ask(t.Context(), fmt.Sprintf("config-%d", i), begin); err != nil {
					t.Error(err)
					return
				}
				lock.Lock()
				all = append(all, time.Since(begin))
				lock.Unlock()
			}
		})
	}
	asking.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

func (w *workload) ask(ctx context.Context, name string, now time.Time) error {
	maps := w.client.CoreV1().ConfigMaps("default")
	config, err := maps.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	config.Data = map[string]string{"at": now.String()}
	_, err = maps.Update(ctx, config, metav1.UpdateOptions{})
	return err
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
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
