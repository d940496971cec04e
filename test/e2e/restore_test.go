// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/winnow"
)

// restorable is a separate cluster, whose store goes back, with Winnow.
type restorable struct {
	*testing.T
	cluster *cluster.Cluster
	etcds   []string // those that go back
	server  *winnow.Server
	kube    kubernetes.Interface
	gc      gcclient.GcV1alpha1Interface
	want    map[string][]string // by namespace, all DELETE requests that there should have been, such as "jobs/job-00000 p/default"
}

// stores are the etcds that have policies or objects.
func stores() []string {
	if *inEtcd {
		return []string{cluster.Etcd, cluster.OwnEtcd}
	}
	return []string{cluster.Etcd}
}

func newRestorable(t *testing.T, etcds []string, flags ...string) *restorable {
	c, err := cluster.Start(whole, cluster.Options{
		Components: []string{cluster.Etcd, cluster.APIServer}, OwnEtcd: slices.Contains(etcds, cluster.OwnEtcd),
	})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	s, err := winnow.Start(whole, c, winnow.Options{
		Replicas: 2, Binary: filepath.Join(suite.Dir, "winnow-apiserver"),
		Flags: slices.Concat(leaseFlags, flags),
	})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	w := &restorable{T: t, cluster: c, etcds: etcds, server: s, want: map[string][]string{}}
	w.kube, err = kubernetes.NewForConfig(c.RESTConfig())
	must(t, err)
	w.gc, err = patientClient(c.RESTConfig())
	must(t, err)
	return w
}

// namespace creates a namespace with n finished Jobs and a policy.
func (w *restorable) namespace(name string, labels map[string]string, n int, spec v1alpha1.CleanupPolicySpec) {
	w.Helper()
	ctx := w.Context()
	_, err := w.kube.CoreV1().Namespaces().
		Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	must(w.T, err)
	_, err = w.gc.CleanupPolicies(name).
		Create(ctx, &v1alpha1.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec}, metav1.CreateOptions{})
	must(w.T, err)
	w.finishJobs(name, n)
}

// finishJobs creates n Jobs that are finished now.
func (w *restorable) finishJobs(ns string, n int) {
	w.Helper()
	created, err := jobs.Create(w.Context(), w.kube, ns, n)
	must(w.T, err)
	at := time.Now()
	must(w.T, jobs.Finish(w.Context(), w.kube, created, func(int) time.Time { return at }))
}

// change patches the spec of the policy of a namespace.
func (w *restorable) change(ns, spec string) {
	w.Helper()
	_, err := w.gc.CleanupPolicies(ns).Patch(w.Context(), "p", types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{})
	must(w.T, err)
}

// expectGone expects one more DELETE of each of the n Jobs of a namespace, and no other.
func (w *restorable) expectGone(ns string, n int) {
	w.Helper()
	for i := range n {
		w.want[ns] = append(w.want[ns], fmt.Sprintf("jobs/job-%05d p/default", i))
	}
	w.expectDeletions(ns)
}

// expectDeletions waits until the DELETE requests in namespaces are those that are wanted. One more than wanted fails.
func (w *restorable) expectDeletions(namespaces ...string) {
	w.Helper()
	eventually(w.T, func(context.Context) string {
		events, err := w.cluster.Audit(cluster.DeletesBy("winnow"))
		must(w.T, err)
		got := map[string][]string{}
		for i := range events {
			ns := events[i].ObjectRef.Namespace
			d := deletionOf(w.T, &events[i])
			got[ns] = append(got[ns], d.object+" "+d.decider(ns))
		}
		for _, ns := range namespaces {
			slices.Sort(got[ns])
			slices.Sort(w.want[ns])
			if !slices.Equal(got[ns], w.want[ns]) {
				return fmt.Sprintf("DELETE requests in %s:\n%s\nwant:\n%s", ns, strings.Join(got[ns], "\n"), strings.Join(w.want[ns], "\n"))
			}
		}
		return ""
	})
}

// waitStatus waits until the status of the policy of a namespace is as wanted, and returns it.
func (w *restorable) waitStatus(ns string, wanted func(*v1alpha1.CleanupPolicyStatus) bool) *v1alpha1.CleanupPolicyStatus {
	w.Helper()
	return waitStatusOf(w.T, "p in "+ns, func(ctx context.Context) (*v1alpha1.CleanupPolicyStatus, error) {
		p, err := w.gc.CleanupPolicies(ns).Get(ctx, "p", metav1.GetOptions{})
		return &p.Status, err
	}, wanted)
}

