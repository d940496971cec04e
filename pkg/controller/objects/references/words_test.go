// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// uses reports which of some names an object uses in its own namespace.
func uses(t *testing.T, object string, names ...string) map[string]Use {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(object), &content); err != nil {
		t.Fatal(err)
	}
	refs, err := Undeclared().References(content)
	if err != nil {
		t.Fatal(err)
	}
	x := NewIndex(MaxKeys)
	x.Source("widgets.example.com").Set(Referrer{UID: "u", Namespace: "ns", Name: "w"}, Keys(refs))
	x.Finish()
	out := map[string]Use{}
	for _, name := range names {
		namespace, rest, ok := strings.Cut(name, "/")
		if !ok {
			namespace, rest = "ns", name
		}
		out[name] = x.Used(Secrets, namespace, rest)
		if other := x.Used(ConfigMaps, namespace, rest); other != out[name] {
			t.Errorf("%s: the Secret is %d, the ConfigMap %d", name, out[name], other)
		}
	}
	return out
}

// TestUndeclared: what stands in a custom resource counts, wherever it stands.
func TestUndeclared(t *testing.T) {
	const header = "metadata: {name: own, namespace: ns}\n"
	for name, tc := range map[string]struct {
		object       string
		used, unused []string
	}{
		"a string":        {header + "spec: {secretName: s}", []string{"s", "own"}, []string{"x", "other/s"}},
		"deep in lists":   {header + "spec: {a: [[{b: [{c: s.v1}]}]]}", []string{"s.v1"}, []string{"v1"}},
		"in the status":   {header + "status: {binding: {name: s}}", []string{"s"}, nil},
		"with a line end": {header + "spec: {a: \"s\\n\"}", []string{"s"}, nil},
		"part of a word":  {header + "spec: {a: my-s}", []string{"my-s"}, []string{"my", "s"}},
		"prose":           {header + "spec: {a: the secret s}", nil, []string{"s", "secret", "the"}},
		"a template of Pods": {
			header + "spec: {containers: [{command: [sh, -c, cat s1], args: ['run --tls s2'], env: [{name: A, value: 'on ns2/s3'}]}]}",
			[]string{"s1", "s2", "s3", "ns2/s3"}, nil,
		},
		"a script":             {header + "spec: {steps: [{script: \"#!/bin/sh\\nkubectl get secret s1 -o yaml\\n\"}]}", []string{"s1"}, nil},
		"Ambassador":           {header + "spec: {secret: s.ns2}", []string{"s.ns2", "ns2/s"}, []string{"ns3/s"}},
		"another namespace":    {header + "spec: {a: ns2/s}", []string{"ns2/s", "s"}, []string{"ns3/s"}},
		"Rancher":              {header + "spec: {cloudCredentialSecretName: 'ns2:cc-s'}", []string{"ns2/cc-s", "cc-s"}, []string{"ns3/cc-s"}},
		"a namespace beside":   {header + "spec: {secretRef: {name: s, namespace: ns2}}", []string{"ns2/s", "s"}, []string{"ns3/s"}},
		"a namespace above":    {header + "spec: {a: {secretNamespace: ns2, b: [{c: s}]}, d: x}", []string{"ns2/s", "s"}, []string{"ns2/x"}},
		"two namespaces above": {header + "spec: {namespace: ns2, b: {targetNamespace: ns3, c: s}}", []string{"ns2/s", "ns3/s"}, []string{"ns4/s"}},
		"a list of namespaces": {header + "spec: {namespaces: [ns2, ns3], a: s}", []string{"ns2/s", "ns3/s", "s"}, []string{"ns4/s"}},
		"many namespaces":      {header + "spec: {namespaces: [a, b, c, d, e, f, g, h, i], a: s}", []string{"s"}, []string{"x", "z/s"}},
		"no namespace":         {header + "spec: {namespace: '{{ .ns }}', namespaceSelector: {ns2: x}, a: s}", []string{"s"}, []string{"ns2/s", "ns/x2"}},
		"a URL":                {header + "spec: {a: 'k8s://ns2/s'}", []string{"ns2/s", "s"}, nil},
		"a scheme":             {header + "spec: {a: 'secret://s'}", []string{"s"}, nil},
		"a list in a string":   {header + "spec: {a: 'a,b,c'}", []string{"a", "b", "c"}, nil},
		"Strimzi":              {header + "spec: {a: '${secrets:ns2/s:key}'}", []string{"ns2/s"}, nil},
		"Flink":                {header + "spec: {kubernetes.secrets: 'foo:/opt/foo,bar:/opt/bar'}", []string{"foo", "bar"}, nil},
		"Argo CD":              {header + "spec: {a: '$s:key'}", []string{"s"}, nil},
		"Datadog":              {header + "spec: {a: 'ENC[k8s_secret@ns2/s/key]'}", []string{"ns2/s"}, nil},
		"a key":                {header + "spec: {mounts: {s: /etc/s}}", []string{"s"}, nil},
		"Spark":                {header + "spec: {sparkConf: {spark.kubernetes.driver.secrets.my.s: /etc}}", []string{"my.s", "s"}, nil},
		"capitals are no name": {header + "spec: {a: My-Secret, b: my_secret}", nil, []string{"my", "secret", "y-ecret"}},
		"a long text":          {header + "spec: {a: 's/" + strings.Repeat("x", maxText) + "'}", nil, []string{"s"}},
		"a number":             {header + "spec: {a: 7, b: true, c: null}", nil, []string{"7", "true"}},
		"an annotation":        {"metadata: {name: own, namespace: ns, annotations: {a: '{\"secretName\": \"s\"}'}}", []string{"s"}, nil},
		"the last applied": {"metadata: {name: own, namespace: ns, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{\"a\":\"s\"}'}}",
			[]string{"own"}, []string{"s"}},
		"a label":             {"metadata: {name: own, namespace: ns, labels: {app: s}}", nil, []string{"s"}},
		"managed fields":      {"metadata: {name: own, namespace: ns, managedFields: [{manager: s}]}", nil, []string{"s"}},
		"a kind":              {"apiVersion: s\nkind: s\n" + header, nil, []string{"s"}},
		"without a namespace": {"metadata: {name: own}\nspec: {a: s}", []string{"s", "other/s", "other/own"}, []string{"x"}},
		"an owner":            {"metadata: {name: own, namespace: ns, ownerReferences: [{apiVersion: example.com/v1, kind: Secret, name: s}]}", nil, []string{"s"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := uses(t, tc.object, append(tc.used, tc.unused...)...)
			want := map[string]Use{}
			for _, n := range tc.used {
				want[n] = Used
			}
			for _, n := range tc.unused {
				want[n] = Unused
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// TestMetadata: an object that cannot be read may refer to anything.
func TestMetadata(t *testing.T) {
	for name, object := range map[string]map[string]any{
		"no object":     {"metadata": "x"},
		"no name":       {"metadata": map[string]any{"name": 1}},
		"no namespace":  {"metadata": map[string]any{"namespace": []any{}}},
		"no owners":     {"metadata": map[string]any{"ownerReferences": map[string]any{}}},
		"no annotation": {"metadata": map[string]any{"annotations": map[string]any{"a": 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			refs, err := Undeclared().References(object)
			x := NewIndex(MaxKeys)
			x.Source("s").Set(Referrer{UID: "u"}, Keys(refs))
			x.Finish()
			if err == nil || x.Used(Secrets, "ns", "s") != Unknown {
				t.Errorf("got %v, %v", written(refs), err)
			}
		})
	}
}

func TestIsName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.StringMatching(`[a-zA_0-9.\-]{0,8}`), rapid.StringMatching(`[a-z.]{240,260}`), rapid.String()).Draw(t, "name")
		if got, want := isName(s), len(validation.IsDNS1123Subdomain(s)) == 0; got != want {
			t.Errorf("a name %q: got %t, want %t", s, got, want)
		}
		if got, want := isLabel(s), len(validation.IsDNS1123Label(s)) == 0; got != want {
			t.Errorf("a label %q: got %t, want %t", s, got, want)
		}
	})
}

// TestWordsFindNames: whatever stands around a name without being part of one, it is found.
func TestWordsFindNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([a-z0-9\-]{0,10}[a-z0-9])?(\.[a-z0-9]{1,5})?`).Draw(t, "name")
		around := rapid.StringMatching(`[/:,;=$\{\}\[\]()@|"'&?!#*+<>^~%]{0,3}`)
		text := around.Draw(t, "before") + name + around.Draw(t, "after")
		o := &reading{namespace: "ns", collection: &collection{all: map[Reference]struct{}{}, of: both}}
		o.words(Secrets, map[string]any{"field": []any{text}})
		if _, ok := o.all[Reference{Secrets, "ns", name}]; !ok {
			t.Errorf("%q is not found in %q", name, text)
		}
	})
}

