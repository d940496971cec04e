// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Labels and annotations of tools and hubs that place objects in a cluster.
const (
	argoTrackingID     = "argocd.argoproj.io/tracking-id"
	argoHook           = "argocd.argoproj.io/hook"
	fluxKustomize      = "kustomize.toolkit.fluxcd.io/"
	fluxHelm           = "helm.toolkit.fluxcd.io/"
	helmRelease        = "meta.helm.sh/release-"
	kappApp            = "kapp.k14s.io/app"
	kappIdentity       = "kapp.k14s.io/identity"
	configSyncID       = "configsync.gke.io/resource-id"
	configSyncManaged  = "configmanagement.gke.io/managed"
	owningInventory    = "config.k8s.io/owning-inventory"
	oldOwningInventory = "config.kubernetes.io/owning-inventory"
	applySet           = "applyset.kubernetes.io/part-of"
	multiKueueOrigin   = "kueue.x-k8s.io/multikueue-origin"
	karmadaManaged     = "karmada.io/managed"
	karmadaWork        = "work.karmada.io/"
)

// mark is a mark of a control plane: how an object shows that another one placed it here, and would create it again.
type mark struct {
	title string
	// find returns what the mark names, which may be empty; false if the object has no such mark.
	find func(kind schema.GroupKind, m *metav1.ObjectMeta) (value string, ok bool)
	// proves is set if no other object can have the mark: it names this very object, or it is an owner reference.
	proves bool
	// managers matches the field managers of one of which the object must have a trace, since controllers copy the labels and annotations of
	// an object to the objects that they make from it. It is nil for marks that count without a trace, such as marks of hubs, whose field
	// managers are unknown because agents of many names and versions write them.
	managers *regexp.Regexp
}

// marks has those that prove something first. They are documented or defined here:
//   - Argo CD: argo-cd.readthedocs.io/en/stable/user-guide/resource_tracking and resource_hooks; common.ArgoCDSSAManager
//   - Config Sync: core.GKNN and differ.ManagedByConfigSync in github.com/GoogleContainerTools/kpt-config-sync
//   - kapp: carvel.dev/kapp/docs/latest/diff; the identity is "v1;<namespace>/<group>/<Kind>/<name>;<apiVersion>"
//   - Open Cluster Management: helper.NewAppliedManifestWorkOwner in github.com/open-cluster-management-io/ocm
//   - KubeFleet: AppliedWorkKind in github.com/kubefleet-dev/kubefleet
//   - MultiKueue: kueue.MultiKueueOriginLabel in github.com/kubernetes-sigs/kueue
//   - Karmada: util.ManagedByKarmadaLabel and workv1alpha2.WorkNameAnnotation, once a label, in github.com/karmada-io/karmada
//   - Flux: fluxcd.io/flux/components/kustomize/kustomizations and helm/helmreleases
//   - Helm: kube.ManagedFieldsManager in helm.sh/helm/v3, by default the name of the program, which may embed Helm
//   - kpt: common.OwningInventoryKey in sigs.k8s.io/cli-utils, which applies as kubectl does
//   - ApplySets: KEP-3659; kubectl and kro apply them, and Config Sync sets the label too
var marks = []mark{
	{title: "Argo CD app", find: argoApp, proves: true},
	{title: "Config Sync", find: configSyncObject, proves: true},
	{title: "kapp app", find: kappObject, proves: true},
	{title: "Open Cluster Management work", find: ownedBy("work.open-cluster-management.io", "AppliedManifestWork"), proves: true},
	{title: "KubeFleet work", find: ownedBy("placement.kubernetes-fleet.io", "AppliedWork"), proves: true},

	{title: "MultiKueue of", find: labelled(multiKueueOrigin)},
	{title: "Karmada", find: karmadaObject},

	{title: "Argo CD hook", find: annotated(argoHook), managers: regexp.MustCompile(`argocd`)},
	{title: "Flux Kustomization", find: named(labelsOf, fluxKustomize), managers: regexp.MustCompile(`kustomize-controller|flux`)},
	{title: "Flux HelmRelease", find: named(labelsOf, fluxHelm), managers: regexp.MustCompile(`helm`)},
	{title: "Helm release", find: named(annotationsOf, helmRelease), managers: regexp.MustCompile(`(?i)helm|fleet|werf|zarf|pulumi`)},
	{title: "kapp app", find: labelled(kappApp), managers: regexp.MustCompile(`kapp`)},
	{title: "Config Sync", find: configSyncEnabled, managers: regexp.MustCompile(`configsync`)},
	{title: "kpt inventory", find: annotated(owningInventory), managers: regexp.MustCompile(`kubectl|kpt|configsync`)},
	{title: "kpt inventory", find: annotated(oldOwningInventory), managers: regexp.MustCompile(`kubectl|kpt|configsync`)},
	{title: "ApplySet", find: labelled(applySet), managers: regexp.MustCompile(`kubectl|applyset|kro|configsync`)},
}

// annotationsOfMarks are the annotations that marks read.
var annotationsOfMarks = []string{
	argoTrackingID, argoHook, helmRelease + "name", helmRelease + "namespace", kappIdentity, configSyncID, configSyncManaged,
	owningInventory, oldOwningInventory, karmadaWork + "name", karmadaWork + "namespace",
}

// traced are what the keys of marks that need a trace begin with: before the slash, and from it on.
var traced = func() (out [][2][]byte) {
	for _, key := range []string{
		argoHook, fluxKustomize, fluxHelm, helmRelease, kappApp, configSyncManaged, owningInventory, oldOwningInventory, applySet,
	} {
		slash := strings.IndexByte(key, '/')
		out = append(out, [2][]byte{[]byte(key[:slash]), []byte(key[slash:])})
	}
	return out
}()

