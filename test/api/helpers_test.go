// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// namespace creates one for a test, named after it; the cluster goes as a whole afterwards.
func namespace(t *testing.T) string {
	t.Helper()
	name := identifier(t)
	kubectl(t, "create", "namespace", name)
	return name
}

// identifier is the name of a test in the form of a DNS label.
func identifier(t *testing.T) string {
	return strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
}

// kubectl runs it with all rights and returns its standard output. The test ends if it fails.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return kubectlStdin(t, "", args...)
}

func kubectlStdin(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, _, err := shared.KubectlStdin(t.Context(), stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refused runs what must fail, and returns what the user reads.
func refused(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, stderr, err := shared.KubectlStdin(t.Context(), stdin, args...)
	if err == nil {
		t.Fatalf("kubectl %s was not refused: %s", strings.Join(args, " "), out)
	}
	return stderr
}

// contains fails the test for each part that text lacks.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

// kind is one that is served.
type kind struct {
	plural, singular, short, name string
	namespaced                    bool
}

var (
	ofNamespace = kind{"cleanuppolicies", "cleanuppolicy", "cup", "CleanupPolicy", true}
	ofCluster   = kind{"clustercleanuppolicies", "clustercleanuppolicy", "ccup", "ClusterCleanupPolicy", false}
)

// scope is where a test has its policies of a kind to itself: its own namespace, or else its own names and label.
type scope struct {
	kind
	t  *testing.T
	id string
}

// scoped makes a scope for a test, which is named after it.
func scoped(t *testing.T, k kind) scope {
	t.Helper()
	if k.namespaced {
		return scope{k, t, namespace(t)}
	}
	return scope{k, t, identifier(t)}
}

// forEachKind runs a test of what the kinds have in common, all at once.
func forEachKind(t *testing.T, test func(t *testing.T, p scope)) {
	t.Helper()
	t.Parallel()
	for _, k := range []kind{ofNamespace, ofCluster} {
		t.Run(k.short, func(t *testing.T) {
			t.Parallel()
			test(t, scoped(t, k))
		})
	}
}

// called is how a policy of this name is called in the cluster.
func (p scope) called(name string) string {
	if p.namespaced {
		return name
	}
	return p.id + "-" + name
}

// on are the arguments of kubectl that do something with one policy.
func (p scope) on(verb, name string, args ...string) []string {
	what := []string{verb, p.short, p.called(name)}
	if p.namespaced {
		what = append(what, "-n", p.id)
	}
	return append(what, args...)
}

// onAll are those for all policies of the scope.
func (p scope) onAll(verb string, args ...string) []string {
	return append([]string{verb, p.short, p.where()}, args...)
}

func (p scope) where() string {
	if p.namespaced {
		return "--namespace=" + p.id
	}
	return "--selector=" + p.selector()
}

// selector on labels is all that tells policies of this scope from others, where there is no namespace to.
func (p scope) selector() string {
	if p.namespaced {
		return ""
	}
	return "test=" + p.id
}

// path of the collection below /apis.
func (p scope) path() string {
	if p.namespaced {
		return "/apis/gc.winnow.dev/v1alpha1/namespaces/" + p.id + "/" + p.plural
	}
	return "/apis/gc.winnow.dev/v1alpha1/" + p.plural
}

// client reaches the policies as they are served, whatever their kind.
func (p scope) client() dynamic.ResourceInterface {
	policies := dynamic.NewForConfigOrDie(shared.RESTConfig()).Resource(v1alpha1.SchemeGroupVersion.WithResource(p.plural))
	if p.namespaced {
		return policies.Namespace(p.id)
	}
	return policies
}

// manifest of a policy; spec is in JSON or in YAML's flow style, and for cluster policies filled up with what they require.
func (p scope) manifest(name, spec string) string {
	metadata := "namespace: " + p.id
	if !p.namespaced {
		metadata = fmt.Sprintf("labels: {test: %s}", p.id)
		for _, required := range [][2]string{{"namespaceSelector: ", "{}"}, {"mode: ", "Enforce"}} {
			if !strings.Contains(spec, required[0]) {
				spec = strings.Replace(spec, "{", "{"+required[0]+required[1]+", ", 1)
			}
		}
	}
	return fmt.Sprintf(
		"apiVersion: gc.winnow.dev/v1alpha1\nkind: %s\nmetadata: {name: %s, %s}\nspec: %s\n",
		p.name,
		p.called(name),
		metadata,
		spec,
	)
}

// create creates a policy and returns it.
func (p scope) create(name, spec string) *v1alpha1.CleanupPolicy {
	p.t.Helper()
	return decode(p.t, kubectlStdin(p.t, p.manifest(name, spec), "create", "-f", "-", "-o", "json"))
}

// get reads a policy through kubectl. What only cluster policies have is left out.
func (p scope) get(name string) *v1alpha1.CleanupPolicy {
	p.t.Helper()
	return decode(p.t, kubectl(p.t, p.on("get", name, "-o", "json", "--show-managed-fields")...))
}

func decode(t *testing.T, text string) *v1alpha1.CleanupPolicy {
	t.Helper()
	policy := &v1alpha1.CleanupPolicy{}
	if err := json.Unmarshal([]byte(text), policy); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return policy
}

// lines splits a table of kubectl into its cells.
func lines(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

// waitMost is how long something may take that is not measured.
const waitMost = 5 * time.Minute

// eventually asks until the answer is nil; the last answer explains the failure.
func eventually(t *testing.T, ask func(context.Context) error) {
	t.Helper()
	last := errors.New("not asked")
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, waitMost, true, func(ctx context.Context) (bool, error) {
		last = ask(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}

// owners maps each field manager to the JSON of what it owns.
func owners(meta metav1.ObjectMeta) map[string]string {
	owned := map[string]string{}
	for _, entry := range meta.ManagedFields {
		owned[entry.Manager+entry.Subresource] = entry.FieldsV1.GetRawString()
	}
	return owned
}
