// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/internal/fakecluster"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

var (
	configMaps = listed("", "v1", "ConfigMap", "configmaps")
	secrets    = listed("", "v1", "Secret", "secrets")
	pods       = listed("", "v1", "Pod", "pods")
	runs       = listed("example.com", "v1", "Run", "runs")
	racks      = kinds.Listed{Served: listed("example.com", "v1", "Rack", "racks").Served}
)

func listed(group, version, kind, plural string) kinds.Listed {
	return kinds.Listed{Served: kinds.Served{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Plural: plural,
	}, Namespaced: true}
}

// tableOf is the table of a cluster that serves ConfigMaps, and in which these resources may refer to others.
func tableOf(before *kinds.Table, undiscovered string, users map[string]*gc.ResourceLifecycle, all ...kinds.Listed) *kinds.Table {
	c, err := kinds.NewCatalog()
	if err != nil {
		panic(err)
	}
	return c.Table([]kinds.Served{configMaps.Served}, users, before).WithReferrers(c.Referrers(all, users, before.Referrers), undiscovered)
}

// serve replaces the table of the tracker.
func (o *observed) serve(undiscovered string, users map[string]*gc.ResourceLifecycle, all ...kinds.Listed) {
	o.Tracker.SetKinds(tableOf(o.Tracker.Kinds(), undiscovered, users, all...), o.clock.Now())
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: testbuilders.Home, UID: types.UID("uid-" + name), ResourceVersion: "1", Labels: map[string]string{"app": "web"},
		CreationTimestamp: metav1.NewTime(testbuilders.Now),
	}}
}

// mounting is a Pod that uses a ConfigMap.
func mounting(name, configMap string) *corev1.Pod {
	pod := testbuilders.Pod(name).Obj()
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap},
	}}}}
	return pod
}

// running is a Run, or an object of another custom resource, that names something in its spec and its UID.
func running(l kinds.Listed, name, named string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"uses": named}}}
	u.SetGroupVersionKind(l.GroupVersionKind)
	u.SetName(name)
	u.SetUID(types.UID("uid-" + name))
	u.SetResourceVersion("1")
	if l.Namespaced {
		u.SetNamespace(testbuilders.Home)
	}
	return u
}

// says returns the reason and the message for a ConfigMap; empty if it is not known.
func (o *observed) says(name string) (reason, message string) {
	page, err := o.Tracker.Candidates(o.Context(), gc.CandidateQuery{
		Namespace: testbuilders.Home, Resources: sets.New(gc.ResourceConfigMaps), Labels: labels.Everything(), Fields: fields.Everything(), All: true,
	})
	if err != nil {
		o.Fatal(err)
	}
	for _, c := range page.Items {
		if c.Status.Object.Name == name {
			return c.Status.Reason, c.Status.Message
		}
	}
	return "", ""
}

// becomes waits until a ConfigMap has a reason, and a message with some text.
func (o *observed) becomes(name, reason, text string) {
	o.Helper()
	var got, message string
	o.until(name+" is "+reason+" because of "+text, func() bool {
		got, message = o.says(name)
		return got == reason && strings.Contains(message, text)
	})
}

// unusedPolicy deletes ConfigMaps as soon as they are unused.
func unusedPolicy() *testbuilders.PolicyBuilder {
	return testbuilders.Policy("p").Rules(testbuilders.Rule("unused", "0s").For(gc.ResourceConfigMaps).Labelled("app", "web").AfterUnused())
}

// newReferred is an observer of a cluster with ConfigMaps, of which "plain" is never used.
func newReferred(t *testing.T, objects ...runtime.Object) *observed {
	for _, name := range []string{"plain", "mounted", "named"} {
		objects = append(objects, configMap(name))
	}
	cluster := fakecluster.New(objects...)
	cluster.Define(runs.GroupVersionKind, runs.Plural)
	cluster.Define(racks.GroupVersionKind, racks.Plural)
	return newObservedOf(t, cluster)
}

func TestObservesReferrers(t *testing.T) {
	for name, pagesOnly := range map[string]bool{"lists are streamed": false, "lists come in pages": true} {
		t.Run(name, func(t *testing.T) { testObservesReferrers(t, pagesOnly) })
	}
}