// NeedsManagers reports whether an encoded object, or its metadata, may have a mark that needs a trace in managedFields. Without one,
// nobody reads managedFields.
func NeedsManagers(encoded []byte) bool {
	for from := 0; ; from++ { // Slashes are rare, and to look for each key takes long.
		slash := bytes.IndexByte(encoded[from:], '/')
		if slash < 0 {
			return false
		}
		from += slash
		for _, key := range traced {
			if bytes.HasSuffix(encoded[:from], key[0]) && bytes.HasPrefix(encoded[from:], key[1]) {
				return true
			}
		}
	}
}

// AppliedBy returns which control plane placed an object here and would create it again; empty if none would. If the object has a
// controller, only the controller would, unless a mark proves something else.
func AppliedBy(kind schema.GroupKind, m *metav1.ObjectMeta) string {
	controlled := metav1.GetControllerOfNoCopy(m) != nil
	return firstMark(kind, m, func(of *mark) bool { return of.proves || !controlled && of.leftTrace(m) })
}

// MarkedBy returns which control plane an object has a mark of, even if the mark may be a copy; empty if it has none.
func MarkedBy(kind schema.GroupKind, m *metav1.ObjectMeta) string {
	return firstMark(kind, m, func(*mark) bool { return true })
}

func firstMark(kind schema.GroupKind, m *metav1.ObjectMeta, counts func(*mark) bool) string {
	for i := range marks {
		if value, ok := marks[i].find(kind, m); ok && counts(&marks[i]) {
			if value == "" {
				return marks[i].title
			}
			return marks[i].title + " " + strconv.Quote(truncate(value, maxAnnotationLength))
		}
	}
	return ""
}

// leftTrace reports whether a field manager of the object belongs to the mark. Without any field managers, somebody has removed them.
func (of *mark) leftTrace(m *metav1.ObjectMeta) bool {
	return of.managers == nil || len(m.ManagedFields) == 0 ||
		slices.ContainsFunc(m.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return of.managers.MatchString(f.Manager) })
}

type finder = func(schema.GroupKind, *metav1.ObjectMeta) (value string, ok bool)

func labelsOf(m *metav1.ObjectMeta) map[string]string      { return m.Labels }
func annotationsOf(m *metav1.ObjectMeta) map[string]string { return m.Annotations }

func labelled(key string) finder {
	return func(_ schema.GroupKind, m *metav1.ObjectMeta) (string, bool) {
		value, ok := m.Labels[key]
		return value, ok
	}
}

func annotated(key string) finder {
	return func(_ schema.GroupKind, m *metav1.ObjectMeta) (string, bool) {
		value, ok := m.Annotations[key]
		return value, ok
	}
}

// named finds the name and the namespace of what applied an object.
func named(values func(*metav1.ObjectMeta) map[string]string, prefix string) finder {
	nameKey, namespaceKey := prefix+"name", prefix+"namespace"
	return func(_ schema.GroupKind, m *metav1.ObjectMeta) (string, bool) {
		name, namespace := values(m)[nameKey], values(m)[namespaceKey]
		return namespace + "/" + name, name != "" && namespace != ""
	}
}

func ownedBy(group, kind string) finder {
	return func(_ schema.GroupKind, m *metav1.ObjectMeta) (string, bool) {
		for i := range m.OwnerReferences {
			o := &m.OwnerReferences[i]
			if o.Kind == kind && strings.HasPrefix(o.APIVersion, group+"/") {
				return o.Name, true
			}
		}
		return "", false
	}
}

// argoApp returns the Argo CD app whose tracking ID names this object: "<app>:<group>/<Kind>:<namespace>/<name>". The name of an app ends
// at the first colon.
func argoApp(kind schema.GroupKind, m *metav1.ObjectMeta) (string, bool) {
	id, ok := m.Annotations[argoTrackingID]
	if !ok {
		return "", false
	}
	app, ok := strings.CutSuffix(id, ":"+kind.Group+"/"+kind.Kind+":"+m.Namespace+"/"+m.Name)
	return app, ok && app != "" && !strings.Contains(app, ":")
}

// kappObject returns the kapp app of an object that its identity names.
func kappObject(kind schema.GroupKind, m *metav1.ObjectMeta) (string, bool) {
	identity, ok := m.Annotations[kappIdentity]
	if !ok {
		return "", false
	}
	ok = strings.HasPrefix(identity, "v1;"+m.Namespace+"/"+kind.Group+"/"+kind.Kind+"/"+m.Name+";")
	return m.Labels[kappApp], ok
}

// configSyncObject finds objects that the resource ID names.
func configSyncObject(kind schema.GroupKind, m *metav1.ObjectMeta) (string, bool) {
	id, ok := m.Annotations[configSyncID]
	if !ok || m.Annotations[configSyncManaged] == "disabled" {
		return "", false
	}
	return "", id == kind.Group+"_"+strings.ToLower(kind.Kind)+"_"+m.Namespace+"_"+m.Name
}

func configSyncEnabled(_ schema.GroupKind, m *metav1.ObjectMeta) (string, bool) {
	return "", m.Annotations[configSyncManaged] == "enabled"
}

// karmadaObject returns the Work of an object that Karmada has synchronized to this cluster.
func karmadaObject(_ schema.GroupKind, m *metav1.ObjectMeta) (string, bool) {
	_, managed := m.Labels[karmadaManaged]
	for _, values := range []map[string]string{m.Annotations, m.Labels} {
		if name := values[karmadaWork+"name"]; name != "" {
			return values[karmadaWork+"namespace"] + "/" + name, true
		}
	}
	return "", managed
}
