// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Annotations of Argo CD. The tracking ID is "<app>:<group>/<Kind>:<namespace>/<name>".
const (
	argoTrackingID = "argocd.argoproj.io/tracking-id"
	argoHook       = "argocd.argoproj.io/hook"
)

// helmRelease begins the annotations of Helm that name the release and its namespace.
const helmRelease = "meta.helm.sh/release-"

// AppliedBy returns which tool applied an object and would create it again, by the labels and annotations that each tool sets; empty if
// none did. They are often copied along with templates, so they count only if they are complete and, if they name an object, name this one.
func AppliedBy(kind schema.GroupKind, m *metav1.ObjectMeta) string {
	if app := argoApp(kind, m); app != "" {
		return "Argo CD app " + quote(app)
	}
	if hook, ok := m.Annotations[argoHook]; ok {
		return "Argo CD hook " + quote(hook)
	}
	for _, tool := range []struct {
		title  string
		values map[string]string
		prefix string
	}{
		{"Flux Kustomization ", m.Labels, "kustomize.toolkit.fluxcd.io/"},
		{"Flux HelmRelease ", m.Labels, "helm.toolkit.fluxcd.io/"},
		{"Helm release ", m.Annotations, helmRelease},
	} {
		name, namespace := tool.values[tool.prefix+"name"], tool.values[tool.prefix+"namespace"]
		if name != "" && namespace != "" {
			return tool.title + quote(namespace+"/"+name)
		}
	}
	return ""
}

// argoApp returns the Argo CD app whose tracking ID names this object; empty if there is none. The name of an app ends at the first colon.
func argoApp(kind schema.GroupKind, m *metav1.ObjectMeta) string {
	id, ok := m.Annotations[argoTrackingID]
	if !ok {
		return ""
	}
	app, ok := strings.CutSuffix(id, ":"+kind.Group+"/"+kind.Kind+":"+m.Namespace+"/"+m.Name)
	if !ok || strings.Contains(app, ":") {
		return ""
	}
	return app
}

func quote(s string) string { return strconv.Quote(truncate(s, maxAnnotationLength)) }
