// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// A namespace has podsEach Pods, of two applications in turn, and contentsEach ConfigMaps and Secrets in turn. The Pods of an application
// refer to usedByApp of these. So half of them are unused.
const podsEach, contentsEach, usedByApp = 10, 20, 5

const (
	unusedEach = contentsEach - 2*usedByApp
	// contentLine is repeated until the data of a ConfigMap or Secret has about a kilobyte.
	contentLine, contentLines = "some.setting: with a value\n", 40
)

func unusedNamespace(i int) string { return fmt.Sprintf("unused-%05d", i) }

// populateUnused creates namespaces with Pods, ConfigMaps and Secrets.
func (w *world) populateUnused(ctx context.Context, namespaces int) error {
	return parallel(ctx, namespaces, func(i int) error {
		name := unusedNamespace(i)
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{crowdLabel: "yes"}}}
		if _, err := w.kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return err
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		if _, err := w.kube.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{}); err != nil {
			return err
		}
		for i := range contentsEach {
			if err := w.createContent(ctx, name, i); err != nil {
				return err
			}
		}
		pods := w.kube.CoreV1().Pods(name)
		for i := range podsEach {
			pod, err := pods.Create(ctx, webPod(name, i), metav1.CreateOptions{})
			if err != nil {
				return err
			}
			pod.Status = running(pod)
			if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// createContent creates a ConfigMap or a Secret.
func (w *world) createContent(ctx context.Context, ns string, i int) (err error) {
	m := metav1.ObjectMeta{Name: contentName(ns, i), Labels: webLabels(i)}
	data := map[string]string{"settings": strings.Repeat(contentLine, contentLines)}
	if isConfigMap(i) {
		_, err = w.kube.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: m, Data: data}, metav1.CreateOptions{})
		return err
	}
	_, err = w.kube.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{ObjectMeta: m, StringData: data}, metav1.CreateOptions{})
	return err
}

func isConfigMap(i int) bool { return i%2 == 0 }

// contentName ends with a hash, as the names that Kustomize generates do.
func contentName(ns string, i int) string { return fmt.Sprintf("settings-%d-%s", i, hashed(ns, i)) }

func hashed(ns string, i int) string {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, ns, i) // It never fails.
	return fmt.Sprintf("%08x", h.Sum32())
}

func webLabels(i int) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": fmt.Sprint("web-", i%2), "app.kubernetes.io/part-of": "web", "app.kubernetes.io/managed-by": "kustomize",
	}
}

// webPodName is the name of a Pod of a ReplicaSet.
func webPodName(ns string, i int) string { return fmt.Sprintf("%s-%05d", webReplicaSet(ns, i), i) }

func webReplicaSet(ns string, i int) string { return fmt.Sprintf("web-%d-%s", i%2, hashed(ns, i%2)) }

// webPod returns a Pod of a ReplicaSet, as the admission of a cluster leaves it: a few kilobytes. Pods of an application refer to the same
// ConfigMaps and Secrets, each in one of the usual ways.
func webPod(ns string, i int) *corev1.Pod {
	app := i % 2
	labels := webLabels(app)
	labels["pod-template-hash"] = hashed(ns, app)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: webPodName(ns, i), Labels: labels,
			Annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080", "checksum/config": hashed(ns, app)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: webReplicaSet(ns, i), UID: types.UID(webReplicaSet(ns, i)),
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "default", NodeName: fmt.Sprintf("node-%04d", i),
			Containers: []corev1.Container{webContainer("web", 8080), webContainer("proxy", 8443)},
			Volumes:    []corev1.Volume{tokenVolume()},
		},
	}
	for i := app * usedByApp; i < (app+1)*usedByApp; i++ {
		refer(&p.Spec, i, contentName(ns, i))
	}
	return p
}

// tokenVolume is the volume that admission adds to each Pod. It refers to a ConfigMap of the namespace.
func tokenVolume() corev1.Volume {
	return corev1.Volume{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: ptr.To[int64](3607), Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}

func webContainer(name string, port int32) corev1.Container {
	c := corev1.Container{
		Name: name, Image: "registry.example.com/team/" + name + "@sha256:" + strings.Repeat("0123456789abcdef", 4),
		Args: []string{fmt.Sprint("--listen-address=0.0.0.0:", port), "--log-format=json", "--log-level=info", "--shutdown-timeout=30s"},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
		Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		LivenessProbe:  webProbe("/healthz", port),
		ReadinessProbe: webProbe("/readyz", port),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), RunAsNonRoot: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
	}
	for i := range 15 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("FEATURE_", i), Value: fmt.Sprintf("https://service-%d.example.com/path", i)})
	}
	return c
}

func webProbe(path string, port int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port)}},
		InitialDelaySeconds: 5, TimeoutSeconds: 2,
	}
}

// refer makes a Pod refer to a ConfigMap or Secret, by a variable, by all variables of a container, or by a volume.
func refer(spec *corev1.PodSpec, i int, name string) {
	c, of := &spec.Containers[0], corev1.LocalObjectReference{Name: name}
	var variable corev1.EnvVarSource
	var variables corev1.EnvFromSource
	var volume corev1.VolumeSource
	if isConfigMap(i) {
		variable.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: of, Key: "settings"}
		variables.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: of}
		volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: of}
	} else {
		variable.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: of, Key: "settings"}
		variables.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: of}
		volume.Secret = &corev1.SecretVolumeSource{SecretName: name}
	}
	switch i % 3 {
	case 0:
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("SETTINGS_", i), ValueFrom: &variable})
	case 1:
		c.EnvFrom = append(c.EnvFrom, variables)
	default:
		v := corev1.Volume{Name: fmt.Sprint("settings-", i), VolumeSource: volume}
		spec.Volumes = append(spec.Volumes, v)
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/etc/" + v.Name, ReadOnly: true})
	}
}

// running returns the status of a Pod that runs.
func running(p *corev1.Pod) corev1.PodStatus {
	started := p.CreationTimestamp
	s := corev1.PodStatus{
		Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, StartTime: &started,
		HostIP: "10.0.0.1", PodIP: "10.244.0.1", PodIPs: []corev1.PodIP{{IP: "10.244.0.1"}},
	}
	for _, t := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: started})
	}
	for _, c := range p.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "containerd://" + strings.Repeat("0123456789abcdef", 4),
			Ready: true, Started: ptr.To(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
		})
	}
	return s
}
