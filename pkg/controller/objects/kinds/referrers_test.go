// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
)

func listed(group, version, kind, plural string) Listed {
	return Listed{Served: served(group, version, kind, plural), Namespaced: true}
}

// referring is a ResourceLifecycle of a user that says what the objects refer to.
func referring(name string, generation int64, refs ...gc.LifecycleReference) *gc.ResourceLifecycle {
	return &gc.ResourceLifecycle{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: generation},
		Spec:       gc.ResourceLifecycleSpec{References: refs},
	}
}

func toSecret(names string) gc.LifecycleReference {
	return gc.LifecycleReference{To: gc.ResourceSecrets, Names: names}
}

func newCatalog(t *testing.T) *Catalog {
	t.Helper()
	c, err := NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sourcesOf(all []*Referrer) string {
	var out []string
	for _, r := range all {
		out = append(out, r.Sources()...)
	}
	return strings.Join(out, ", ")
}

// TestWhatMayRefer: every resource may refer to ConfigMaps and Secrets that is not known to refer to none.
func TestWhatMayRefer(t *testing.T) {
	for name, tc := range map[string]struct {
		resource Listed
		want     string // the sources
	}{
		"Pods":                                  {listed("", "v1", "Pod", "pods"), "pods"},
		"ConfigMaps":                            {listed("", "v1", "ConfigMap", "configmaps"), "configmaps, exempt configmaps"},
		"definitions":                           {listed("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"), "customresourcedefinitions.apiextensions.k8s.io"},
		"API services":                          {listed("apiregistration.k8s.io", "v1", "APIService", "apiservices"), "apiservices.apiregistration.k8s.io"},
		"Nodes, which name none":                {listed("", "v1", "Node", "nodes"), ""},
		"Endpoints, which name none":            {listed("", "v1", "Endpoints", "endpoints"), ""},
		"the same in a version of later":        {listed("discovery.k8s.io", "v7", "EndpointSlice", "endpointslices"), ""},
		"Deployments in a version of later":     {listed("apps", "v7", "Deployment", "deployments"), "deployments.apps"},
		"a kind of Kubernetes that is newer":    {listed("apps", "v1", "Fleet", "fleets"), "fleets.apps"},
		"a custom resource":                     {listed("example.com", "v1", "Run", "runs"), "runs.example.com"},
		"a custom resource with a known kind":   {listed("example.com", "v1", "Node", "nodes"), "nodes.example.com"},
		"a custom resource that is declared":    {listed("cert-manager.io", "v1", "Issuer", "issuers"), "issuers.cert-manager.io"},
		"policies":                              {listed(gc.GroupName, "v1alpha1", "CleanupPolicy", "cleanuppolicies"), ""},
		"policies as they are stored":           {listed("internal."+gc.GroupName, "v1", "StoredCleanupPolicy", "storedcleanuppolicies"), ""},
		"a group whose name ends like Winnow's": {listed("not"+gc.GroupName, "v1", "Run", "runs"), "runs.not" + gc.GroupName},
		"a group below Winnow's":                {listed("x."+gc.GroupName, "v1", "Run", "runs"), "runs.x." + gc.GroupName},
		"a group below metrics":                 {listed("x.metrics.k8s.io", "v1", "Run", "runs"), "runs.x.metrics.k8s.io"},
		"a group whose name begins so":          {listed(gc.GroupName+".example.com", "v1", "Run", "runs"), "runs." + gc.GroupName + ".example.com"},
		"metrics":                               {listed("metrics.k8s.io", "v1beta1", "PodMetrics", "pods"), ""},
		"other metrics":                         {listed("custom.metrics.k8s.io", "v1beta2", "MetricValueList", "services"), ""},
	} {
		if got := sourcesOf(newCatalog(t).Referrers([]Listed{tc.resource}, nil, nil)); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestSecretsByType: Secrets of the types that are used without a reference are listed once more, because their metadata has no type.
func TestSecretsByType(t *testing.T) {
	all := newCatalog(t).Referrers([]Listed{listed("", "v1", "Secret", "secrets")}, nil, nil)
	if len(all) != 1+len(references.ExemptTypes()) || all[0].FieldSelector != "" || sourcesOf(all[:1]) != "secrets, exempt secrets" {
		t.Fatalf("the first of %d is %+v", len(all), all[0])
	}
	names := map[string]bool{}
	for _, r := range all[1:] {
		if typ, ok := strings.CutPrefix(r.FieldSelector, "type="); !ok || r.Why != references.ExemptTypes()[typ] || r.Why == "" {
			t.Errorf("%q: %q", r.FieldSelector, r.Why)
		}
		if got := sourcesOf([]*Referrer{r}); got != "exempt secrets with "+r.FieldSelector || names[got] {
			t.Errorf("the sources are %q", got)
		} else {
			names[got] = true
		}
		refs, why, err := r.References(object(t, "{metadata: {name: a, namespace: ns}}"))
		if err != nil || len(refs) > 0 || why != r.Why {
			t.Errorf("%s: refers to %v, and is used because %q", r.FieldSelector, refs, why)
		}
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// uses says which of the Secrets "used" and "named" in the namespace ns an object uses, "others" if it may use any other there, and
// "everywhere" if it uses "named" in another namespace.
func uses(r *Referrer, object *unstructured.Unstructured) string {
	refs, _, _ := r.References(object)
	index := references.NewIndex(references.MaxKeys)
	index.Source("all").Set(references.Referrer{UID: "a"}, references.Keys(refs))
	index.Finish()
	var out []string
	for _, name := range []string{"used", "named"} {
		if index.Used(references.Secrets, "ns", name) == references.Used {
			out = append(out, name)
		}
	}
	if index.Used(references.Secrets, "ns", "another") != references.Unused {
		out = append(out, "others")
	}
	if index.Used(references.Secrets, "elsewhere", "named") != references.Unused {
		out = append(out, "everywhere")
	}
	return strings.Join(out, " ")
}

// TestReferencesWithLifecyclesOfUsers: they replace built-in declarations, and what is known of resources of Kubernetes stays known.
func TestReferencesWithLifecyclesOfUsers(t *testing.T) {
	const (
		run     = "{metadata: {name: r, namespace: ns}, spec: {key: used, other: named}}"
		repo    = "{metadata: {name: r, namespace: ns}, spec: {secretRef: {name: used}, other: named}}"
		service = "{metadata: {name: s, namespace: ns, annotations: {example.com/tls: used}}, spec: {externalName: named}}"
		node    = "{metadata: {name: node}, spec: {providerID: named}}"
	)
	runs, repos := listed("example.com", "v1", "Run", "runs"), listed("source.toolkit.fluxcd.io", "v1", "GitRepository", "gitrepositories")
	services, nodes := listed("", "v1", "Service", "services"), Listed{Served: served("", "v1", "Node", "nodes")}
	clusterRuns := Listed{Served: runs.Served}
	refer := func(to string) func(string) *gc.ResourceLifecycle {
		return func(name string) *gc.ResourceLifecycle { return referring(name, 1, toSecret(to)) }
	}
	finish := func(name string) *gc.ResourceLifecycle { return stored(name, "Done", 1) }
	for name, tc := range map[string]struct {
		resource Listed
		user     func(name string) *gc.ResourceLifecycle
		object   string
		want     string
	}{
		"undeclared: every name": {runs, nil, run, "used named"},
		"declared":               {runs, refer("object.spec.other"), run, "named"},
		"declared with a finish": {runs, func(name string) *gc.ResourceLifecycle {
			l := finish(name)
			l.Spec.References = []gc.LifecycleReference{toSecret("object.spec.other")}
			return l
		}, run, "named"},
		"only a finish":                    {runs, finish, run, "used named"},
		"for another resource":             {runs, func(string) *gc.ResourceLifecycle { return referring("walks.example.com", 1, toSecret("'x'")) }, run, "used named"},
		"an expression that fails":         {runs, refer("object.spec.missing"), run, "used named others everywhere"},
		"an expression of a later version": {runs, refer("object.newFunction()"), run, "used named others everywhere"},
		"a target of a later version": {runs, func(name string) *gc.ResourceLifecycle {
			return referring(name, 1, gc.LifecycleReference{To: "pods", Names: "'x'"})
		}, run, "used named others everywhere"},
		"cannot be read":                    {runs, damaged(refer("object.spec.other")), run, "used named others everywhere"},
		"cannot be read, with a finish":     {runs, damaged(finish), run, "used named others everywhere"},
		"every object of every namespace":   {runs, refer("'*/*'"), run, "others"},
		"every object, without a namespace": {clusterRuns, refer("'*/*'"), "{metadata: {name: r}}", "others everywhere"},
		"objects without a namespace":       {clusterRuns, refer("object.spec.other"), "{metadata: {name: r}, spec: {other: named}}", "named everywhere"},
		"built in":                          {repos, nil, repo, "used"},
		"instead of built in":               {repos, refer("object.spec.other"), repo, "used named"}, // A field secretRef counts nevertheless.
		"of Kubernetes":                     {services, nil, service, "used"},
		"of Kubernetes, with others":        {services, refer("object.spec.externalName"), service, "used named"},
		"of Kubernetes, cannot be read":     {services, damaged(finish), service, "used named others everywhere"},
		"Nodes name none, unless declared":  {nodes, refer("'ns/' + object.spec.providerID"), node, "named"},
		"Nodes name none, with a finish":    {nodes, finish, node, "none"},
		"Nodes name none, if it is damaged": {nodes, damaged(finish), node, "named others everywhere"},
	} {
		users := map[string]*gc.ResourceLifecycle{}
		if tc.user != nil {
			l := tc.user(tc.resource.Resource())
			users[l.Name] = l
		}
		got := "none"
		for _, r := range newCatalog(t).Referrers([]Listed{tc.resource}, users, nil) {
			got = uses(r, object(t, tc.object))
		}
		if got != tc.want {
			t.Errorf("%s: uses %q, want %q", name, got, tc.want)
		}
	}
}

// damaged makes a lifecycle one that cannot be read.
func damaged(l func(name string) *gc.ResourceLifecycle) func(name string) *gc.ResourceLifecycle {
	return func(name string) *gc.ResourceLifecycle {
		out := l(name)
		gc.MarkUnreadable(out, errors.New("spec: unknown field"))
		return out
	}
}

// TestExemptions: ConfigMaps and Secrets are listed as what is used without a reference, too. They do not use themselves.
func TestExemptions(t *testing.T) {
	c := newCatalog(t)
	for name, tc := range map[string]struct{ object, refs, why string }{
		"plain":      {"{metadata: {name: a, namespace: ns}}", "", ""},
		"annotated":  {"{metadata: {name: a, namespace: ns, annotations: {example.com/copy-of: used}}}", "used", ""},
		"owned":      {"{metadata: {name: a, namespace: ns, ownerReferences: [{apiVersion: v1, kind: Secret, name: used, uid: u}]}}", "used", "it has an owner"},
		"by name":    {"{metadata: {name: kube-root-ca.crt, namespace: ns}}", "", "Kubernetes creates it in every namespace"},
		"by a label": {"{metadata: {name: a, namespace: ns, labels: {grafana_dashboard: '1'}}}", "", "a sidecar of Grafana finds it by label"},
		"applied":    {"{metadata: {name: a, namespace: ns, annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: ns}}}", "", `Helm release "ns/web" applied it`},
	} {
		for _, resource := range []Listed{listed("", "v1", "ConfigMap", "configmaps"), listed("", "v1", "Secret", "secrets")} {
			r := c.Referrers([]Listed{resource}, nil, nil)[0]
			if got := uses(r, object(t, tc.object)); got != tc.refs {
				t.Errorf("%s in %s: uses %q, want %q", name, r.Resource(), got, tc.refs)
			}
			if _, why, _ := r.References(object(t, tc.object)); why != tc.why {
				t.Errorf("%s in %s: it is used because %q, want %q", name, r.Resource(), why, tc.why)
			}
			itself := r.Itself("ns", "a")
			if want := (references.Reference{To: ToOf(r.Resource()), Namespace: "ns", Name: "a"}); itself != want || itself.To == 0 {
				t.Errorf("%s: itself is %+v", r.Resource(), itself)
			}
		}
	}
	pods := c.Referrers([]Listed{listed("", "v1", "Pod", "pods")}, nil, nil)[0]
	if _, why, _ := pods.References(object(t, "{metadata: {name: kube-root-ca.crt, namespace: ns}}")); why != "" {
		t.Errorf("a Pod is used because %s", why)
	}
	if to := ToOf(pods.Resource()); to != 0 {
		t.Errorf("references to Pods are of %d", to)
	}
}

// TestReferrersThatStay: a referrer that is as before is the same, so that its watch goes on.
func TestReferrersThatStay(t *testing.T) {
	const runs = "runs.example.com"
	resources := []Listed{
		listed("example.com", "v1", "Run", "runs"), listed("", "v1", "Secret", "secrets"), listed("", "v1", "Pod", "pods"),
		listed("cert-manager.io", "v1", "Issuer", "issuers"),
	}
	change := func(f func(*Listed)) []Listed {
		out := slices.Clone(resources)
		f(&out[0])
		return out
	}
	users := lifecyclesOf(referring(runs, 1, toSecret("'a'")))
	other := referring(runs, 1, toSecret("'a'"))
	other.UID = "another"
	labelled := referring(runs, 1, toSecret("'a'"))
	labelled.Labels = map[string]string{"a": "b"}
	for name, tc := range map[string]struct {
		resources []Listed
		users     map[string]*gc.ResourceLifecycle
		came      string
		went      string
	}{
		"nothing":                      {resources, users, "", ""},
		"the order":                    {[]Listed{resources[3], resources[1], resources[2], resources[0]}, users, "", ""},
		"other labels":                 {resources, lifecyclesOf(labelled), "", ""},
		"another lifecycle":            {resources, lifecyclesOf(referring(runs, 1, toSecret("'a'")), stored("pods", "Done", 1)), "", ""},
		"a resource comes":             {append(slices.Clone(resources), listed("example.com", "v1", "Walk", "walks")), users, "walks.example.com", ""},
		"a resource goes":              {resources[1:], users, "", runs},
		"another version":              {change(func(l *Listed) { l.Version = "v2" }), users, runs, runs},
		"another kind":                 {change(func(l *Listed) { l.Kind = "Sprint" }), users, runs, runs},
		"no longer in namespaces":      {change(func(l *Listed) { l.Namespaced = false }), users, runs, runs},
		"another generation":           {resources, lifecyclesOf(referring(runs, 2, toSecret("'b'"))), runs, runs},
		"deleted and created again":    {resources, lifecyclesOf(other), runs, runs},
		"the lifecycle goes":           {resources, nil, runs, runs},
		"the lifecycle refers no more": {resources, lifecyclesOf(stored(runs, "Done", 2)), runs, runs},
	} {
		c := newCatalog(t)
		before := c.Referrers(resources, users, nil)
		after := c.Referrers(tc.resources, tc.users, before)
		difference := func(a, b []*Referrer) string {
			return sourcesOf(slices.DeleteFunc(slices.Clone(a), func(r *Referrer) bool { return slices.Contains(b, r) }))
		}
		if came, went := difference(after, before), difference(before, after); came != tc.came || went != tc.went {
			t.Errorf("%s: %q came and %q went, want %q and %q", name, came, went, tc.came, tc.went)
		}
		if !slices.IsSortedFunc(after, func(a, b *Referrer) int {
			return strings.Compare(a.Resource()+" "+a.FieldSelector, b.Resource()+" "+b.FieldSelector)
		}) {
			t.Errorf("%s: not sorted: %s", name, sourcesOf(after))
		}
		table := Builtin().WithReferrers(before, "")
		if same := table.SameReferrers(Builtin().WithReferrers(after, "")); same != (tc.came+tc.went == "") {
			t.Errorf("%s: the same: %t", name, same)
		}
	}
}

// TestKindsOfReferrers: only the metadata of ConfigMaps and Secrets is read, unless a lifecycle says what is in a ConfigMap. Other objects of
// Kubernetes are read into their types, unless a lifecycle may read more.
func TestKindsOfReferrers(t *testing.T) {
	const metadata, whole = "*v1.PartialObjectMetadata", "*unstructured.Unstructured"
	configMaps, secrets := listed("", "v1", "ConfigMap", "configmaps"), listed("", "v1", "Secret", "secrets")
	pods, claims := listed("", "v1", "Pod", "pods"), listed("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
	for name, tc := range map[string]struct {
		resource Listed
		user     *gc.ResourceLifecycle
		kind     string
		fields   string // one that is read
	}{
		"ConfigMaps":               {configMaps, nil, metadata, "metadata.annotations"},
		"Secrets":                  {secrets, nil, metadata, "metadata.annotations"},
		"Secrets, if declared":     {secrets, referring("secrets", 1, toSecret("object.data.a")), metadata, "metadata.annotations"},
		"ConfigMaps with a finish": {configMaps, stored("configmaps", "Done", 1), metadata, "metadata.annotations"},
		"declared ConfigMaps":      {configMaps, referring("configmaps", 1, toSecret("object.data.secret")), whole, ""},
		"Pods":                     {pods, nil, "*v1.Pod", "spec.volumes.secret.secretName"},
		"declared Pods":            {pods, referring("pods", 1, toSecret("object.spec.a")), whole, ""},
		"the next version":         {listed("", "v2", "Pod", "pods"), nil, whole, "spec.volumes.secret.secretName"},
		"revisions":                {listed("apps", "v1", "ControllerRevision", "controllerrevisions"), nil, whole, "data"},
		"claims":                   {claims, nil, whole, "spec.devices.config.opaque.parameters"},
		"a custom resource":        {listed("example.com", "v1", "Run", "runs"), nil, whole, ""},
	} {
		users := map[string]*gc.ResourceLifecycle{}
		if tc.user != nil {
			users[tc.user.Name] = tc.user
		}
		r := newCatalog(t).Referrers([]Listed{tc.resource}, users, nil)[0]
		k := r.Kind()
		if k.Resource != tc.resource.Resource() || k.GroupVersionKind != tc.resource.GroupVersionKind || k.Plural != tc.resource.Plural {
			t.Errorf("%s: %+v", name, k)
		}
		if kind := fmt.Sprintf("%T", k.New()); kind != tc.kind {
			t.Errorf("%s: read as %s", name, kind)
		}
		if !slices.ContainsFunc(k.Fields, func(path []string) bool { return strings.Join(path, ".") == tc.fields }) {
			t.Errorf("%s: %v is read", name, k.Fields)
		}
	}
	declared := newCatalog(t).Referrers([]Listed{configMaps}, lifecyclesOf(referring("configmaps", 1, toSecret("object.data.secret"))), nil)[0]
	o := object(t, "{metadata: {name: a, namespace: ns}, data: {secret: used}}")
	if got := uses(declared, o); got != "used" {
		t.Errorf("a ConfigMap uses %q", got)
	}
}

// TestReferrersOfTables: a table that was made without discovery knows of no referrer, and does not say that there are none.
func TestReferrersOfTables(t *testing.T) {
	c := newCatalog(t)
	pods := c.Referrers([]Listed{listed("", "v1", "Pod", "pods")}, nil, nil)
	if Builtin().Undiscovered == "" || NewTable().Undiscovered == "" || c.Table(nil, nil, Builtin()).Undiscovered == "" {
		t.Error("all referrers are known without discovery")
	}
	known := Builtin().WithReferrers(pods, "")
	k := Custom(listed("example.com", "v1", "Run", "runs").GroupVersionKind, "runs", nil, Source{})
	for name, tc := range map[string]struct {
		table *Table
		same  bool
	}{
		"itself":                {known, true},
		"another kind":          {known.With(k), true},
		"no referrers":          {known.WithReferrers(nil, ""), false},
		"others may be missing": {known.WithReferrers(pods, "discovery failed"), false},
		"without discovery":     {Builtin(), false},
	} {
		if tc.table.SameReferrers(known) != tc.same || known.SameReferrers(tc.table) != tc.same {
			t.Errorf("%s: the same: %t", name, !tc.same)
		}
	}
	if Builtin().SameReferrers(known) || len(Builtin().Referrers) > 0 {
		t.Error("WithReferrers has changed the table")
	}
}

// TestFinalizersAreUse: somebody still needs an object with a finalizer, for example Rook the Secret of a Ceph cluster.
func TestFinalizersAreUse(t *testing.T) {
	for text, want := range map[string]string{
		"{metadata: {name: rook-ceph-mon, namespace: ns, finalizers: [ceph.rook.io/disaster-protection]}}":             "it has a finalizer",
		"{metadata: {name: a, namespace: ns, finalizers: [example.com/a], deletionTimestamp: '2026-01-01T00:00:00Z'}}": "",
	} {
		secrets := listed("", "v1", "Secret", "secrets")
		if _, exempt, err := newCatalog(t).Referrers([]Listed{secrets}, nil, nil)[0].References(object(t, text)); err != nil || exempt != want {
			t.Errorf("%s: used because %q, %v", text, exempt, err)
		}
	}
}

// TestDeclaredReferencesOfBuiltinResources: they add to what is built in, and do not replace it.
func TestDeclaredReferencesOfBuiltinResources(t *testing.T) {
	c, err := NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]*gc.ResourceLifecycle{
		"pods": referring("pods", 1, gc.LifecycleReference{To: gc.ResourceSecrets, Names: "'declared'"}),
	}
	pods := c.Referrers([]Listed{listed("", "v1", "Pod", "pods")}, users, nil)[0]
	// Only what is built in finds names in arguments. A declaration finds those in fields whose names speak of a Secret too.
	refs, _, err := pods.References(object(t, "{metadata: {name: a, namespace: ns}, spec: {containers: [{args: [argument]}]}}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"declared", "argument"} {
		if !slices.ContainsFunc(refs, func(r references.Reference) bool { return r.To&references.Secrets != 0 && r.Name == name }) {
			t.Errorf("%s is not among the references %v", name, refs)
		}
	}
}
