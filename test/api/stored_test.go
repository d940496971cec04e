// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/winnow-dev/winnow/test/winnow"
)

// storedForm is what a kind is kept in.
func (p scope) storedForm() string { return "stored" + p.plural + ".internal.gc.winnow.dev" }

// TestStoredFormIsDeleted: what policies are kept in can be deleted in every way that kubectl knows, and takes the policy along.
func TestStoredFormIsDeleted(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		stored := p
		stored.short = p.storedForm()
		for _, cascade := range []string{"background", "foreground", "orphan"} {
			p.create(cascade, `{ttlAfterFinished: 1h}`)
			kubectl(t, stored.on("delete", cascade, "--cascade="+cascade, "--timeout=5m")...)
			contains(t, refused(t, "", p.on("get", cascade)...), "not found")
		}
		if p.namespaced {
			p.create("last", `{ttlAfterFinished: 1h}`)
			kubectl(t, stored.on("delete", "last", "--cascade=foreground", "--wait=false")...)
			kubectl(t, "delete", "namespace", p.id, "--timeout=5m")
		}
	})
}

// stored reaches what policies are kept in, as nobody but Winnow may write it.
func (p scope) stored() dynamic.ResourceInterface {
	p.t.Helper()
	config, err := shared.UserConfig(winnow.User, "system:serviceaccounts", "system:serviceaccounts:"+winnow.Namespace)
	if err != nil {
		p.t.Fatal(err)
	}
	resource := dynamic.NewForConfigOrDie(config).Resource(schema.ParseGroupResource(p.storedForm()).WithVersion("v1alpha1"))
	if p.namespaced {
		return resource.Namespace(p.id)
	}
	return resource
}

func (p scope) payload(name string) string {
	p.t.Helper()
	object, err := p.stored().Get(p.t.Context(), p.called(name), metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	payload, _, _ := unstructured.NestedString(object.Object, "payload")
	return payload
}

// asANewerVersion writes a policy as one would that knows more than this, with all that is in its payload from old on replaced.
func (p scope) asANewerVersion(name, old, replacement string) {
	p.t.Helper()
	object, err := p.stored().Get(p.t.Context(), p.called(name), metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	changed := strings.Replace(p.payload(name), old, replacement, 1)
	if !strings.Contains(changed, replacement) {
		p.t.Fatalf("%q is no part of %s", old, changed)
	}
	if err := unstructured.SetNestedField(object.Object, changed, "payload"); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.stored().Update(p.t.Context(), object, metav1.UpdateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// TestPolicyOfANewerVersion is a rollback: what an older version does not understand is served beside everything else, with a warning and a
// condition, and can be deleted, but nothing is written over it.
func TestPolicyOfANewerVersion(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		for _, name := range []string{"field", "retyped", "version", "whole"} {
			p.create(name, `{ttlAfterFinished: 1h}`)
		}
		for _, c := range []struct{ name, old, replacement, why string }{
			{"field", `"ttlAfterFinished"`, `"schedule":{"cron":"0 3 * * *"},"ttlAfterFinished"`, `unknown field "spec.schedule"`},
			{"retyped", `"ttlAfterFinished":"1h"`, `"ttlAfterFinished":{"seconds":3600}`, "cannot unmarshal object"},
			{"version", `"gc.winnow.dev/v1alpha1"`, `"gc.winnow.dev/v9"`, `no kind "` + p.kind.name + `" is registered`},
		} {
			p.asANewerVersion(c.name, c.old, c.replacement)
			newer := p.payload(c.name)
			p.isTold(c.name, c.why)
			p.cannotBeWritten(c.name, c.why)
			if now := p.payload(c.name); now != newer {
				t.Errorf("what is stored was changed from %s to %s", newer, now)
			}
		}
		if got := p.get("field"); *got.Spec.TTLAfterFinished != "1h" {
			t.Errorf("what is understood is lost: %+v", got.Spec)
		}
		contains(t, kubectl(t, p.on("annotate", "whole", "example.com/note=mine")...), "annotated")
		p.isFollowedByAnotherModule()
		kubectl(t, p.on("delete", "version", "--timeout=5m")...)
		p.expect("field whole", p.where())
	})
}

// isTold reads the policy in all ways.
func (p scope) isTold(name, why string) {
	p.t.Helper()
	warning := fmt.Sprintf("%s\" cannot be changed, because this version of Winnow does not understand all of it: ", p.called(name))
	for _, args := range [][]string{p.on("get", name), p.onAll("get"), p.onAll("get", "-o", "yaml"), {"get", p.short, "--all-namespaces"}} {
		out, stderr, err := shared.Kubectl(p.t.Context(), args...)
		if err != nil {
			p.t.Fatal(err)
		}
		contains(p.t, out, p.called(name), "PolicyUnreadable")
		if args[len(args)-1] != "--all-namespaces" { // which warns of three alone
			contains(p.t, stderr, "Warning: ", warning, why)
		}
	}
	kubectl(p.t, p.on("wait", name, "--for=condition=Ready=False", "--timeout=5m")...)
	read := p.get(name)
	ready := meta.FindStatusCondition(read.Status.Conditions, "Ready")
	contains(p.t, read.Annotations["gc.winnow.dev/unreadable"], why)
	contains(p.t, ready.Message, why, "Install the version that wrote it")
}

// cannotBeWritten tries all ways of writing.
func (p scope) cannotBeWritten(name, why string) {
	p.t.Helper()
	whole := p.manifest(name, `{ttlAfterFinished: 2h}`)
	copied := strings.ReplaceAll(kubectl(p.t, p.on("get", name, "-o", "json")...), `"`+p.called(name)+`"`, `"`+p.called("copy")+`"`)
	for _, c := range []struct {
		stdin string
		args  []string
		want  string
	}{
		{"", p.on("annotate", name, "example.com/note=mine"), why},
		{"", p.on("annotate", name, "gc.winnow.dev/unreadable-"), why},
		{"", p.on("label", name, "note=mine"), why},
		{"", p.on("patch", name, "--type=merge", "-p", `{"spec":{"mode":"Preview"}}`), why},
		{"", p.on("patch", name, "--type=merge", "--subresource=status", "-p", `{"status":{"candidates":7}}`), why},
		{whole, []string{"apply", "-f", "-"}, why},
		{whole, []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, why},
		{whole, []string{"replace", "-f", "-"}, why},
		{copied, []string{"create", "-f", "-"}, "this copy is incomplete"},
	} {
		contains(p.t, refused(p.t, c.stdin, c.args...), "is invalid", "Forbidden", c.want)
	}
}
