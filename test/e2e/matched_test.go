// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	usagemarks "github.com/winnow-dev/winnow/pkg/controller/write/marks"
)

// matchedAfter is a policy that deletes ConfigMaps some time after they were labelled app=web.
func matchedAfter(d v1alpha1.TTL) v1alpha1.CleanupPolicySpec {
	return v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
		Name: "web", Resources: []string{"configmaps"}, After: v1alpha1.AfterMatched, TTL: &d,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}}
}

// waitMatches waits until so many objects of a namespace have marks of rules that match them, and returns since when the last one does.
// Only matches that begin with a change of a policy are stored at once.
func waitMatches(t *testing.T, ns string, want int) (last time.Time) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		list, err := storedMarks(t, ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		found := 0
		last = time.Time{}
		for i := range list.Items {
			m, err := usagemarks.Decode(&list.Items[i])
			must(t, err)
			for _, mark := range m.Matched {
				if found++; mark.Since.After(last) {
					last = mark.Since
				}
			}
		}
		if found != want {
			return fmt.Sprintf("%d objects have marks, want %d", found, want)
		}
		return ""
	})
	return last
}

func label(t *testing.T, ns, name, app string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{"app":%q}}}`, app)
	_, err := kube.CoreV1().ConfigMaps(ns).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

// matchedBefore lets a rule match an object. The returned function checks that after a restart the rule matches since the same time, and
// that the time starts anew when the object matches again.
func matchedBefore(t *testing.T) (check func()) {
	t.Helper()
	ns := newNamespace(t)
	createConfigMap(t, ns, "old")
	createPolicy(t, ns, "p", matchedAfter("1h"))
	before := waitMatches(t, ns, 1)
	return func() {
		t.Helper()
		waitCandidate(t, ns, "configmaps/old", "after: Matched", "reason: NotDue")
		if after := waitMatches(t, ns, 1); !after.Equal(before) {
			t.Errorf("matches since %v, and before the restart %v", after, before)
		}
		label(t, ns, "old", "db")
		waitMatches(t, ns, 0)
		label(t, ns, "old", "web")
		eventually(t, func(ctx context.Context) string {
			list, err := gc.CleanupCandidates(ns).List(ctx, metav1.ListOptions{})
			switch {
			case err != nil:
				return err.Error()
			case len(list.Items) != 1 || list.Items[0].Status.Since == nil:
				return fmt.Sprintf("these are candidates: %v", list.Items)
			case !list.Items[0].Status.Since.After(before):
				return fmt.Sprintf("it matches since %s, as before it did not match", list.Items[0].Status.Since)
			}
			return ""
		})
		changePolicy(t, ns, "p",
			`{"rules":[{"name":"web","resources":["configmaps"],"selector":{"matchLabels":{"app":"web"}},"after":"Matched","ttl":"1s"}]}`)
		expectDeletions(t, ns, "configmaps/old p/web")
		waitMatches(t, ns, 0)
	}
}

// TestUnfinished: a rule deletes Pods that were pending for some time, unless it says to hold them.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	for _, name := range []string{"pending", "kept"} {
		createPod(t, ns, pod(name, func(p *corev1.Pod) {
			p.Spec.SchedulerName = "none"
			p.Labels["app"] = name
		}))
	}
	rule := func(app string, unfinished v1alpha1.UnfinishedPolicy) v1alpha1.CleanupRule {
		return v1alpha1.CleanupRule{
			Name: app, Resources: []string{"pods"}, After: v1alpha1.AfterMatched, TTL: ttl("2s"), Unfinished: unfinished,
			Selector:        &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			MatchConditions: []v1alpha1.MatchCondition{{Name: "pending", Expression: "object.?status.phase.orValue('') == 'Pending'"}},
		}
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		rule("pending", v1alpha1.UnfinishedDelete), rule("kept", v1alpha1.UnfinishedHold),
	}})
	expectDeletions(t, ns, "pods/pending p/pending")
	waitReason(t, ns, "pods/kept", "StillRunning", "it has not finished")
}

// TestTheLastConfigMaps: capacity keeps the ConfigMaps of each app that were created last.
func TestTheLastConfigMaps(t *testing.T) {
	t.Parallel()
	grantByCommand(t, "configmaps")
	ns := newNamespace(t)
	of := func(app string) func(*metav1.ObjectMeta) {
		return func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"app": app, "kind": "release"} }
	}
	createConfigMap(t, ns, "b-old", of("b"))
	createConfigMap(t, ns, "a-old", of("a"))
	waitForNextSecond(t) // Creation times have seconds.
	createConfigMap(t, ns, "a-middle", of("a"))
	waitForNextSecond(t)
	createConfigMap(t, ns, "a-new", of("a"))
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
		Name: "last", Resources: []string{"configmaps"}, After: v1alpha1.AfterCreated,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"kind": "release"}},
		Capacity: &v1alpha1.Capacity{MaxObjects: new(int64(2)), Per: v1alpha1.CapacityPerLabel, LabelKey: "app"},
	}}})
	expectDeletions(t, ns, "configmaps/a-old p/last")
}

// waitForNextSecond waits until the clock shows another second.
func waitForNextSecond(t *testing.T) {
	t.Helper()
	second := time.Now().Truncate(time.Second)
	eventually(t, func(context.Context) string {
		if time.Now().Truncate(time.Second).Equal(second) {
			return "the same second"
		}
		return ""
	})
}
