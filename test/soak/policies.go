// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/install"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	policyName        = "soak"
	stopName          = "stop"
	residentNamespace = "resident"
	boundLabel        = "soak.winnow.dev/bound"
)

// isArchived is an expression that the model knows. The driver labels objects like this, as an archiver would.
const isArchived = "object.metadata.?labels[?'archived'].orValue('') == 'true'"

// churnNamespaces are those whose Jobs, Pods, labels and policies change; of every two, one is under the ceiling at first.
var churnNamespaces = []string{"soak-0", "soak-1", "soak-2", "soak-3", "soak-4", "soak-5", "soak-6", "soak-7"}

func namespaceLabels(name string) map[string]string {
	if name != residentNamespace && (name[len(name)-1]-'0')%2 == 0 {
		return map[string]string{boundLabel: "yes"}
	}
	return nil
}

// governor writes policies, labels and quotas, one after the other.
type governor struct {
	kube    kubernetes.Interface
	gc      gcclient.GcV1alpha1Interface
	history *history
	scheme  *runtime.Scheme

	writing sync.Mutex // is held for each change
	now     change
	changes int
}

func newGovernor(kube kubernetes.Interface, client gcclient.GcV1alpha1Interface, h *history) *governor {
	g := &governor{kube: kube, gc: client, history: h, scheme: runtime.NewScheme(), now: newChange()}
	install.Install(g.scheme)
	return g
}

// edit prepares a change, and returns what makes it.
type edit func(next *change) func(context.Context) error

// write makes a change. What comes of a request that fails is not known until the same one succeeds.
func (g *governor) write(ctx context.Context, e edit) error {
	g.writing.Lock()
	defer g.writing.Unlock()
	next := g.now.clone()
	request := e(&next)
	next.sent = time.Now()
	if err := eventually(context.WithoutCancel(ctx), request); err != nil {
		return err
	}
	next.acked = time.Now()
	g.now = next
	g.changes++
	g.history.changed(next)
	return nil
}