// afterwards waits until Winnow has deleted what became due now, and what became due after that: what it has not deleted by then, it keeps.
func (w *restorable) afterwards(ns string) {
	w.Helper()
	w.namespace(ns, nil, 1, v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	w.expectGone(ns, 1)
	w.finishJobs(ns, 1)
	w.expectGone(ns, 1)
}

// version returns the resourceVersion of an etcd.
func (w *restorable) version(etcd string) int {
	w.Helper()
	if etcd == cluster.OwnEtcd { // Winnow must notice by itself, so it is not asked.
		found, err := etcdClient(w.T, w.cluster).Get(w.Context(), "/")
		must(w.T, err)
		return int(found.Header.Revision)
	}
	l, err := w.kube.CoreV1().Namespaces().List(w.Context(), metav1.ListOptions{Limit: 1})
	must(w.T, err)
	n, err := strconv.Atoi(l.ResourceVersion)
	must(w.T, err)
	return n
}

// write has each store go ahead, by so much that it is not there again before the test ends once it has gone back.
func (w *restorable) write() {
	w.Helper()
	if slices.Contains(w.etcds, cluster.OwnEtcd) {
		own := etcdClient(w.T, w.cluster)
		each(600, func(int) {
			if _, err := own.Put(w.Context(), "/written", ""); err != nil {
				w.Error(err)
			}
		})
	}
	each(600, func(int) {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "written-"}}
		if _, err := w.kube.CoreV1().ConfigMaps("default").Create(w.Context(), m, metav1.CreateOptions{}); err != nil {
			w.Error(err)
		}
	})
}

// restore has the etcds go back.
func (w *restorable) restore(backup string) {
	w.Helper()
	before := map[string]int{}
	for _, etcd := range w.etcds {
		before[etcd] = w.version(etcd)
	}
	must(w.T, w.cluster.Restore(whole, backup, w.etcds...))
	for _, etcd := range w.etcds {
		if after := w.version(etcd); after > before[etcd]-400 {
			w.Fatalf("%s went from %d to %d", etcd, before[etcd], after)
		}
	}
}

// after restored, these namespaces have two Jobs each that a policy keeps. Before that, the policies were relaxed.
var keeping = []string{"strict", "suspended", "protected"}

// relax has the Jobs of these namespaces deleted.
func (w *restorable) relax() {
	w.Helper()
	w.relaxPolicies()
	_, err := w.kube.CoreV1().Namespaces().Patch(w.Context(), "protected", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+labelProtected+`":null}}}`), metav1.PatchOptions{})
	must(w.T, err)
	w.expectGone("protected", 2)
}

// relaxPolicies has the Jobs deleted that policies keep.
func (w *restorable) relaxPolicies() {
	w.Helper()
	w.change("strict", `{"ttlAfterFinished":"0s"}`)
	w.change("suspended", `{"suspend":false}`)
	w.expectGone("strict", 2)
	w.expectGone("suspended", 2)
}

// waitKeeping waits until two Jobs are kept in each of these namespaces.
func (w *restorable) waitKeeping() {
	w.Helper()
	w.waitPoliciesKeep()
	w.waitStatus("protected", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return len(s.Conditions) > 0 && strings.Contains(fmt.Sprint(s.Conditions), "NamespaceProtected")
	})
}

// waitPoliciesKeep waits until policies keep two Jobs each, as on every replica candidates say.
func (w *restorable) waitPoliciesKeep() {
	w.Helper()
	w.waitStatus("strict", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.ObservedGeneration == 1 && s.Candidates == 2 && s.Due == 0
	})
	w.waitStatus("suspended", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.ObservedGeneration == 1 && s.Held == 2 })
	for _, r := range w.server.Replicas {
		for ns, state := range map[string]string{"strict": `"reason":"Never"`, "suspended": `"reason":"Suspended"`} {
			eventually(w.T, func(ctx context.Context) string {
				answer, err := r.Get(ctx, "/apis/gc.winnow.dev/v1alpha1/namespaces/"+ns+"/cleanupcandidates")
				if n := strings.Count(answer, state); n != 2 || err != nil {
					return fmt.Sprintf("%d candidates of %s with %s at %s: %v %s", n, ns, state, r.Name, err, answer)
				}
				return ""
			})
		}
	}
}

// waitTold waits for an event that says that something has gone back.
func (w *restorable) waitTold(ns, kind, name string) {
	w.Helper()
	eventually(w.T, func(ctx context.Context) string {
		out, stderr, err := w.cluster.Kubectl(ctx, "get", "events", "-n", ns, "-o", "jsonpath={.items[*].involvedObject}",
			"--field-selector", "reason=StoreWentBack,involvedObject.kind="+kind+",involvedObject.name="+name)
		if err != nil || out == "" {
			return fmt.Sprintf("no event in %s says that %s %s has gone back: %v %s", ns, kind, name, err, stderr)
		}
		return ""
	})
}

