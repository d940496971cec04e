// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
)

// Fields and types with such names may refer to a ConfigMap or Secret. So may the fields of any form that drivers define.
var (
	suspiciousField = regexp.MustCompile(`(?i)secret|configmap|credential|ref(s|erences?)?$|^(parameters|params|attributes|volumeAttributes|options|data|` +
		`resource|resourceNames)$`)
	suspiciousType = regexp.MustCompile(`(?i)secret|configmap|credential|ref(erence)?$|RawExtension$`)
)

// harmless are the kinds whose objects do not use what they name, as "Kind" or "group.*", and the fields that name no ConfigMap or Secret, as
// "type.field".
var harmless = map[string]string{
	"extensions.*":            "is not served since Kubernetes 1.22",
	"authorization.k8s.io.*":  "is not stored",
	"authentication.k8s.io.*": "is not stored",
	"Binding":                 "is not stored",
	"ConfigMap":               "its data is never read",
	"Secret":                  "its data is never read",
	"RangeAllocation":         "has numbers",

	"Event":                   "says what happened to an object, and does not use it",
	"Endpoints":               "names Pods and Nodes",
	"EndpointSlice":           "names Pods and Nodes",
	"HorizontalPodAutoscaler": "names what it scales, and metrics",
	"RoleBinding":             "names a role, and its subjects",
	"ClusterRoleBinding":      "names a role, and its subjects",
	"FlowSchema":              "names a PriorityLevelConfiguration",
	"IPAddress":               "names a Service",
	"StorageVersionMigration": "names a resource",
	"ResourceSlice":           "has the attributes of devices",
	"EvictionRequest":         "names a Pod",
	"Eviction":                "names a Pod",
	"Workload":                "names its controller",
	"PodGroup":                "names a Workload",
	"CompositePodGroup":       "names a Workload",

	"WebhookClientConfig.service":                          "names a Service, and has the certificate in itself",
	"NamedRuleWithOperations.resourceNames":                "says which requests a policy checks",
	"ExpressionWarning.fieldRef":                           "is a field of the policy",
	"NodeConfigSource.configMap":                           "is not used since Kubernetes 1.24",
	"CSIDriverSpec.serviceAccountTokenInSecrets":           "is a switch; the token is in no Secret of the API",
	"AzureFilePersistentVolumeSource.secretNamespace":      "is read with secretName",
	"CephFSPersistentVolumeSource.secretFile":              "is a file of the Node",
	"CephFSVolumeSource.secretFile":                        "is a file of the Node",
	"PersistentVolumeClaimSpec.dataSource":                 "names a claim, or an object of a custom resource",
	"PersistentVolumeClaimSpec.dataSourceRef":              "names a claim, or an object of a custom resource",
	"PersistentVolumeSpec.claimRef":                        "names a claim",
	"CronJobStatus.active":                                 "names Jobs",
	"DownwardAPIVolumeFile.fieldRef":                       "is a field of the Pod",
	"DownwardAPIVolumeFile.resourceFieldRef":               "is a field of the Pod",
	"EnvVarSource.fieldRef":                                "is a field of the Pod",
	"EnvVarSource.resourceFieldRef":                        "is a field of the Pod",
	"ResourceFieldSelector.resource":                       "is a field of the Pod",
	"EnvVarSource.fileKeyRef":                              "is a file in a volume of the Pod",
	"PodCertificateProjection.credentialBundlePath":        "is a file in a volume of the Pod",
	"ImageVolumeSource.reference":                          "is an image",
	"ImageVolumeStatus.imageRef":                           "is an image",
	"PodDNSConfig.options":                                 "are options of the resolver",
	"PreferredSchedulingTerm.preference":                   "selects Nodes",
	"WindowsSecurityContextOptions.gmsaCredentialSpec":     "is the text of the specification, which has no secrets",
	"WindowsSecurityContextOptions.gmsaCredentialSpecName": "names a GMSACredentialSpec, which is a custom resource",
	"ResourceClaimStatus.reservedFor":                      "names Pods and PodGroups",
	"ResourceClaimConsumerReference.resource":              "names Pods and PodGroups",
	"AllocatedDeviceStatus.data":                           "is what a driver reports, and does not read",
}

// elsewhere are the resources of the table whose types are in other modules. Only their metadata is read.
var elsewhere = []string{"customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"}

// foundField is a field of a kind that may refer.
type foundField struct {
	resource, path string
	owner          string // the Go type that has the field
	goType         string
}

// suspects walks the types of a kind, and returns the fields that may refer to a ConfigMap or Secret.
func suspects(resource string, t reflect.Type) []foundField {
	return fieldsLike(resource, t, func(field, goType string) bool {
		return suspiciousField.MatchString(field) || suspiciousType.MatchString(goType)
	})
}

