// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

func named(to To, names ...string) (out []string) {
	kind := map[To]string{PersistentVolumeClaims: "claim", ServiceAccounts: "account", Services: "service", reported: "any"}[to]
	for _, name := range names {
		out = append(out, kind+" "+name)
	}
	return out
}

// TestReported: what counts as a reference to a claim, a ServiceAccount or a Service, and that nothing else does.
func TestReported(t *testing.T) {
	const (
		pod      = "{serviceAccountName: sa, subdomain: web, volumes: [{persistentVolumeClaim: {claimName: c}}, {configMap: {name: cm}}, {emptyDir: {}}]}"
		metadata = "{name: own, namespace: ns, annotations: {a: claim-in-annotation}}"
	)
	ofPod := slices.Concat(named(PersistentVolumeClaims, "ns/c"), named(ServiceAccounts, "ns/sa"), named(Services, "ns/web"))
	for resource, c := range map[string]struct {
		object string
		want   []string
	}{
		"pods":                     {"spec: " + pod, ofPod},
		"podtemplates":             {"template: {spec: " + pod + "}", ofPod},
		"deployments.apps":         {"spec: {template: {spec: " + pod + "}}", ofPod},
		"controllerrevisions.apps": {"data: {spec: {template: {spec: " + pod + "}}}", ofPod},
		"cronjobs.batch":           {"spec: {suspend: true, jobTemplate: {spec: {template: {spec: " + pod + "}}}}", ofPod},
		"statefulsets.apps": {
			"spec: {serviceName: db, volumeClaimTemplates: [{metadata: {name: data}}, {metadata: {name: log}}]}",
			slices.Concat(named(PersistentVolumeClaims, "ns/data-own", "ns/log-own"), named(Services, "ns/db")),
		},
		"persistentvolumeclaims": {
			"spec: {dataSource: {kind: PersistentVolumeClaim, name: a}, dataSourceRef: {kind: PersistentVolumeClaim, name: a, namespace: other}}",
			named(PersistentVolumeClaims, "ns/a", "other/a"),
		},
		"persistentvolumeclaims bound": {"spec: {volumeName: v, dataSource: {kind: PersistentVolumeClaim, name: a}}", nil},
		"persistentvolumeclaims restored": {
			"spec: {dataSourceRef: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: a}}", nil,
		},
		"rolebindings.rbac.authorization.k8s.io": {
			"subjects: [{kind: ServiceAccount, name: a, namespace: x}, {kind: User, name: 'system:serviceaccount:y:b'}, {kind: User, name: c}, " +
				"{kind: Group, name: 'system:serviceaccounts:z'}]",
			named(ServiceAccounts, "x/a", "y/b", "z/*"),
		},
		"secrets": {"", nil},
		"ingresses.networking.k8s.io": {
			"spec: {defaultBackend: {service: {name: a}}, rules: [{http: {paths: [{backend: {service: {name: b}}}]}}]}",
			named(Services, "ns/a", "ns/b"),
		},
		"apiservices.apiregistration.k8s.io": {
			"spec: {service: {name: a, namespace: x}}", named(Services, "x/a"),
		},
		"validatingwebhookconfigurations.admissionregistration.k8s.io": {
			"webhooks: [{clientConfig: {service: {name: a, namespace: x}}}, {clientConfig: {url: 'https://a'}}]", named(Services, "x/a"),
		},
		"customresourcedefinitions.apiextensions.k8s.io": {
			"spec: {conversion: {webhook: {clientConfig: {service: {name: a, namespace: x}}}}}", named(Services, "x/a"),
		},
		"unreadable: pods": {"spec: {serviceAccountName: [x]}", []string{"any ns/*", "any */own"}},
	} {
		t.Run(resource, func(t *testing.T) {
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte("metadata: "+metadata+"\n"+c.object), &object); err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(resource, "unreadable: "), " ")
			refs, err := Reported(name).References(object)
			if (err != nil) != strings.HasPrefix(resource, "unreadable") {
				t.Errorf("error %v", err)
			}
			got := listed(refs)
			if err != nil { // What names the whole text has is tested elsewhere.
				got = slices.DeleteFunc(got, func(s string) bool { return !slices.Contains(c.want, s) })
			}
			want := slices.Sorted(slices.Values(c.want))
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func listed(refs []Reference) (out []string) {
	for _, r := range refs {
		out = append(out, named(r.To, r.Namespace+"/"+r.Name)...)
	}
	slices.Sort(out)
	return out
}

// TestReportedToken: the token of a ServiceAccount names it in an annotation.
func TestReportedToken(t *testing.T) {
	object := map[string]any{"metadata": map[string]any{
		"name": "token", "namespace": "ns", "annotations": map[string]any{"kubernetes.io/service-account.name": "robot", "other": "x"},
	}}
	refs, err := Reported("secrets").References(object)
	if got := listed(refs); err != nil || fmt.Sprint(got) != "[account ns/robot]" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestReportedUndeclared: whatever a custom resource may name counts, and nothing of it is a reference to ConfigMaps and Secrets.
func TestReportedUndeclared(t *testing.T) {
	object := map[string]any{
		"kind": "VirtualMachine", "metadata": map[string]any{"name": "vm", "namespace": "ns"},
		"spec": map[string]any{"volumes": []any{map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "disk"}}}},
	}
	refs, err := ReportedUndeclared().References(object)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range refs {
		if r.To != reported {
			t.Errorf("%v refers to something else", r)
		}
	}
	for _, want := range []string{"any ns/disk", "any ns/vm"} {
		if !slices.Contains(listed(refs), want) {
			t.Errorf("%s is missing", want)
		}
	}
	if refs, err := Undeclared().References(object); err != nil || slices.ContainsFunc(refs, func(r Reference) bool { return r.To != both }) {
		t.Errorf("for ConfigMaps and Secrets: %v, %v", refs, err)
	}
}

// Fields with such names may refer to what is reported, unless they are about claims for devices or the reclaim policy.
var (
	otherClaims        = regexp.MustCompile(`(?i)resourceclaim|reclaim`)
	suspiciousReported = regexp.MustCompile(`(?i)claim|serviceaccount|^service$|servicename|^subjects$|subdomain|datasource`)
	harmlessReported   = map[string]string{
		"ServiceAccount":                                       "nothing of it refers to another",
		"PersistentVolume":                                     "it is the volume of a claim",
		"VolumeAttachment":                                     "it names a volume that a Pod uses, and the Pod names the claim",
		"extensions.*":                                         "is not served since Kubernetes 1.22",
		"FlowSchema":                                           "names a ServiceAccount to limit its requests, and does not use it",
		"CSIDriver":                                            "has switches for tokens of Pods",
		"PodSpec.serviceAccount":                               "is a copy of serviceAccountName",
		"PodSpec.automountServiceAccountToken":                 "is a switch",
		"PersistentVolumeClaimSpec.dataSource":                 "is read of claims; a claim that is made from a template has it too",
		"PersistentVolumeClaimSpec.dataSourceRef":              "is read of claims; a claim that is made from a template has it too",
		"PodCertificateRequest":                                "names the ServiceAccount of a Pod",
		"ResourceRequirements.claims":                          "are devices",
		"VolumeProjection.serviceAccountToken":                 "is of the ServiceAccount of the Pod",
		"EphemeralVolumeSource.volumeClaimTemplate":            "its claim has the Pod as its owner",
		"GRPCAction.service":                                   "is no Service of Kubernetes",
		"StatefulSetSpec.persistentVolumeClaimRetentionPolicy": "is a policy",
	}
)

// TestReportedTypes fails if a type of k8s.io/api has a field that may refer to what is reported, and the table does not say so.
func TestReportedTypes(t *testing.T) {
	used, undecided := map[string]bool{}, map[string][]string{}
	for gvk, resource := range stored() {
		suspect := func(field, _ string) bool {
			return suspiciousReported.MatchString(field) && !otherClaims.MatchString(field)
		}
		for _, f := range fieldsLike(resource, scheme.Scheme.AllKnownTypes()[gvk], suspect) {
			if reaches(reportedTable[resource], f) {
				continue
			}
			excuses := []string{gvk.Kind, gvk.Group + ".*", f.owner}
			if i := slices.IndexFunc(excuses, func(e string) bool { return harmlessReported[e] != "" }); i >= 0 {
				used[excuses[i]] = true
				continue
			}
			undecided[f.owner] = append(undecided[f.owner], resource+": "+f.path)
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(undecided)) {
		t.Errorf("%s may refer to a claim, a ServiceAccount or a Service: add a rule to reported.go, or a reason why it does not to this test:\n\t%s",
			owner, strings.Join(slices.Sorted(slices.Values(undecided[owner])), "\n\t"))
	}
	for excuse := range harmlessReported {
		if !used[excuse] {
			t.Errorf("harmlessReported has %s, which no type needs", excuse)
		}
	}
}

// TestPodTemplates: each resource with a template has the rules of its Pods at the path of the template.
func TestPodTemplates(t *testing.T) {
	for resource, path := range PodTemplates {
		at := strings.Join(path, ".") + ".spec.serviceAccountName"
		if !slices.ContainsFunc(reportedTable[resource], func(r rule) bool { return reflect.DeepEqual(r.path, parse(at)) }) {
			t.Errorf("%s has no rule for %s", resource, at)
		}
	}
}
