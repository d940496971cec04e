// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/winnow-dev/winnow/pkg/plugin"
	"github.com/winnow-dev/winnow/pkg/plugin/unused"
	"github.com/winnow-dev/winnow/test/cluster"
)

// boundClaim creates a claim with a volume of its own, of one gibibyte.
func boundClaim(t *testing.T, ns, name string) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: ns + "-" + name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes, StorageClassName: "by-hand", PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none"}},
		ClaimRef:               &corev1.ObjectReference{Namespace: ns, Name: name},
	}}
	_, err := kube.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { _ = kube.CoreV1().PersistentVolumes().Delete(whole, volume.Name, metav1.DeleteOptions{}) })
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: modes, StorageClassName: new("by-hand"), VolumeName: volume.Name, Resources: corev1.VolumeResourceRequirements{Requests: size},
	}}
	_, err = kube.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), claim, metav1.CreateOptions{})
	must(t, err)
}

// mounts lets Pods use a claim. Nothing runs them.
func mounts(spec *corev1.PodSpec, claim string) {
	spec.SchedulerName = "none"
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}})
}

// readUnused returns what kubectl winnow unused reports on the claims of a namespace, by name; an error if it could not read everything.
func readUnused(t *testing.T, ns string) (map[string]unused.Object, error) {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	args := []string{"unused", "pvc", "-n", ns, "-o", "json", "--kubeconfig", suite.Kubeconfig(), "--cache-dir", filepath.Join(t.TempDir(), "cache")}
	if code := plugin.Run(t.Context(), args, streams); code != 0 {
		return nil, fmt.Errorf("it ended with %d: %s", code, errOut)
	}
	r := &unused.Report{}
	must(t, json.Unmarshal(out.Bytes(), r))
	if len(r.Incomplete) > 0 { // Another test has just deleted a CustomResourceDefinition.
		return nil, fmt.Errorf("incomplete: %v", r.Incomplete)
	}
	found := map[string]unused.Object{}
	for _, o := range r.Objects {
		found[o.Name] = o
	}
	return found, nil
}

// agree returns where a report says something else of claims than their condition Unused; empty if it does nowhere.
func agree(claims []corev1.PersistentVolumeClaim, found map[string]unused.Object) string {
	var out []string
	for i := range claims {
		claim := &claims[i]
		at := slices.IndexFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
			return c.Type == corev1.PersistentVolumeClaimUnused
		})
		if at < 0 {
			out = append(out, claim.Name+" has no condition")
			continue
		}
		said, o := &claim.Status.Conditions[at], found[claim.Name]
		idle := said.Status == corev1.ConditionTrue
		if (o.State != "") != idle || idle && !o.Claim.NoPodSince.Equal(said.LastTransitionTime.Time) {
			out = append(out, fmt.Sprintf("%s: %+v, but Kubernetes says %s since %s", claim.Name, o, said.Status, said.LastTransitionTime))
		}
	}
	return strings.Join(out, "\n")
}

// TestUnusedReport: what kubectl winnow unused says of claims is what Kubernetes says in their condition Unused, and who else keeps them.
func TestUnusedReport(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	name := func(s string) string { return s + "-of-" + ns } // No custom resource of another test has such names.
	for _, claim := range []string{"idle", "mounted", "ended", "scaled", "left"} {
		boundClaim(t, ns, name(claim))
	}
	ofSet := "data-" + name("set") + "-0"
	boundClaim(t, ns, ofSet)
	for _, claim := range []string{"mounted", "ended", "left"} {
		p, err := kube.CoreV1().Pods(ns).Create(t.Context(), pod(claim, func(p *corev1.Pod) { mounts(&p.Spec, name(claim)) }), metav1.CreateOptions{})
		must(t, err)
		if claim == "ended" {
			p.Status.Phase = corev1.PodSucceeded
			_, err = kube.CoreV1().Pods(ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
			must(t, err)
		}
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}, Spec: podSpec()}
	template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name("set")}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32), Selector: matching(template.Labels), Template: template,
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		}}},
	}}
	_, err := kube.AppsV1().StatefulSets(ns).Create(t.Context(), set, metav1.CreateOptions{})
	must(t, err)
	mounts(&template.Spec, name("scaled"))
	_, err = kube.AppsV1().Deployments(ns).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32), Selector: matching(template.Labels), Template: template,
	}}, metav1.CreateOptions{})
	must(t, err)

	expectUnused(t, ns, map[string]string{
		name("idle"): "", name("ended"): "pods/ended", name("scaled"): "deployments.apps/web", ofSet: "statefulsets.apps/" + name("set"),
	})
	must(t, kube.CoreV1().Pods(ns).Delete(t.Context(), "left", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	must(t, kube.AppsV1().Deployments(ns).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	expectUnused(t, ns, map[string]string{
		name("idle"): "", name("left"): "", name("scaled"): "", name("ended"): "pods/ended", ofSet: "statefulsets.apps/" + name("set"),
	})
	expectPlugin(t, ns, "", 1, []string{"What they take", "by-hand        3        3.0 GiB     3.0 GiB"}, "unused", "pvc", "--exit-code")
}

// expectUnused waits until the report has these claims with what keeps them, "" for nothing, and agrees with Kubernetes.
func expectUnused(t *testing.T, ns string, want map[string]string) {
	t.Helper()
	says := cluster.Since(t, "1.37", "claims have no condition Unused to compare with")
	eventually(t, func(ctx context.Context) string {
		found, err := readUnused(t, ns)
		if err != nil {
			return err.Error()
		}
		for name, o := range found {
			by, ok := want[name]
			if kept := len(o.UsedBy) > 0; !ok || kept != (by != "") || kept && !slices.Contains(o.UsedBy, by) || kept != (o.State == unused.Referenced) {
				return fmt.Sprintf("%s is %+v, want %q", name, o, by)
			}
		}
		if len(found) != len(want) {
			return fmt.Sprintf("got %v, want %v", found, want)
		}
		claims, err := kube.CoreV1().PersistentVolumeClaims(ns).List(ctx, metav1.ListOptions{})
		switch {
		case err != nil:
			return err.Error()
		case says:
			return agree(claims.Items, found)
		}
		return ""
	})
}

// TestUnusedReportOfTenant: what a tenant may not list counts as a use, and the report says so.
func TestUnusedReportOfTenant(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	user := "tenant-of-" + ns
	kubeconfig, err := suite.KubeconfigFor(user)
	must(t, err)
	kubectl(t, "create", "rolebinding", "tenant", "-n", ns, "--clusterrole=view", "--user="+user)
	kubectl(t, "create", "serviceaccount", "robot", "-n", ns)
	eventually(t, func(ctx context.Context) string {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		code := plugin.Run(ctx, []string{
			"unused", "sa", "-n", ns, "--exit-code", "--kubeconfig", kubeconfig, "--cache-dir", filepath.Join(t.TempDir(), "cache"),
		}, streams)
		if code != 0 || !strings.Contains(out.String(), "serviceaccounts/robot") || !strings.Contains(out.String(), "Perhaps unused") ||
			!strings.Contains(errOut.String(), "cannot list ") || !strings.Contains(errOut.String(), "rolebindings.rbac.authorization.k8s.io") {
			return fmt.Sprintf("ended with %d: %s%s", code, out, errOut)
		}
		return ""
	})
}