func testObservesReferrers(t *testing.T, pagesOnly bool) {
	o := newReferred(t, mounting("a", "mounted"), running(racks, "r", testbuilders.Home+"/named"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: testbuilders.Home}, Type: "helm.sh/release.v1"})
	o.cluster.PagesOnly = pagesOnly
	o.serve("", nil, configMaps, secrets, pods, runs, racks)
	o.run()
	watching := func() (n int) {
		for _, resource := range []string{"configmaps", "secrets", "pods", "runs", "racks"} {
			n += o.cluster.Watches(resource)
		}
		return n
	}
	if watching() > 0 {
		t.Error("referrers are watched, but no rule needs them")
	}
	o.create(unusedPolicy())
	o.becomes("plain", "Expired", "")
	o.becomes("mounted", "InUse", "pods/a refers to it")
	o.becomes("named", "InUse", "an object of racks.example.com outside the namespace refers to it")

	o.cluster.Set(mounting("b", "plain"))
	o.becomes("plain", "InUse", "pods/b refers to it")
	o.cluster.Set(mounting("b", "another"))
	o.becomes("plain", "Expired", "")
	o.cluster.Set(running(runs, "r", "plain"))
	o.becomes("plain", "InUse", "an object of runs.example.com refers to it")
	o.cluster.Delete(running(runs, "r", ""))
	o.cluster.Delete(mounting("a", ""))
	o.becomes("plain", "Expired", "")
	o.becomes("mounted", "Expired", "")
	owned := configMap("plain")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "mounted", UID: "uid-mounted"}}
	o.cluster.Set(owned)
	o.becomes("plain", "InUse", "it has an owner")
	o.becomes("mounted", "InUse", "configmaps/plain refers to it")

	o.delete("p")
	o.until("nothing is watched any more", func() bool { return watching() == 0 })
	o.cluster.Delete(running(racks, "r", ""))
	o.create(unusedPolicy())
	o.becomes("named", "Expired", "")
	o.becomes("mounted", "InUse", "configmaps/plain refers to it")
}

// TestReferrersThatCannotBeListed: nothing is unused while any resource that may refer to it cannot be listed, and the message says how to
// change that.
func TestReferrersThatCannotBeListed(t *testing.T) {
	o := newReferred(t, mounting("a", "mounted"))
	allow := o.forbid("runs", apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "runs"}, "", errors.New("no right to list runs")))
	o.serve("", nil, configMaps, pods, runs)
	o.run()
	o.create(unusedPolicy())
	o.becomes("plain", "ReferrersUnknown", "It is not known whether anything refers to it: runs.example.com cannot be observed: "+
		`runs.example.com is forbidden: no right to list runs. Missing permission: kubectl auth can-i list runs.example.com --all-namespaces, or watch. `+
		"To grant it: kubectl apply -f artifacts/optional/referrers.yaml, for everything that may refer to ConfigMaps and Secrets "+
		"(it takes effect once artifacts/optional/more-resources.yaml is applied)")
	o.becomes("mounted", "InUse", "pods/a refers to it")
	allow()
	o.becomes("plain", "Expired", "")
}

// TestReferrersInPages: what the first pages of a list refer to is in use at once, but a list that fails later does not say what is unused.
func TestReferrersInPages(t *testing.T) {
	o := newReferred(t)
	o.cluster.PagesOnly = true
	var complete atomic.Bool
	page := func(next string, of *unstructured.Unstructured) *unstructured.UnstructuredList {
		list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*of}}
		list.SetGroupVersionKind(runs.GroupVersion().WithKind("RunList"))
		list.SetContinue(next)
		list.SetResourceVersion("1")
		return list
	}
	o.cluster.React(func(r fakecluster.Request) (runtime.Object, error) {
		switch {
		case r.Resource != "runs", r.Options.Watch:
			return nil, nil
		case r.Options.Continue == "":
			return page("next", running(runs, "r", "named")), nil
		case complete.Load():
			return page("", running(runs, "s", "mounted")), nil
		}
		return nil, errors.New("the second page is lost")
	})
	o.serve("", nil, configMaps, runs)
	o.run()
	o.create(unusedPolicy())
	o.becomes("plain", "ReferrersUnknown", "runs.example.com cannot be observed: the second page is lost")
	o.becomes("named", "InUse", "an object of runs.example.com refers to it")
	first := func() (n int) {
		for _, r := range o.cluster.Requests("runs") {
			if r.Options.Continue == "" {
				n++
			}
		}
		return n
	}
	n := first()
	o.until("a first page has come again", func() bool {
		if reason, message := o.says("plain"); reason != "ReferrersUnknown" {
			t.Fatalf("it is %s: %s", reason, message)
		}
		return first() > n
	})
	complete.Store(true)
	o.becomes("plain", "Expired", "")
	o.becomes("named", "InUse", "an object of runs.example.com refers to it")
	o.becomes("mounted", "InUse", "an object of runs.example.com refers to it")
}

