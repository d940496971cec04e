// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Marks of Argo CD. The tracking id reads "<app>:<group>/<Kind>:<namespace>/<name>".
const (
	argoTrackingID = "argocd.argoproj.io/tracking-id"
	argoHook       = "argocd.argoproj.io/hook"
)

// appliedBy tells who applied an object and would apply it again, by the mark that each tool leaves; empty for nobody.
// A mark counts when it is whole, and, where it names an object, names this one: marks are copied along with templates.
func appliedBy(kind schema.GroupKind, m *metav1.ObjectMeta) string {
	if app := argoApp(kind, m); app != "" {
		return "Argo CD app " + quote(app)
	}
	if hook, ok := m.Annotations[argoHook]; ok {
		return "Argo CD hook " + quote(hook)
	}
	for _, mark := range []struct {
		who    string
		values map[string]string
		prefix string
	}{
		{"Flux Kustomization ", m.Labels, "kustomize.toolkit.fluxcd.io/"},
		{"Flux HelmRelease ", m.Labels, "helm.toolkit.fluxcd.io/"},
		{"Helm release ", m.Annotations, "meta.helm.sh/release-"},
	} {
		name, namespace := mark.values[mark.prefix+"name"], mark.values[mark.prefix+"namespace"]
		if name != "" && namespace != "" {
			return mark.who + quote(namespace+"/"+name)
		}
	}
	return ""
}

// argoApp is the app whose tracking id names this very object; empty when there is none. Argo CD reads an app up to the
// first colon.
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

func quote(s string) string { return strconv.Quote(short(s)) }