// backup makes a backup with policies that keep two Jobs each, and a policy in the namespace "tightened" by which ten Jobs become due at a
// time. No change may make more than five due.
func (w *restorable) backup() (backup string, due time.Time) {
	w.Helper()
	_, err := w.gc.ClusterCleanupPolicies().Create(w.Context(), &v1alpha1.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"},
		Spec: v1alpha1.ClusterCleanupPolicySpec{
			Mode: v1alpha1.ModeEnforce, NamespaceSelector: &metav1.LabelSelector{}, Guardrails: holdAbove(5),
		},
	}, metav1.CreateOptions{})
	must(w.T, err)
	const dueAfter = time.Minute // It must be longer than what is done until the policy keeps these Jobs.
	w.namespace("strict", nil, 2, v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("never")})
	w.namespace("suspended", nil, 2, v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s"), Suspend: true})
	w.waitPoliciesKeep()
	w.namespace("tightened", nil, 10, v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl(v1alpha1.TTL(dueAfter.String()))})
	due = time.Now().Add(dueAfter)
	w.waitStatus("tightened", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 10 })
	backup = filepath.Join(w.TempDir(), "backup")
	must(w.T, w.cluster.Backup(whole, backup))
	return backup, due
}

// expectNoticed fails unless each replica has noticed that a store went back.
func (w *restorable) expectNoticed() {
	w.Helper()
	for _, r := range w.server.Replicas {
		log, err := r.Log()
		must(w.T, err)
		if n := strings.Count(log, "Observing everything anew"); n == 0 || n > 2 { // Two may notice at the same time.
			w.Errorf("%s has observed everything anew %d times", r.Name, n)
		}
	}
}

// TestStoreRestored: in the backup, policies keep objects that were deleted after it. Winnow sees these objects again, and keeps them. A
// policy that was changed after the backup to keep more deletes again. That counts as a change, so what it makes due is held above the limit. If
// Winnow does not run during the restore, the same objects are due by time.
func TestStoreRestored(t *testing.T) {
	t.Parallel()
	w := newRestorable(t, stores())
	w.namespace("protected", map[string]string{labelProtected: "true"}, 2, v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	backup, due := w.backup()
	w.change("tightened", `{"ttlAfterFinished":"never"}`)
	w.relax()
	w.write()
	w.afterwards("before") // Watches of policies, namespaces and Jobs have reported something as late as this.
	waitUntil(t, due)

	w.restore(backup)
	w.waitKeeping()
	held := w.waitStatus("tightened", func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, "tightened", 10) })
	w.waitTold("strict", "CleanupPolicy", "p")
	w.waitTold("suspended", "CleanupPolicy", "p")
	w.waitTold("tightened", "CleanupPolicy", "p")
	w.waitTold("protected", "Namespace", "protected")
	w.afterwards("after")
	w.expectDeletions(append(keeping, "tightened")...)
	approveIn(t, w.cluster, held)
	w.expectGone("tightened", 10)

	w.relax()
	w.expectNoticed()
	for _, r := range w.server.Replicas {
		must(t, r.Kill())
	}
	w.write()
	w.restore(backup)
	for _, r := range w.server.Replicas {
		must(t, r.Start(whole))
	}
	w.waitKeeping()
	w.expectGone("tightened", 10) // By time: Winnow was away when they became due.
	w.afterwards("after-start")
	w.expectDeletions(append(keeping, "tightened")...)
}

// TestOwnEtcdRestored: the etcd of Winnow goes back, and the cluster does not. What finishes after that is kept by policies that were
// relaxed meanwhile. A policy that was changed after the backup to keep more deletes again, above the limit only what somebody approves.
func TestOwnEtcdRestored(t *testing.T) {
	t.Parallel()
	w := newRestorable(t, []string{cluster.OwnEtcd})
	backup, due := w.backup()
	w.change("tightened", `{"ttlAfterFinished":"never"}`)
	w.relaxPolicies()
	w.write()
	w.afterwards("before")
	waitUntil(t, due)

	w.restore(backup)
	w.finishJobs("strict", 2)
	w.finishJobs("suspended", 2)
	w.waitPoliciesKeep()
	held := w.waitStatus("tightened", func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, "tightened", 10) })
	for _, ns := range []string{"strict", "suspended", "tightened"} {
		w.waitTold(ns, "CleanupPolicy", "p")
	}
	w.afterwards("after")
	w.expectDeletions("strict", "suspended", "tightened")
	approveIn(t, w.cluster, held)
	w.expectGone("tightened", 10)
	w.expectNoticed()
}

// waitUntil waits until a time has passed.
func waitUntil(t *testing.T, at time.Time) {
	t.Helper()
	eventually(t, func(context.Context) string {
		if left := time.Until(at); left > 0 {
			return fmt.Sprint("it is another ", left)
		}
		return ""
	})
}