// TestLongKeys: a key can be as long as an object, and is read in a time that grows with its length.
func TestLongKeys(t *testing.T) {
	object := map[string]any{
		"metadata": map[string]any{"name": "x", "namespace": "ns"},
		"spec":     map[string]any{strings.Repeat("a.", 700_000): "", strings.Repeat("a.", 10) + "secret": ""},
	}
	began := time.Now()
	refs, err := Undeclared().References(object)
	if took := time.Since(began); err != nil || took > 5*time.Second { // It takes milliseconds.
		t.Errorf("it took %s, %v", took, err)
	}
	if !slices.Contains(refs, Reference{both, "ns", "secret"}) {
		t.Error("what stands after a dot is missing")
	}
}

// TestManyNames: what an object takes in memory is bounded. If it has more names than that, it may refer to everything where they are. One
// in a namespace never refers to everything in namespaces that it does not name.
func TestManyNames(t *testing.T) {
	everything := func(namespaces ...string) (out []Reference) {
		for _, n := range namespaces {
			out = append(out, Reference{both, n, All})
		}
		return out
	}
	for name, tc := range map[string]struct {
		namespaces, names int
		inName            bool // the namespaces are in the names
		want              []Reference
	}{
		"in the own namespace":  {0, maxReferences, false, everything("ns")},
		"in some namespaces":    {2, maxReferences / 3, false, everything("ns", "other-0", "other-1")},
		"in very many":          {0, maxReferences + 1, true, everything(append(numbered("n", maxReferences+1), "ns")...)},
		"in many":               {maxNamespaces + 1, maxReferences, false, everything(append(numbered("other-", maxNamespaces+1), "ns")...)},
		"as many as are stored": {0, maxReferences - 10, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var names, namespaces []any
			for i := range tc.names {
				if name := fmt.Sprint("n", i); tc.inName {
					names = append(names, name+"/"+name)
				} else {
					names = append(names, name)
				}
			}
			for i := range tc.namespaces {
				namespaces = append(namespaces, fmt.Sprint("other-", i))
			}
			slices.SortFunc(tc.want, Compare)
			refs, err := Undeclared().References(map[string]any{
				"metadata": map[string]any{"name": "n0", "namespace": "ns"},
				"spec":     map[string]any{"x": names, "namespaces": namespaces},
			})
			if (err != nil) != (tc.want != nil) || tc.want != nil && !slices.Equal(refs, tc.want) || tc.want == nil && len(refs) < tc.names {
				t.Errorf("got %d, such as %v; %v", len(refs), refs[:min(3, len(refs))], err)
			}
		})
	}
}

