// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/winnow-dev/winnow/artifacts/storage"
	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

// resources are what the cluster serves.
func resources() []apiserver.Resource {
	var out []apiserver.Resource
	add := func(group, resource, kind string, namespaced, status bool) {
		out = append(out, apiserver.Resource{
			GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource},
			Kind:                 kind, Namespaced: namespaced, Status: status,
		})
	}
	add("", "namespaces", "Namespace", false, true)
	add("", "pods", "Pod", true, true)
	add("", "configmaps", "ConfigMap", true, false)
	add("", "secrets", "Secret", true, false)
	add("", "events", "Event", true, false)
	add("", "serviceaccounts", "ServiceAccount", true, false)
	add("", "resourcequotas", "ResourceQuota", true, true)
	add("apps", "replicasets", "ReplicaSet", true, true)
	add("apps", "deployments", "Deployment", true, true)
	add("batch", "jobs", "Job", true, true)
	add("batch", "cronjobs", "CronJob", true, true)
	add("coordination.k8s.io", "leases", "Lease", true, false)
	add("events.k8s.io", "events", "Event", true, false)
	add("apiregistration.k8s.io", "apiservices", "APIService", false, true)
	add("example.com", "runs", "Run", true, true)
	out = append(out, apiserver.Resource{
		GroupVersionResource: workflows.WithVersion("v1alpha1"), Kind: "Workflow", Namespaced: true, Defined: true,
	})
	add("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", false, true)
	add("admissionregistration.k8s.io", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", false, false)
	add("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", false, false)
	return out
}

// found makes the cluster as it is before Winnow comes.
func found(s *apiserver.Store, proxyCA []byte) error {
	create := func(resource string, content map[string]any) error {
		_, err := s.Create(schema.GroupResource{Resource: resource}, content)
		return err
	}
	for _, name := range []string{"default", "kube-system", "winnow-system"} {
		if err := create("namespaces", map[string]any{
			"metadata": content{"name": name, "labels": content{"kubernetes.io/metadata.name": name}}, "status": content{"phase": "Active"},
		}); err != nil {
			return err
		}
	}
	if err := create("configmaps", map[string]any{
		"metadata": map[string]any{"namespace": "kube-system", "name": "extension-apiserver-authentication"},
		"data": map[string]any{
			"client-ca-file": string(proxyCA), "requestheader-client-ca-file": string(proxyCA), "requestheader-allowed-names": `["proxy"]`,
			"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		},
	}); err != nil {
		return err
	}
	return installStorage(s)
}

var crds = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// installStorage does what an administrator does with artifacts/storage.
func installStorage(s *apiserver.Store) error {
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(storage.CRDs), 4096); ; {
		crd := &unstructured.Unstructured{}
		err := decoder.Decode(crd)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		spec := crd.Object["spec"].(map[string]any)
		names := spec["names"].(map[string]any)
		version := spec["versions"].([]any)[0].(map[string]any)
		s.Serve(apiserver.Resource{
			GroupVersionResource: schema.GroupVersionResource{
				Group: spec["group"].(string), Version: version["name"].(string), Resource: names["plural"].(string),
			},
			Kind: names["kind"].(string), Namespaced: spec["scope"] == "Namespaced", Status: version["subresources"] != nil,
		})
		crd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
		if _, err := s.Create(crds, crd.Object); err != nil {
			return err
		}
	}
}
