// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	facts "github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/write/copies"
	"github.com/winnow-dev/winnow/test/winnow"
)

// storeCopies stores copies as a leader does, although none leads here: of ConfigMaps m-0 and so on, and of a Widget.
func storeCopies(t *testing.T, ns string, maps int) {
	t.Helper()
	config, err := shared.UserConfig(winnow.User, "system:serviceaccounts", "system:serviceaccounts:"+winnow.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	uid := types.UID(kubectl(t, "get", "namespace", ns, "-o", "jsonpath={.metadata.uid}"))
	w := copies.NewWriter(copies.Config{
		Client: dynamic.NewForConfigOrDie(config), Metadata: metadata.NewForConfigOrDie(config), Clock: clock.RealClock{},
		Doubt: func(context.Context) bool { return false }, Budget: rate.NewLimiter(rate.Inf, 1), PerNamespace: maps + 1, BytesPerNamespace: 1 << 20,
		BytesTotal: 1 << 30,
	})
	for i := range maps + 1 {
		o := &deletion.Order{Kind: &kinds.Kind{}, KeepCopy: time.Hour, NamespaceUID: uid, Until: time.Now(), Fact: &facts.Fact{
			Resource: gc.ResourceConfigMaps, Namespace: ns, Name: fmt.Sprint("m-", i), UID: types.UID(fmt.Sprint(ns, "-", i)), ResourceVersion: 7,
		}}
		if i == maps {
			o.Fact.Resource, o.Fact.Name = "widgets.example.com", "w"
		}
		content := fmt.Sprintf(`{"kind": "ConfigMap", "metadata": {"name": %q}, "data": {"key": "private of %s"}}`, o.Fact.Name, ns)
		if _, refused := w.Keep(t.Context(), o, []byte(content)); refused != nil {
			t.Fatalf("%s: %+v", o.Fact.Name, refused)
		}
	}
}

const copyNames = `jsonpath={range .items[*]}{.status.object.resource}/{.status.object.name}{"\n"}{end}`

// TestCopies: copies are listed without their contents, by field selectors and in pages, and one has its content.
func TestCopies(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	storeCopies(t, ns, 4)
	want := []string{"configmaps/m-0", "configmaps/m-1", "configmaps/m-2", "configmaps/m-3", "widgets.example.com/w"}
	for _, size := range []string{"1", "2", "500"} {
		if got := strings.Fields(kubectl(t, "get", "ccopy", "-n", ns, "--chunk-size="+size, "-o", copyNames)); !slices.Equal(got, want) {
			t.Errorf("pages of %s: got %q", size, got)
		}
	}
	for selector, want := range map[string]string{
		"object=m-1":                   "configmaps/m-1",
		"object=configmaps/m-1":        "configmaps/m-1",
		"resource=widgets.example.com": "widgets.example.com/w",
		"object=none":                  "",
		"metadata.name=" + ns + "-2":   "configmaps/m-2",
	} {
		if got := strings.TrimSpace(kubectl(t, "get", "cleanupcopies", "-n", ns, "--field-selector="+selector, "-o", copyNames)); got != want {
			t.Errorf("%s: got %q, want %q", selector, got, want)
		}
	}
	if list := kubectl(t, "get", "ccopy", "-n", ns, "-o", "json"); strings.Contains(list, "private") {
		t.Errorf("the list has contents: %s", list)
	}
	contains(t, kubectl(t, "get", "ccopy", "-n", ns, ns+"-0", "-o", "jsonpath={.status.content}"), "private of "+ns)
	contains(t, refused(t, "", "get", "ccopy", "-n", ns, "--field-selector=policy=x"), "use one of")
	contains(t, refused(t, "", "get", "ccopy", "-n", ns, "-l", "a=b"), "copies have no labels")
	contains(t, refused(t, "", "delete", "ccopy", "-n", ns, ns+"-0"), "the server does not allow this method")
	contains(t, refused(t, "", "get", "ccopy", "-n", ns, "none"), `cleanupcopies.gc.winnow.dev "none" not found`)
	const internal = "objectcopies.internal.gc.winnow.dev"
	contains(t, refused(t, "", "patch", "-n", ns, internal, ns+"-0", "--type=merge", "-p", `{"content":"AAAA"}`), "written by Winnow alone")
}

// TestCopiesOfTwoTenants: neither sees the other's copies, and to read a content needs more than to list.
func TestCopiesOfTwoTenants(t *testing.T) {
	t.Parallel()
	first := namespace(t)
	second := first + "-other"
	kubectl(t, "create", "namespace", second)
	as := func(user string) func(ctx context.Context, ns string, args ...string) (string, string, error) {
		path, err := shared.KubeconfigFor(user + "-" + first)
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context, ns string, args ...string) (string, string, error) {
			return shared.Kubectl(ctx, append([]string{"--kubeconfig", path, "-n", ns}, args...)...)
		}
	}
	viewer, lister, one := as("viewer"), as("lister"), as("one")
	for _, ns := range []string{first, second} {
		storeCopies(t, ns, 1)
	}
	kubectl(t, "create", "rolebinding", "viewer", "-n", first, "--clusterrole=view", "--user=viewer-"+first)
	const own = "cleanupcopies.gc.winnow.dev"
	kubectl(t, "create", "role", "lister", "-n", first, "--verb=list", "--resource=configmaps,"+own)
	kubectl(t, "create", "role", "getter", "-n", first, "--verb=get", "--resource="+own)
	kubectl(t, "create", "role", "one", "-n", first, "--verb=get", "--resource=configmaps", "--resource-name=m-0")
	for role, users := range map[string][]string{"lister": {"lister"}, "getter": {"lister", "one"}, "one": {"one"}} {
		for _, user := range users {
			kubectl(t, "create", "rolebinding", role+"-"+user, "-n", first, "--role="+role, "--user="+user+"-"+first)
		}
	}
	eventually(t, func(ctx context.Context) error {
		stdout, stderr, err := viewer(ctx, first, "get", "cleanupcopies", "-o", copyNames)
		if err != nil || strings.TrimSpace(stdout) != "configmaps/m-0" || !strings.Contains(stderr, "you may not list their resources") {
			return fmt.Errorf("the viewer sees %q with %q, %w", stdout, stderr, err)
		}
		for name, who := range map[string]func(context.Context, string, ...string) (string, string, error){"viewer": viewer, "one": one} {
			stdout, stderr, err := who(ctx, first, "get", own, first+"-0", "-o", "jsonpath={.status.content}")
			if err != nil || !strings.Contains(stdout, "private of "+first) {
				return fmt.Errorf("%s reads %q, %s, %w", name, stdout, stderr, err)
			}
		}
		stdout, _, err = lister(ctx, first, "get", own, "-o", copyNames)
		if err != nil || !strings.Contains(stdout, "configmaps/m-0") {
			return fmt.Errorf("the lister sees %q, %w", stdout, err)
		}
		return nil
	})
	for name, read := range map[string]func() (string, string, error){
		"the lister reads a content": func() (string, string, error) { return lister(t.Context(), first, "get", own, first+"-0") },
		"the viewer reads a Widget":  func() (string, string, error) { return viewer(t.Context(), first, "get", own, first+"-1") },
		"the viewer reads elsewhere": func() (string, string, error) { return viewer(t.Context(), second, "get", own, second+"-0") },
		"the viewer lists elsewhere": func() (string, string, error) { return viewer(t.Context(), second, "get", own) },
		"the viewer lists all":       func() (string, string, error) { return viewer(t.Context(), first, "get", own, "-A") },
		"one reads another":          func() (string, string, error) { return one(t.Context(), first, "get", own, first+"-1") },
		"the viewer reads storage": func() (string, string, error) {
			return viewer(t.Context(), first, "get", "objectcopies.internal.gc.winnow.dev")
		},
	} {
		if stdout, stderr, err := read(); err == nil || !strings.Contains(stderr, "orbidden") || strings.Contains(stdout, "private") {
			t.Errorf("%s: %s, %s, %v", name, stdout, stderr, err)
		}
	}
}
