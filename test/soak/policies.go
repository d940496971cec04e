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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/install"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	policyName        = "soak"
	residentNamespace = "resident"
	boundLabel        = "soak.winnow.dev/bound"
)

// churnNamespaces are those whose Jobs and policies change; of every two, one is under the ceiling.
var churnNamespaces = []string{"soak-0", "soak-1", "soak-2", "soak-3", "soak-4", "soak-5", "soak-6", "soak-7"}

func namespaceLabels(name string) map[string]string {
	if name != residentNamespace && (name[len(name)-1]-'0')%2 == 0 {
		return map[string]string{boundLabel: "yes"}
	}
	return nil
}

// governor writes policies, one after the other, more than a second apart, so that no DELETE may follow more than two of them.
type governor struct {
	gc      gcclient.GcV1alpha1Interface
	history *history
	scheme  *runtime.Scheme

	writing sync.Mutex // is held for each change
	now     change
	changes int
}

func newGovernor(client gcclient.GcV1alpha1Interface, h *history) *governor {
	g := &governor{gc: client, history: h, scheme: runtime.NewScheme(), now: newChange()}
	install.Install(g.scheme)
	return g
}

// begin writes the first policies.
func (g *governor) begin(ctx context.Context) error {
	sent := time.Now()
	bounds := &v1alpha1.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}, Spec: boundsSpec(100, "1s")}
	written, err := g.gc.ClusterCleanupPolicies().Create(ctx, bounds, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if g.now.cluster[policyName], err = convert[gc.ClusterCleanupPolicy](g.scheme, written); err != nil {
		return err
	}
	specs := map[string]v1alpha1.CleanupPolicySpec{residentNamespace: {TTLAfterFinished: ptr(v1alpha1.TTL("30d"))}}
	for _, namespace := range churnNamespaces {
		g.now.namespaces[namespace] = namespaceLabels(namespace)
		specs[namespace] = v1alpha1.CleanupPolicySpec{TTLAfterFinished: ptr(v1alpha1.TTL("5s"))}
	}
	for namespace, spec := range specs {
		p := &v1alpha1.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName, Namespace: namespace}, Spec: spec}
		written, err := g.gc.CleanupPolicies(namespace).Create(ctx, p, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if g.now.policies[policyOf(namespace)], err = convert[gc.CleanupPolicy](g.scheme, written); err != nil {
			return err
		}
	}
	delete(g.now.policies, policyOf(residentNamespace)) // Nothing goes there, and nothing there counts elsewhere.
	g.now.sent, g.now.acked = sent, time.Now()
	g.history.changed(g.now)
	return nil
}

// run changes one policy after the other.
func (g *governor) run(ctx context.Context, r *rand.Rand) error {
	for poll.Pause(ctx, 1200*time.Millisecond+time.Duration(r.IntN(1500))*time.Millisecond) == nil {
		if err := g.change(context.WithoutCancel(ctx), r); err != nil {
			return err
		}
	}
	return nil
}

func (g *governor) change(ctx context.Context, r *rand.Rand) error {
	g.writing.Lock()
	defer g.writing.Unlock()
	next := g.now.clone()
	write := g.randomPolicy(r, &next)
	if r.IntN(5) == 0 {
		write = g.randomBounds(r, &next)
	}
	next.sent = time.Now()
	// What comes of a request that fails is not known until the same one succeeds.
	if err := eventually(ctx, write); err != nil {
		return err
	}
	next.acked = time.Now()
	g.now = next
	g.changes++
	g.history.changed(next)
	return nil
}

func (g *governor) randomPolicy(r *rand.Rand, next *change) func(context.Context) error {
	namespace := churnNamespaces[r.IntN(len(churnNamespaces))]
	spec := v1alpha1.CleanupPolicySpec{
		Mode:             pick(r, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce, v1alpha1.ModePreview),
		TTLAfterFinished: ptr(pick[v1alpha1.TTL](r, "0s", "1s", "3s", "5s", "10s", "20s", "never")),
		AnnotationTTL:    pick(r, v1alpha1.AnnotationExtendOnly, v1alpha1.AnnotationAny, v1alpha1.AnnotationIgnore),
	}
	if r.IntN(2) == 0 {
		spec.Capacity = &v1alpha1.Capacity{MaxObjects: ptr(pick[int64](r, 0, 3, 10, 30))}
		if r.IntN(2) == 0 {
			spec.Capacity.MinAge = ptr(pick[v1alpha1.TTL](r, "1s", "3s"))
		}
	}
	return func(ctx context.Context) error {
		p := &v1alpha1.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName, Namespace: namespace}, Spec: spec}
		written, err := g.gc.CleanupPolicies(namespace).Update(ctx, p, metav1.UpdateOptions{})
		if err == nil {
			next.policies[policyOf(namespace)], err = convert[gc.CleanupPolicy](g.scheme, written)
		}
		return err
	}
}

func (g *governor) randomBounds(r *rand.Rand, next *change) func(context.Context) error {
	spec := boundsSpec(pick[int64](r, 10, 40, 100, 400), pick[v1alpha1.TTL](r, "0s", "1s", "4s"))
	return func(ctx context.Context) error {
		p := &v1alpha1.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}, Spec: spec}
		written, err := g.gc.ClusterCleanupPolicies().Update(ctx, p, metav1.UpdateOptions{})
		if err == nil {
			next.cluster[policyName], err = convert[gc.ClusterCleanupPolicy](g.scheme, written)
		}
		return err
	}
}

// boundsSpec is a ceiling and the least TTL of the namespaces with the label.
func boundsSpec(ceiling int64, minTTL v1alpha1.TTL) v1alpha1.ClusterCleanupPolicySpec {
	return v1alpha1.ClusterCleanupPolicySpec{
		Mode: v1alpha1.ModeEnforce, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{boundLabel: "yes"}},
		Guardrails: &v1alpha1.Guardrails{
			MinTTL: &minTTL, Capacity: []v1alpha1.Ceiling{{Resources: []string{gc.ResourceJobs}, MaxObjects: &ceiling}},
		},
	}
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
	d, never, err := h.changes[len(h.changes)-1].policies[policyOf(namespace)].Spec.TTLAfterFinished.Parse()
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
