// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/test/winnow"
)

// TestCandidatesAnnounceTheDeletes: the explanation equals the deed. A thousand random objects are explained under Preview policies. When
// these enforce, exactly those are deleted that were announced as Due, by the policies and rules that were announced, and everything else
// stays as it was. In one namespace another policy enforces all the time, in the second one a cluster policy sets defaults within a maxTTL,
// and in the third one a minTTL lets nothing go.
func TestCandidatesAnnounceTheDeletes(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	world := randomWorld{random: rand.New(rand.NewPCG(seed, 0)), client: customClient(t), custom: machine("swagers", "v1")}
	grant(t, world.custom)
	installCustom(t, world.client, world.custom)
	createLifecycle(t, world.custom, "object.status.at")
	defaults, young := newGroup(), newGroup()
	namespaces := []string{newNamespace(t), defaults.namespace(t), young.namespace(t)}
	own := world.preview()
	for _, ns := range []string{namespaces[0], namespaces[2]} {
		createPolicy(t, ns, "p", own)
	}
	createPolicy(t, namespaces[0], "pins", v1alpha1.CleanupPolicySpec{
		Rules: []v1alpha1.CleanupRule{
			{Name: "pinned", Resources: own.Rules[0].Resources, Selector: matching(map[string]string{"pinned": "yes"}), TTL: ttl("1h")},
		},
	})
	defaults.govern(t, v1alpha1.ClusterCleanupPolicySpec{
		Mode: v1alpha1.ModePreview, Rules: own.Rules[:len(own.Rules)-1], TTLAfterFinished: ttl("never"),
	})
	govern(t, string(defaults)+"-limits", v1alpha1.ClusterCleanupPolicySpec{
		Mode: v1alpha1.ModeEnforce, NamespaceSelector: matching(defaults.labels()),
		Guardrails: &v1alpha1.Guardrails{MaxTTL: ttl("2h"), AllowNever: new(false)},
	})
	young.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: &v1alpha1.Guardrails{MinTTL: ttl("30m")}})

	expected := []map[string]string{
		world.create(t, namespaces[0], 500, func(o *randomObject) bool { return o.tier != "none" || o.pinned }),
		world.create(t, namespaces[1], 300, func(o *randomObject) bool {
			return o.tier != "child" && (o.tier != "none" || o.resource != world.custom.Plural) // It has no rule for children.
		}),
		world.create(t, namespaces[2], 200, func(o *randomObject) bool { return o.tier != "none" }),
	}
	announced := make([]announcement, len(namespaces))
	for i, ns := range namespaces {
		announced[i] = waitAnnounced(t, ns, expected[i])
		checkReplicasAgree(t, ns, announced[i])
		checkPluginAgrees(t, ns, announced[i])
		if got := deletions(t, ns); len(got) > 0 {
			t.Fatalf("%d deletes under Preview", len(got))
		}
	}
	due := [][]string{announced[0].due(), announced[1].due(), announced[2].due()}
	if len(due[0]) < 30 || len(due[1]) < 8 || len(due[2]) > 0 {
		t.Fatalf("%d, %d and %d are due; the test shows little", len(due[0]), len(due[1]), len(due[2]))
	}
	for _, ns := range []string{namespaces[0], namespaces[2]} {
		_, err := gc.CleanupPolicies(ns).Patch(t.Context(), "p", types.MergePatchType, []byte(`{"spec":{"mode":"Enforce"}}`), metav1.PatchOptions{})
		must(t, err)
	}
	defaults.change(t, `{"mode":"Enforce"}`)
	for i, ns := range namespaces {
		expectDeletions(t, ns, due[i]...)
	}
	afterwards(t, 0)
	for i, ns := range namespaces {
		expectDeletions(t, ns, due[i]...)
		announced[i].check(t, ns)
	}
}

// govern creates a cluster policy until the test ends.
func govern(t *testing.T, name string, spec v1alpha1.ClusterCleanupPolicySpec) {
	t.Helper()
	_, err := gc.ClusterCleanupPolicies().Create(t.Context(),
		&v1alpha1.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, gc.ClusterCleanupPolicies().Delete(whole, name, metav1.DeleteOptions{})) })
}

// announcement has what was said of the objects of a namespace, by "jobs/name".
type announcement map[string]v1alpha1.CleanupCandidateStatus