// TestReferrersOfAnotherVersion: a resource goes and comes back in another version.
func TestReferrersOfAnotherVersion(t *testing.T) {
	later := listed("example.com", "v2", "Run", "runs")
	o := newReferred(t, running(runs, "r", "named"))
	o.serve("", nil, configMaps, runs)
	o.run()
	o.create(unusedPolicy())
	o.becomes("plain", "Expired", "")
	o.becomes("named", "InUse", "an object of runs.example.com refers to it")

	o.cluster.Undefine("runs")
	o.becomes("plain", "ReferrersUnknown", "runs.example.com cannot be observed: the server could not find the requested resource")
	o.becomes("named", "InUse", "an object of runs.example.com refers to it") // as far as is known
	o.serve("", nil, configMaps)
	o.becomes("plain", "Expired", "")
	o.becomes("named", "Expired", "")

	o.cluster.Define(later.GroupVersionKind, "runs")
	o.cluster.Set(running(later, "s", "plain"))
	o.serve("", nil, configMaps, later)
	o.becomes("plain", "InUse", "an object of runs.example.com refers to it")
	o.becomes("named", "Expired", "")
	requests := o.cluster.Requests("runs")
	if last := requests[len(requests)-1]; last.Version() != "example.com/v2" {
		t.Errorf("read in %s", last.Version())
	}
}

// TestReplacedReferrers: if a resource gets another version or reader, what its objects referred to counts until they are listed again, and
// meanwhile it is not known that nothing else is referred to.
func TestReplacedReferrers(t *testing.T) {
	o := newReferred(t, running(runs, "r", "named"))
	o.serve("", nil, configMaps, runs)
	o.run()
	o.create(unusedPolicy())
	o.becomes("plain", "Expired", "")
	o.becomes("named", "InUse", "an object of runs.example.com refers to it")

	answer := make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(release)
	o.cluster.React(func(r fakecluster.Request) (runtime.Object, error) {
		if r.Resource == "runs" {
			<-answer
		}
		return nil, nil
	})
	l := &gc.ResourceLifecycle{
		ObjectMeta: metav1.ObjectMeta{Name: runs.Resource(), UID: "l", Generation: 1},
		Spec:       gc.ResourceLifecycleSpec{References: []gc.LifecycleReference{{To: gc.ResourceConfigMaps, Names: "'plain'"}}},
	}
	o.serve("", map[string]*gc.ResourceLifecycle{l.Name: l}, configMaps, runs)
	o.becomes("plain", "ReferrersUnknown", "Winnow has not listed all runs.example.com yet")
	o.becomes("named", "InUse", "an object of runs.example.com refers to it")
	release()
	o.becomes("plain", "InUse", "an object of runs.example.com refers to it")
	o.becomes("named", "Expired", "")
}

// TestUndiscoveredReferrers: while it is not known which resources there are, nothing is unused, and the tracker is told so again from time
// to time: other changes must not wait for it.
func TestUndiscoveredReferrers(t *testing.T) {
	for name, tc := range map[string]struct{ undiscovered, want string }{
		"a group fails":        {"the cluster does not say which resources a.b/v1 has: stale", "the cluster does not say which resources a.b/v1 has: stale"},
		"there is no such yet": {"-", "Winnow has not found out yet which resources the cluster serves"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newReferred(t, mounting("a", "mounted"), testbuilders.Pod("old").Succeeded(testbuilders.Now).Obj())
			if o.serve(tc.undiscovered, nil, configMaps, pods); tc.undiscovered == "-" {
				k, err := o.Tracker.Kinds().For(gc.ResourceConfigMaps)
				if err != nil {
					t.Fatal(err)
				}
				o.Tracker.SetKinds(kinds.Builtin().With(k), testbuilders.Now)
			}
			o.run()
			o.create(unusedPolicy())
			o.becomes("plain", "ReferrersUnknown", tc.want)
			o.create(testbuilders.Policy("q").Rules(testbuilders.Rule("r", "0s").For(gc.ResourcePods)))
			o.until("the Pod is held", func() bool { return o.due("q") == 1 })
			for range 3 {
				o.until("the observer waits", o.clock.HasWaiters)
				o.clock.Step(undiscoveredEvery)
			}
			o.until("the Pod is no longer held", func() bool {
				for _, r := range o.Tracker.Reports(testbuilders.Home) {
					if r.Stored.Name == "q" {
						return r.Due == 1 && r.Held == 0
					}
				}
				return false
			})
			o.serve("", nil, configMaps, pods)
			o.becomes("plain", "Expired", "")
			if tc.undiscovered != "-" {
				o.becomes("mounted", "InUse", "pods/a refers to it")
			}
		})
	}
}