// numbered returns so many names.
func numbered(prefix string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(prefix, i))
	}
	return out
}

// TestNoNamespaceReachesAll: whatever stands in an object of a namespace, it does not refer to everything in all namespaces. One without a
// namespace may.
func TestNoNamespaceReachesAll(t *testing.T) {
	var pairs []any
	for _, n := range numbered("n", maxReferences+1) {
		pairs = append(pairs, n+"/"+n)
	}
	everywhere, err := Declared([]gc.LifecycleReference{{To: gc.ResourceSecrets, Names: "'*/*'"}})
	if err != nil {
		t.Fatal(err)
	}
	annotations := map[string]any{"a": strings.Join(numbered("n", maxReferences+1), " ")}
	for name, tc := range map[string]struct {
		reader *Reader
		object map[string]any
	}{
		"many namespaces":      {Undeclared(), map[string]any{"spec": pairs}},
		"annotations of a PVC": {Builtin("persistentvolumeclaims"), map[string]any{"annotations": annotations}},
		"unreadable":           {Unreadable(errors.New("no")), map[string]any{"spec": pairs}},
		"an expression":        {everywhere, map[string]any{"spec": "a"}},
	} {
		for _, namespace := range []string{"ns", ""} {
			metadata := map[string]any{"name": "a", "namespace": namespace, "annotations": tc.object["annotations"]}
			refs, _ := tc.reader.References(map[string]any{"metadata": metadata, "spec": tc.object["spec"]})
			all := slices.ContainsFunc(refs, func(r Reference) bool { return r.Namespace == All && r.Name == All })
			if all != (namespace == "") {
				t.Errorf("%s in %q refers to everything: %t, of %d", name, namespace, all, len(refs))
			}
			own := slices.ContainsFunc(refs, func(r Reference) bool { return r.Namespace == "ns" && r.Name == All })
			if namespace != "" && !own && len(refs) < maxReferences {
				t.Errorf("%s does not refer to everything in its namespace", name)
			}
		}
	}
}

// TestLongValues: a name counts in whatever value it stands that is no text.
func TestLongValues(t *testing.T) {
	value := strings.Repeat("x,", 400) + "name"
	refs, err := Undeclared().References(map[string]any{"metadata": map[string]any{"name": "a", "namespace": "ns"}, "spec": value})
	if err != nil || !slices.Contains(refs, Reference{both, "ns", "name"}) {
		t.Errorf("got %v, %v", refs, err)
	}
}

// TestParametersWithANamespace: a StorageClass that names the namespace of a Secret refers to the Secret in that namespace alone.
func TestParametersWithANamespace(t *testing.T) {
	refs, err := Builtin("storageclasses.storage.k8s.io").References(map[string]any{
		"metadata": map[string]any{"name": "fast"},
		"parameters": map[string]any{
			"csi.storage.k8s.io/node-stage-secret-name": "stage", "csi.storage.k8s.io/node-stage-secret-namespace": "ns",
			"adminSecretName": "admin", "adminSecretNamespace": "ns",
			"csi.storage.k8s.io/provisioner-secret-name": "claims", "csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
			"secretName": "anywhere",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for r, want := range map[Reference]bool{
		{Secrets, "ns", "stage"}: true, {both, All, "stage"}: false, {Secrets, "ns", "admin"}: true, {both, All, "admin"}: false,
		{both, All, "claims"}: true, {both, All, "anywhere"}: true,
	} {
		if slices.Contains(refs, r) != want {
			t.Errorf("%v among the references: %t", r, !want)
		}
	}
}