// fieldsLike walks the types of a kind, and returns the fields that match.
func fieldsLike(resource string, t reflect.Type, matches func(field, goType string) bool) (out []foundField) {
	var walk func(t reflect.Type, at []string, within []reflect.Type)
	walk = func(t reflect.Type, at []string, within []reflect.Type) {
		list := ""
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
			if t.Kind() == reflect.Slice {
				list += "[]"
			}
			t = t.Elem()
		}
		if list != "" {
			at = slices.Clone(at)
			at[len(at)-1] += list
		}
		if t.Kind() == reflect.Map {
			walk(t.Elem(), append(slices.Clip(at), "*"), within)
			return
		}
		if t.Kind() != reflect.Struct || slices.Contains(within, t) || t == reflect.TypeFor[metav1.ObjectMeta]() || t == reflect.TypeFor[metav1.TypeMeta]() {
			return
		}
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			path := at
			if name != "" {
				path = append(slices.Clip(at), name)
				if elem := base(f.Type); matches(name, elem.Name()) {
					out = append(out, foundField{resource, strings.Join(path, "."), t.Name() + "." + name, elem.Name()})
				}
			}
			walk(f.Type, path, append(slices.Clip(within), t))
		}
	}
	walk(t, nil, nil)
	return out
}

// base returns the type of the elements of lists and maps.
func base(t reflect.Type) reflect.Type {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, t.Kind()) {
		t = t.Elem()
	}
	return t
}

// reached reports whether a rule of the table reads a field, something in it, or something around it in full.
func reached(f foundField) bool { return reaches(table[f.resource], f) }

func reaches(rules []rule, f foundField) bool {
	plain := func(s string) string { return strings.ReplaceAll(s, "[]", "") }
	field := plain(f.path) + "."
	return slices.ContainsFunc(rules, func(r rule) bool {
		keys := make([]string, 0, len(r.path))
		for _, s := range r.path {
			keys = append(keys, s.key)
		}
		path := strings.Join(keys, ".") + "."
		return strings.HasPrefix(path, field) || r.how != inName && strings.HasPrefix(field, path)
	})
}

// stored returns the kinds that clusters store, each in the version that clusters prefer, with their resources.
func stored() map[schema.GroupVersionKind]string {
	out := map[schema.GroupVersionKind]string{}
	versions := scheme.Scheme.PrioritizedVersionsAllGroups()
	slices.SortFunc(versions, func(a, b schema.GroupVersion) int {
		return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
	})
	for _, gv := range versions {
		for kind, t := range scheme.Scheme.KnownTypes(gv) {
			known := func(gvk schema.GroupVersionKind) bool { return gvk.GroupKind() == gv.WithKind(kind).GroupKind() }
			_, err := meta.Accessor(reflect.New(t).Interface())
			if err != nil || !strings.HasPrefix(t.PkgPath(), "k8s.io/api/") || slices.ContainsFunc(slices.Collect(maps.Keys(out)), known) {
				continue
			}
			plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))
			out[gv.WithKind(kind)] = plural.GroupResource().String()
		}
	}
	return out
}

// TestTypes fails if a type of k8s.io/api has a field that may refer to a ConfigMap or Secret, and the table does not say so.
func TestTypes(t *testing.T) {
	used, resources := map[string]bool{}, map[string]bool{}
	undecided := map[string][]string{}
	for gvk, resource := range stored() {
		resources[resource] = true
		for _, f := range suspects(resource, scheme.Scheme.AllKnownTypes()[gvk]) {
			if reached(f) {
				continue
			}
			excuses := []string{gvk.Kind, gvk.Group + ".*", f.owner}
			if i := slices.IndexFunc(excuses, func(e string) bool { return harmless[e] != "" }); i >= 0 {
				used[excuses[i]] = true
				continue
			}
			undecided[f.owner+" "+f.goType] = append(undecided[f.owner+" "+f.goType], gvk.Version+" "+resource+": "+f.path)
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(undecided)) {
		t.Errorf("%s may refer to a ConfigMap or Secret: add a rule to table.go, or a reason why it does not to harmless in this test:\n\t%s",
			owner, strings.Join(slices.Sorted(slices.Values(undecided[owner])), "\n\t"))
	}
	for excuse := range harmless {
		if !used[excuse] {
			t.Errorf("harmless has %s, which no type needs", excuse)
		}
	}
	for resource := range table {
		if !resources[resource] && !slices.Contains(elsewhere, resource) {
			t.Errorf("the table has %s, which is no resource of k8s.io/api", resource)
		}
	}
}