// TestReferrerCalls: which answers to the calls of a reflector say that referrers can be observed, or cannot.
func TestReferrerCalls(t *testing.T) {
	refused := errors.New("refused")
	initial := metav1.ListOptions{SendInitialEvents: new(true)}
	for name, tc := range map[string]struct {
		err     error
		watch   bool
		options metav1.ListOptions
		want    []string
	}{
		"a page of a list":             {},
		"a list that fails":            {err: refused, want: []string{"refused"}},
		"a list that is streamed":      {watch: true, options: initial},
		"a stream that fails":          {watch: true, options: initial, err: refused, want: []string{"refused"}},
		"a watch that goes on":         {watch: true, options: metav1.ListOptions{ResourceVersion: "7"}, want: []string{"<nil>"}},
		"a watch that cannot go on":    {watch: true, options: metav1.ListOptions{ResourceVersion: "7"}, err: refused, want: []string{"refused"}},
		"one that says it asks for no": {watch: true, options: metav1.ListOptions{SendInitialEvents: new(false)}, want: []string{"<nil>"}},
	} {
		var got []string
		lw := newReferrersListWatch(
			func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, tc.err },
			func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return watch.NewEmptyWatch(), tc.err
			},
			func(_ context.Context, err error) { got = append(got, fmt.Sprint(err)) })
		var err error
		if tc.watch {
			_, err = lw.WatchWithContext(t.Context(), tc.options)
		} else {
			_, err = lw.ListWithContext(t.Context(), tc.options)
		}
		if !errors.Is(err, tc.err) || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, reported %q, want %q", name, err, got, tc.want)
		}
	}
}

// TestReportingErrors: an error that ends a watch is reported before the reflector gets it. Everything is passed on, and nothing is left if the
// reflector stops the watch without reading all of it.
func TestReportingErrors(t *testing.T) {
	inner := watch.NewFakeWithChanSize(3, false)
	reported := make(chan error, 1)
	w := reportingErrors(inner, func(err error) { reported <- err })
	inner.Add(configMap("a"))
	inner.Error(&metav1.Status{Status: metav1.StatusFailure, Message: "too old", Reason: metav1.StatusReasonExpired, Code: http.StatusGone})
	inner.Add(configMap("b"))
	if e := <-w.ResultChan(); e.Type != watch.Added {
		t.Errorf("got %v", e)
	}
	e := <-w.ResultChan()
	select {
	case err := <-reported:
		if e.Type != watch.Error || !apierrors.IsResourceExpired(err) {
			t.Errorf("got %v, reported %v", e, err)
		}
	default:
		t.Errorf("%v is not reported", e)
	}
	w.Stop()
	w.Stop()
	for range w.ResultChan() { // It ends.
	}

	inner = watch.NewFake()
	w = reportingErrors(inner, func(err error) { t.Error(err) })
	inner.Stop()
	if e, ok := <-w.ResultChan(); ok {
		t.Errorf("a watch that has ended has %v", e)
	}
}

// TestStoppedReferrersAreSilent: a call of a reflector may end after the reflector has stopped, and says nothing about the one that follows.
func TestStoppedReferrersAreSilent(t *testing.T) {
	log := &referrerLog{}
	o := New(Config{Tracker: log, Clock: clocktesting.NewFakeClock(testbuilders.Now)})
	k := tableOf(kinds.Builtin(), "", nil, configMaps).Referrers[0]
	r := &reflection{}
	r.ctx, r.cancel = context.WithCancel(t.Context())
	o.referrers.running[k] = r
	report := o.reportReferrer(r, k)
	report(t.Context(), nil)
	o.stopReferrers(func(*kinds.Referrer) bool { return true })
	report(t.Context(), errors.New("late"))
	if want := []string{"configmaps: <nil>", "exempt configmaps: <nil>"}; !slices.Equal(log.log, want) {
		t.Errorf("the tracker was told %q", log.log)
	}
	if len(o.referrers.running) > 0 {
		t.Error("the reflector is not forgotten")
	}
}