// begin writes the first policies. The one of the residents is not remembered: nothing goes there, and nothing there counts elsewhere.
func (g *governor) begin(ctx context.Context) error {
	edits := []edit{
		g.cluster(policyName, boundsSpec(100, "1s")), g.cluster(stopName, stopSpec(false)), g.cluster(crowdLabel, crowdSpec()),
		func(*change) func(context.Context) error {
			spec := v1alpha1.CleanupPolicySpec{TTLAfterFinished: ptr(v1alpha1.TTL("30d"))}
			return g.policy(residentNamespace, policyName, spec)(ptr(newChange()))
		},
	}
	for _, namespace := range churnNamespaces {
		five := v1alpha1.CleanupPolicySpec{TTLAfterFinished: ptr(v1alpha1.TTL("5s"))}
		edits = append(edits, g.labels(namespace, namespaceLabels(namespace)), g.quota(namespace, 40), g.policy(namespace, policyName, five))
	}
	for _, e := range edits {
		if err := g.write(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// run changes one thing after the other.
func (g *governor) run(ctx context.Context, r *rand.Rand) error {
	for poll.Pause(ctx, 1200*time.Millisecond+time.Duration(r.IntN(1500))*time.Millisecond) == nil {
		if err := g.write(ctx, g.random(r)); err != nil {
			return err
		}
	}
	return nil
}

func (g *governor) random(r *rand.Rand) edit {
	namespace := churnNamespaces[r.IntN(len(churnNamespaces))]
	switch r.IntN(12) {
	case 0, 1:
		spec := boundsSpec(pick[int64](r, 10, 40, 100, 400), pick[v1alpha1.TTL](r, "0s", "1s", "4s"))
		spec.Suspend = r.IntN(4) == 0
		return g.cluster(policyName, spec)
	case 2, 3:
		return g.cluster(stopName, stopSpec(r.IntN(3) == 0))
	case 4:
		return g.labels(namespace, pick(r, nil, map[string]string{boundLabel: "yes"}, map[string]string{gc.LabelProtected: "true"}))
	case 5:
		return g.quota(namespace, pick(r, noQuota, 4, 10, 40))
	}
	return g.policy(namespace, policyName, randomSpec(r))
}

func randomSpec(r *rand.Rand) v1alpha1.CleanupPolicySpec {
	ttl := func() *v1alpha1.TTL { return ptr(pick[v1alpha1.TTL](r, "0s", "1s", "3s", "5s", "10s", "20s", "never")) }
	spec := v1alpha1.CleanupPolicySpec{
		Mode:             pick(r, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce, v1alpha1.ModePreview),
		TTLAfterFinished: ttl(),
		Suspend:          r.IntN(8) == 0,
		AnnotationTTL:    pick(r, v1alpha1.AnnotationExtendOnly, v1alpha1.AnnotationAny, v1alpha1.AnnotationIgnore),
	}
	if r.IntN(2) == 0 {
		spec.Capacity = &v1alpha1.Capacity{MaxObjects: ptr(pick[int64](r, 0, 3, 10, 30))}
		if r.IntN(2) == 0 {
			spec.Capacity = &v1alpha1.Capacity{PercentOfQuota: ptr(pick[int64](r, 10, 50, 100))}
		}
		if r.IntN(2) == 0 {
			spec.Capacity.MinAge = ptr(pick[v1alpha1.TTL](r, "1s", "3s"))
		}
	}
	if r.IntN(3) == 0 {
		spec.Rules = append(spec.Rules, v1alpha1.CleanupRule{
			Name: "pods", Resources: []string{gc.ResourcePods}, TTL: ttl(),
			Dependents: pick(r, v1alpha1.DependentsWithOwner, v1alpha1.DependentsAfterOwnerFinished, v1alpha1.DependentsOnceCounted),
		})
	}
	if r.IntN(3) == 0 {
		// The model knows these expressions.
		expression := pick(r, "object.metadata.name.endsWith('1')", "object.metadata.labels.app == 'x'", "!has(object.metadata.labels.run)")
		spec.Rules = append(spec.Rules, v1alpha1.CleanupRule{
			Name: "conditional", TTL: ttl(), MatchConditions: []v1alpha1.MatchCondition{{Name: "c", Expression: expression}},
		})
	}
	if r.IntN(4) == 0 {
		spec.Rules = append(spec.Rules, v1alpha1.CleanupRule{
			Name: "waits", TTL: ttl(), WaitFor: &v1alpha1.WaitFor{
				Expression: isArchived, AtMost: ptr(pick[v1alpha1.TTL](r, "2s", "6s", "7d")),
				OnTimeout: pick(r, v1alpha1.WaitTimeoutDelete, v1alpha1.WaitTimeoutKeep),
			},
		})
	}
	if r.IntN(4) == 0 {
		spec.Rules = append(spec.Rules, v1alpha1.CleanupRule{
			Name: "jobs", Resources: []string{gc.ResourceJobs}, TTL: ttl(),
			Capacity: &v1alpha1.Capacity{MaxObjects: ptr(int64(1)), Per: v1alpha1.CapacityPerOwner},
		})
	}
	return spec
}

// policy creates or updates one.
func (g *governor) policy(namespace, name string, spec v1alpha1.CleanupPolicySpec) edit {
	return func(next *change) func(context.Context) error {
		client := g.gc.CleanupPolicies(namespace)
		return func(ctx context.Context) error {
			p := &v1alpha1.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: spec}
			written, err := client.Update(ctx, p, metav1.UpdateOptions{})
			if apierrors.IsNotFound(err) {
				written, err = client.Create(ctx, p, metav1.CreateOptions{})
			}
			if err == nil {
				next.policies[types.NamespacedName{Namespace: namespace, Name: name}], err = convert[gc.CleanupPolicy](g.scheme, written)
			}
			return err
		}
	}
}

// noPolicy deletes one.
func (g *governor) noPolicy(namespace, name string) edit {
	return func(next *change) func(context.Context) error {
		delete(next.policies, types.NamespacedName{Namespace: namespace, Name: name})
		return func(ctx context.Context) error {
			return ignoreNotFound(g.gc.CleanupPolicies(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
		}
	}
}

// cluster creates or updates a cluster policy.
func (g *governor) cluster(name string, spec v1alpha1.ClusterCleanupPolicySpec) edit {
	return func(next *change) func(context.Context) error {
		client := g.gc.ClusterCleanupPolicies()
		return func(ctx context.Context) error {
			p := &v1alpha1.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
			written, err := client.Update(ctx, p, metav1.UpdateOptions{})
			if apierrors.IsNotFound(err) {
				written, err = client.Create(ctx, p, metav1.CreateOptions{})
			}
			if err == nil {
				next.cluster[name], err = convert[gc.ClusterCleanupPolicy](g.scheme, written)
			}
			return err
		}
	}
}

// noCluster deletes a cluster policy.
func (g *governor) noCluster(name string) edit {
	return func(next *change) func(context.Context) error {
		delete(next.cluster, name)
		return func(ctx context.Context) error {
			return ignoreNotFound(g.gc.ClusterCleanupPolicies().Delete(ctx, name, metav1.DeleteOptions{}))
		}
	}
}

// labels creates a namespace with these labels, or replaces its labels with them.
func (g *governor) labels(namespace string, labels map[string]string) edit {
	return func(next *change) func(context.Context) error {
		next.namespaces[namespace] = labels
		client := g.kube.CoreV1().Namespaces()
		return func(ctx context.Context) error {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}
			_, err := client.Update(ctx, ns, metav1.UpdateOptions{})
			if apierrors.IsNotFound(err) {
				_, err = client.Create(ctx, ns, metav1.CreateOptions{})
			}
			return err
		}
	}
}

// quota writes one for the number of Jobs. Like Jobs it is observed, and followed as soon as that is done.
func (g *governor) quota(namespace string, allows int64) edit {
	return func(*change) func(context.Context) error {
		client, q := g.kube.CoreV1().ResourceQuotas(namespace), quotaOf(namespace, allows)
		if allows == noQuota {
			q.Spec.Hard = nil
		}
		sent := time.Now()
		return func(ctx context.Context) error {
			_, err := client.Update(ctx, q, metav1.UpdateOptions{})
			if apierrors.IsNotFound(err) {
				_, err = client.Create(ctx, q, metav1.CreateOptions{})
			}
			if err == nil {
				g.history.quota(namespace, allows, sent, time.Now())
			}
			return err
		}
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// boundsSpec is a ceiling and the least TTL of the namespaces with the label.
func boundsSpec(ceiling int64, minTTL v1alpha1.TTL) v1alpha1.ClusterCleanupPolicySpec {
	return v1alpha1.ClusterCleanupPolicySpec{
		Mode: v1alpha1.ModeEnforce, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{boundLabel: "yes"}},
		Guardrails: &v1alpha1.Guardrails{
			MinTTL: &minTTL, Ceilings: []v1alpha1.Ceiling{{Resources: []string{gc.ResourceJobs}, MaxObjects: &ceiling}},
		},
	}
}

// stopSpec stops all deletions in the same namespaces, or not.
func stopSpec(suspend bool) v1alpha1.ClusterCleanupPolicySpec {
	spec := boundsSpec(0, "0s")
	spec.Guardrails = &v1alpha1.Guardrails{SuspendAll: suspend}
	return spec
}

// policyOf names the policy that a namespace has.
func policyOf(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: policyName}
}

// convert makes of a policy, as it is served, the form that the model knows.
func convert[T any](scheme *runtime.Scheme, from any) (*T, error) {
	out := new(T)
	return out, scheme.Convert(from, out, nil)
}

// ttl is how long finished Jobs of a namespace are kept now; 0 for ever too.
func (h *history) ttl(namespace string) time.Duration {
	h.lock.Lock()
	defer h.lock.Unlock()
	p := h.changes[len(h.changes)-1].policies[policyOf(namespace)]
	if p == nil || p.Spec.TTLAfterFinished == nil {
		return 0
	}
	d, never, err := p.Spec.TTLAfterFinished.Parse()
	if never || err != nil {
		return 0
	}
	return d
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func ptr[T any](v T) *T { return &v }

func inJSON(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(out)
}
