// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/test/platforms"
)

// contentKind is ConfigMap or Secret.
type contentKind struct {
	kind     string
	resource schema.GroupVersionResource
	// volume and from are the fields of a volume and of envFrom that name one, and volumeName is the field of the name in a volume.
	volume, volumeName, from string
}

var (
	coreV1        = schema.GroupVersion{Version: "v1"}
	configMapKind = contentKind{"ConfigMap", coreV1.WithResource("configmaps"), "configMap", "name", "configMapRef"}
	secretKind    = contentKind{"Secret", coreV1.WithResource("secrets"), "secret", "secretName", "secretRef"}
)

// holders is a custom resource without a lifecycle: every name that stands in one of its objects counts.
var holders = platforms.Resource{Group: "soak.example.com", Kind: "Holder", Plural: "holders", Versions: []string{"v1"}}

// referrer is a kind of objects that may refer to ConfigMaps and Secrets.
type referrer struct {
	kind     string
	resource schema.GroupVersionResource
	// changes is set if an object may refer to another one later.
	changes bool
	spec    func(kind contentKind, name string) map[string]any
}

var referrers = []*referrer{
	{"Pod", coreV1.WithResource("pods"), false, mountingSpec},
	{"Deployment", schema.GroupVersion{Group: "apps", Version: "v1"}.WithResource("deployments"), true, deploymentSpec},
	{"CronJob", schema.GroupVersion{Group: "batch", Version: "v1"}.WithResource("cronjobs"), true, cronJobSpec},
	{holders.Kind, holders.GroupVersionResource(), true, holderSpec},
}

// refersTo returns an object of the kind that refers to a ConfigMap or Secret.
func (r *referrer) refersTo(name string, kind contentKind, to string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": r.resource.GroupVersion().String(), "kind": r.kind, "metadata": map[string]any{"name": name}, "spec": r.spec(kind, to),
	}}
}

func template(labels, spec map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec}
}

func mountingSpec(kind contentKind, name string) map[string]any {
	return map[string]any{
		"containers": []any{map[string]any{"name": "main", "image": "none"}},
		"volumes":    []any{map[string]any{"name": "v", kind.volume: map[string]any{kind.volumeName: name}}},
	}
}

func deploymentSpec(kind contentKind, name string) map[string]any {
	labels, from := map[string]any{"app": "web"}, []any{map[string]any{kind.from: map[string]any{"name": name}}}
	spec := map[string]any{"containers": []any{map[string]any{"name": "main", "image": "none", "envFrom": from}}}
	return map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": template(labels, spec)}
}

func cronJobSpec(kind contentKind, name string) map[string]any {
	spec := mountingSpec(kind, name)
	spec["restartPolicy"] = "Never"
	return map[string]any{
		"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": map[string]any{"spec": map[string]any{"template": template(nil, spec)}},
	}
}

func holderSpec(_ contentKind, name string) map[string]any {
	return map[string]any{"sources": []any{map[string]any{"from": name}}}
}