// TestUndecodableReferrers: if an object cannot be decoded, the watch ends with an error, and that is reported.
func TestUndecodableReferrers(t *testing.T) {
	k := tableOf(kinds.Builtin(), "", nil, runs).Referrers[0]
	client := serve(t, "/apis/example.com/v1/runs", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			inJSON(w, http.StatusOK, `{"apiVersion":"example.com/v1","kind":"RunList","items":[[]]}`)
			return
		}
		inJSON(w, http.StatusOK, `{"type":"ADDED","object":`+run("a", "")+"}\n"+`{"type":"ADDED","object":[]}`+"\n")
	})
	var reported []string
	lw := newReferrersListWatch(client.Lister(decode.ReferrerReading(k), ""), client.Watcher(decode.ReferrerReading(k)), func(_ context.Context, err error) {
		reported = append(reported, err.Error())
	})
	if list, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err == nil || len(reported) != 1 {
		t.Errorf("a list: %v, reported %q", list, reported)
	}
	w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			break
		}
	}
	if len(reported) != 2 || !strings.Contains(reported[1], "unable to decode an event") {
		t.Errorf("reported %q", reported)
	}
}

// TestReferringOf: what objects refer to, as referrers of each source.
func TestReferringOf(t *testing.T) {
	table := tableOf(kinds.Builtin(), "", nil, configMaps, pods, runs, secrets)
	describe := func(k *kinds.Referrer, u *unstructured.Unstructured) string {
		var out []string
		all, _ := decode.ReferringOf(k, u)
		for _, r := range all {
			out = append(out, fmt.Sprintf("%s: %s %s/%s %d", r.Source, r.UID, r.Namespace, r.Name, len(r.Keys)))
		}
		return strings.Join(out, ", ")
	}
	object := func(name string, uid types.UID) *unstructured.Unstructured {
		u := running(runs, name, "x")
		u.SetUID(uid)
		return u
	}
	for _, tc := range []struct {
		of     int
		object *unstructured.Unstructured
		want   string
	}{
		{0, object("a", "u"), "configmaps: u team-a/a 0, exempt configmaps: u team-a/a 0"},
		{0, object("kube-root-ca.crt", "u"), "configmaps: u team-a/kube-root-ca.crt 0, exempt configmaps: u team-a/Kubernetes creates it in every namespace 1"},
		{1, object("a", "u"), "pods: u team-a/a 0"},
		{2, object("a", "u"), "runs.example.com: u team-a/a 3"}, // x, a, and the key uses
		{2, object("a", ""), "runs.example.com: team-a/a team-a/a 3"},
		{2, object("b", ""), "runs.example.com: team-a/b team-a/b 3"},
		{4, object("a", "u"), "exempt secrets with " + table.Referrers[4].FieldSelector + ": u team-a/" + table.Referrers[4].Why + " 1"},
	} {
		if got := describe(table.Referrers[tc.of], tc.object); got != tc.want {
			t.Errorf("%s: got %s, want %s", table.Referrers[tc.of].Resource(), got, tc.want)
		}
	}
}

// pages notes how many objects the tracker got at a time.
type pages struct {
	*tracker.Tracker
	most atomic.Int64
}

func (p *pages) SetReferring(page []knowledge.Referring, now time.Time) {
	p.most.Store(max(p.most.Load(), int64(len(page))))
	p.Tracker.SetReferring(page, now)
}

// TestReferrersOneByOne: what an object refers to is not kept until others were read: each may have many names.
func TestReferrersOneByOne(t *testing.T) {
	for name, pagesOnly := range map[string]bool{"lists are streamed": false, "lists come in pages": true} {
		t.Run(name, func(t *testing.T) {
			o := newReferred(t, mounting("a", "mounted"), mounting("b", "mounted"), mounting("c", "mounted"))
			o.cluster.PagesOnly = pagesOnly
			p := &pages{Tracker: o.Tracker}
			o.Observer.Tracker = p
			o.serve("", nil, pods)
			o.run()
			o.create(unusedPolicy())
			o.becomes("mounted", "InUse", "and others refer to it")
			if most := p.most.Load(); most != 1 {
				t.Errorf("%d objects at once", most)
			}
		})
	}
}