// waitAnnounced waits until the candidates are exactly those expected, in the versions that were written last.
func waitAnnounced(t *testing.T, ns string, expected map[string]string) announcement {
	t.Helper()
	var out announcement
	eventually(t, func(ctx context.Context) string {
		list, err := gc.CleanupCandidates(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		out = announcement{}
		versions := map[string]string{}
		for i := range list.Items {
			object := objectOf(&list.Items[i])
			out[object], versions[object] = list.Items[i].Status, list.Items[i].Status.Object.ResourceVersion
		}
		if !maps.Equal(versions, expected) {
			return fmt.Sprintf("%d candidates, want %d; too many or outdated: %q, missing: %q", len(versions), len(expected),
				without(pairs(versions), pairs(expected)), without(pairs(expected), pairs(versions)))
		}
		return ""
	})
	return out
}

// checkPluginAgrees compares what the plugin says that decides for the objects itself, as in a cluster without Winnow. It does not know
// since when an object has been above a limit by count, so that the time when such an object became due differs.
func checkPluginAgrees(t *testing.T, ns string, announced announcement) {
	t.Helper()
	cluster, err := local.New(suite.RESTConfig())
	must(t, err)
	world, err := cluster.Read(t.Context(), local.Options{Namespace: ns, Now: time.Now()})
	must(t, err)
	candidates, err := world.Candidates(t.Context())
	must(t, err)
	timeless := func(s v1alpha1.CleanupCandidateStatus) v1alpha1.CleanupCandidateStatus {
		s.ObservedTime = nil
		if s.State != v1alpha1.CandidateWaiting {
			s.DueTime = nil
		}
		return s
	}
	want, got := announcement{}, announcement{}
	for object, s := range announced {
		want[object] = timeless(s)
	}
	for i := range candidates {
		got[objectOf(&candidates[i])] = timeless(candidates[i].Status)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in %s, the plugin says something else than the server (-server +plugin):\n%s", ns, diff)
	}
}

func pairs(m map[string]string) []string {
	var out []string
	for k, v := range m {
		out = append(out, k+" "+v)
	}
	slices.Sort(out)
	return out
}

// objectOf names the object of a candidate as the audit log does.
func objectOf(c *v1alpha1.CleanupCandidate) string {
	resource, _, _ := strings.Cut(c.Status.Object.Resource, ".")
	return resource + "/" + c.Status.Object.Name
}

// due returns what is announced to be deleted, as expectDeletions takes it.
func (a announcement) due() []string {
	var out []string
	for object, s := range a {
		if s.State == v1alpha1.CandidateDue {
			out = append(out, object+" "+s.DecidedBy.Name+"/"+s.DecidedBy.Rule)
		}
	}
	return out
}

// check compares what was announced with the deletions and with what is said of the objects that are left.
func (a announcement) check(t *testing.T, ns string) {
	t.Helper()
	for _, d := range deletions(t, ns) {
		if want := a[d.object].PropagationPolicy; d.propagation != string(want) {
			t.Errorf("%s was deleted with propagation %s, announced with %s", d.object, d.propagation, want)
		}
	}
	left, err := gc.CleanupCandidates(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i := range left.Items {
		object, now := objectOf(&left.Items[i]), left.Items[i].Status
		before, ok := a[object]
		switch {
		case !ok:
			t.Errorf("%s is a candidate now", object)
		case before.State == v1alpha1.CandidateDue:
			if now.State != v1alpha1.CandidateTerminating {
				t.Errorf("%s was due, and is %s", object, now.State)
			}
		case before.DecidedBy.Name == "pins":
			checkLatest(t, object, &before, &now)
		case now.State != before.State || now.Reason != before.Reason || !now.DueTime.Equal(before.DueTime) || now.TTL != before.TTL:
			t.Errorf("%s was %+v, and is %+v", object, before, now)
		}
	}
}

// checkLatest: the enforcing policy decided while the other one previewed. Now the one decides whose announced answer is the later, unless
// the deletions have brought the object below the limit of that one.
func checkLatest(t *testing.T, object string, before, now *v1alpha1.CleanupCandidateStatus) {
	t.Helper()
	if now.DecidedBy != nil && now.DecidedBy.Rule == "few" {
		return
	}
	latest := v1alpha1.ConsideredPolicy{}
	for _, p := range before.Policies {
		later := p.KeepsUntil == "never" || latest.KeepsUntil != "never" && p.KeepsUntil > latest.KeepsUntil
		if p.Result != v1alpha1.ConsideredNoMatch && later {
			latest = p
		}
	}
	if now.DecidedBy == nil || now.DecidedBy.Name != latest.Name || now.DecidedBy.Rule != latest.Rule {
		t.Errorf("%s is decided by %+v, announced by %+v of %+v", object, now.DecidedBy, latest, before.Policies)
	}
}

// checkReplicasAgree: each replica says the same, and a list goes on at the other replica.
func checkReplicasAgree(t *testing.T, ns string, want announcement) {
	t.Helper()
	path := "/apis/gc.winnow.dev/v1alpha1/namespaces/" + ns + "/cleanupcandidates"
	replicas := server.Replicas[:2]
	eventually(t, func(context.Context) string { // Until both have seen everything.
		for _, r := range replicas {
			got := announcement{}
			add(t, get(t, r, path), got)
			if diff := got.differs(want); diff != "" {
				return r.Name + ": " + diff
			}
		}
		return ""
	})
	got, position := announcement{}, ""
	for page := 0; ; page++ {
		list := get(t, replicas[page%2], path+"?limit=37&continue="+url.QueryEscape(position))
		add(t, list, got)
		if position = list.Continue; position == "" {
			break
		}
	}
	if diff := got.differs(want); diff != "" {
		t.Errorf("in pages from both replicas: %s", diff)
	}
}

func get(t *testing.T, from *winnow.Replica, path string) *v1alpha1.CleanupCandidateList {
	t.Helper()
	text, err := from.Get(t.Context(), path)
	must(t, err)
	list := &v1alpha1.CleanupCandidateList{}
	must(t, json.Unmarshal([]byte(text), list))
	return list
}

// add adds the candidates of a page, each of which must be new.
func add(t *testing.T, page *v1alpha1.CleanupCandidateList, to announcement) {
	t.Helper()
	for i := range page.Items {
		object := objectOf(&page.Items[i])
		if _, twice := to[object]; twice {
			t.Errorf("%s is listed twice", object)
		}
		to[object] = page.Items[i].Status
	}
}

// differs returns the first difference, besides when objects were observed; empty if there is none. Each replica observes for itself when
// an object came to be above a limit by count, and may do so in the next second.
func (a announcement) differs(want announcement) string {
	for _, object := range slices.Sorted(maps.Keys(want)) {
		got, want := a[object], want[object]
		got.ObservedTime, want.ObservedTime = nil, nil
		if got.Reason == want.Reason && want.Reason == "OverCapacity" && got.DueTime != nil && want.DueTime != nil {
			got.DueTime, want.DueTime = nil, nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Sprintf("%s (-want +got): %s", object, diff)
		}
	}
	if len(a) != len(want) {
		return fmt.Sprintf("%d candidates, want %d", len(a), len(want))
	}
	return ""
}
