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
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/internal/fakecluster"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
)

// usages is a UsageReader of a cluster that the test changes.
type usages struct {
	*UsageReader
	cluster *fakecluster.Cluster
	clock   *clocktesting.FakePassiveClock
	table   atomic.Pointer[kinds.Table]
}

func newUsages(t *testing.T, table *kinds.Table, objects ...runtime.Object) *usages {
	t.Helper()
	u := &usages{cluster: fakecluster.New(objects...), clock: clocktesting.NewFakePassiveClock(testbuilders.Now)}
	u.cluster.Define(runs.GroupVersionKind, runs.Plural)
	u.cluster.Define(racks.GroupVersionKind, racks.Plural)
	u.table.Store(table)
	client, err := NewClient(u.cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	u.UsageReader = &UsageReader{Client: client, Kinds: u.table.Load, Clock: u.clock}
	return u
}

func allReferrers() *kinds.Table {
	return tableOf(kinds.Builtin(), "", nil, configMaps, secrets, pods, runs, racks)
}

// lists returns how often a resource was listed in a namespace, or without one.
func (u *usages) lists(resource, namespace string) (n int) {
	for _, r := range u.cluster.Requests(resource) {
		if r.Namespace == namespace && r.Options.FieldSelector == "" {
			n++
		}
	}
	return n
}

// TestInUse: the referrers in the namespace of an object, and those without a namespace, count.
func TestInUse(t *testing.T) {
	elsewhere := running(runs, "r", "x")
	elsewhere.SetNamespace("team-b")
	secret := func(name string, kind corev1.SecretType) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: testbuilders.Home, UID: "s"}, Type: kind}
	}
	broken := map[string]*gc.ResourceLifecycle{runs.Resource(): {
		ObjectMeta: metav1.ObjectMeta{Name: runs.Resource(), UID: "l"},
		Spec:       gc.ResourceLifecycleSpec{References: []gc.LifecycleReference{{To: gc.ResourceSecrets, Names: "object.missing"}}},
	}}
	for name, tc := range map[string]struct {
		objects  []runtime.Object
		table    *kinds.Table
		resource string
		object   string
		want     string
	}{
		"nothing":                               {nil, nil, gc.ResourceConfigMaps, "x", ""},
		"a Pod":                                 {[]runtime.Object{mounting("p", "x")}, nil, gc.ResourceConfigMaps, "x", "an object of pods refers to it"},
		"a Pod that uses another":               {[]runtime.Object{mounting("p", "y")}, nil, gc.ResourceConfigMaps, "x", ""},
		"a Pod that uses another kind":          {[]runtime.Object{mounting("p", "x")}, nil, gc.ResourceSecrets, "x", ""},
		"a custom resource":                     {[]runtime.Object{running(runs, "r", "x")}, nil, gc.ResourceSecrets, "x", "an object of runs.example.com refers to it"},
		"one in another namespace":              {[]runtime.Object{elsewhere}, nil, gc.ResourceSecrets, "x", ""},
		"one without a namespace":               {[]runtime.Object{running(racks, "r", "x")}, nil, gc.ResourceSecrets, "x", "an object of racks.example.com refers to it"},
		"one that cannot be read":               {[]runtime.Object{running(runs, "r", "y")}, tableOf(kinds.Builtin(), "", broken, runs), gc.ResourceSecrets, "x", "an object of runs.example.com may refer to it"},
		"a token":                               {[]runtime.Object{secret("x", corev1.SecretTypeServiceAccountToken)}, nil, gc.ResourceSecrets, "x", "it is the token of a ServiceAccount"},
		"another Secret":                        {[]runtime.Object{secret("x", corev1.SecretTypeOpaque)}, nil, gc.ResourceSecrets, "x", ""},
		"a ConfigMap with the name of a token":  {[]runtime.Object{secret("x", corev1.SecretTypeServiceAccountToken)}, nil, gc.ResourceConfigMaps, "x", ""},
		"a name that Kubernetes gives":          {[]runtime.Object{configMap("kube-root-ca.crt")}, nil, gc.ResourceConfigMaps, "kube-root-ca.crt", "Kubernetes creates it in every namespace"},
		"a resource that is not in the table":   {[]runtime.Object{running(runs, "r", "x")}, tableOf(kinds.Builtin(), "", nil, pods), gc.ResourceSecrets, "x", ""},
		"a token, where no Secrets are known":   {[]runtime.Object{secret("x", corev1.SecretTypeServiceAccountToken)}, tableOf(kinds.Builtin(), "", nil, pods), gc.ResourceSecrets, "x", ""},
		"many of one template, and one of none": {append(replicas(600), running(runs, "r", "x")), nil, gc.ResourceConfigMaps, "x", "an object of runs.example.com refers to it"},
	} {
		t.Run(name, func(t *testing.T) {
			table := tc.table
			if table == nil {
				table = allReferrers()
			}
			u := newUsages(t, table, tc.objects...)
			if got, err := u.InUse(t.Context(), tc.resource, testbuilders.Home, tc.object); err != nil || got != tc.want {
				t.Errorf("got %q, %v", got, err)
			}
			for _, r := range append(u.cluster.Requests("pods"), u.cluster.Requests("runs")...) {
				if r.Options.ResourceVersion != "" || r.Options.Watch {
					t.Errorf("the reading is not consistent: %+v", r.Options)
				}
			}
		})
	}
}

// replicas are Pods of one template, which take more than a page.
func replicas(n int) (out []runtime.Object) {
	for i := range n {
		p := mounting(fmt.Sprint("replica-", i), "y")
		p.UID = "" // Their names distinguish them.
		out = append(out, p)
	}
	return out
}

// TestOnePageAtATime: no page is read before the one before is done with, and the first one is small.
func TestOnePageAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []runtime.Object
		for i := range firstPage + growth*firstPage + 10 {
			objects = append(objects, running(runs, fmt.Sprint("r-", i), "x"))
		}
		u := newUsages(t, allReferrers(), objects...)
		i := slices.IndexFunc(allReferrers().Referrers, func(k *kinds.Referrer) bool { return k.Resource() == runs.Resource() })
		read := 0
		err := u.Client.EachReferring(t.Context(), allReferrers().Referrers[i], testbuilders.Home, func([]knowledge.Referring) {
			synctest.Wait()
			want := 1
			for _, listed := range []int{firstPage, firstPage + growth*firstPage} {
				if read >= listed {
					want++
				}
			}
			if got := u.lists("runs", testbuilders.Home); got != want {
				t.Errorf("%d pages were listed when %d objects were read", got, read)
			}
			read++
		})
		if err != nil || read != len(objects) {
			t.Errorf("read %d objects, %v", read, err)
		}
	})
}

// TestInUseFails: nothing is said to be unused if anything that may refer to it could not be read, and the error says what and why.
func TestInUseFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "runs"}, "", errors.New("no right"))
	page := &unstructured.UnstructuredList{}
	page.SetGroupVersionKind(runs.GroupVersion().WithKind("RunList"))
	page.SetContinue("next")
	react := func(resource string, answer func(fakecluster.Request) (runtime.Object, error)) func(*usages) {
		return func(u *usages) {
			u.cluster.React(func(r fakecluster.Request) (runtime.Object, error) {
				if r.Resource != resource {
					return nil, nil
				}
				return answer(r)
			})
		}
	}
	refuse := func(err error) func(fakecluster.Request) (runtime.Object, error) {
		return func(fakecluster.Request) (runtime.Object, error) { return nil, err }
	}
	const ofRuns, ofRacks = "the runs.example.com that may refer to it cannot be listed: ", "the racks.example.com that may refer to it cannot be listed: "
	for name, tc := range map[string]struct {
		table  *kinds.Table
		change func(*usages)
		want   string
	}{
		"forbidden":                   {nil, react("runs", refuse(forbidden)), ofRuns + "runs.example.com is forbidden: no right. Missing permission: kubectl auth can-i list runs.example.com --all-namespaces, or watch. To grant it: " + gc.ReferrersAdvice()},
		"forbidden without namespace": {nil, react("racks", refuse(forbidden)), ofRacks},
		"another error":               {nil, react("runs", refuse(errors.New("the webhook for conversion failed"))), ofRuns + "the webhook for conversion failed"},
		"a second page that is lost": {nil, react("runs", func(r fakecluster.Request) (runtime.Object, error) {
			if r.Options.Continue == "" {
				return page, nil
			}
			return nil, apierrors.NewResourceExpired("the continue parameter is too old")
		}), ofRuns + "the continue parameter is too old"},
		"gone": {nil, func(u *usages) { u.cluster.Undefine("runs") }, ofRuns + "the server could not find the requested resource"},
		"another form": {nil, react("pods", func(fakecluster.Request) (runtime.Object, error) {
			return &corev1.ConfigMapList{Items: []corev1.ConfigMap{{}}}, nil
		}), "the pods that may refer to it cannot be listed: "},
		"a group that fails":        {tableOf(kinds.Builtin(), "a group fails", nil, pods), nil, "a group fails"},
		"a table without referrers": {kinds.Builtin(), nil, kinds.Builtin().Undiscovered},
	} {
		t.Run(name, func(t *testing.T) {
			table := tc.table
			if table == nil {
				table = allReferrers()
			}
			u := newUsages(t, table)
			if tc.change != nil {
				tc.change(u)
			}
			got, err := u.InUse(t.Context(), gc.ResourceSecrets, testbuilders.Home, "x")
			if err == nil || got != "" || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
	client := serve(t, "/apis/example.com/v1/namespaces/team-a/runs", func(w http.ResponseWriter, _ *http.Request) {
		inJSON(w, http.StatusOK, `{"apiVersion":"example.com/v1","kind":"RunList","items":[[]]}`)
	})
	r := &UsageReader{
		Client: client, Kinds: func() *kinds.Table { return tableOf(kinds.Builtin(), "", nil, runs) },
		Clock: clocktesting.NewFakePassiveClock(testbuilders.Now),
	}
	if got, err := r.InUse(t.Context(), gc.ResourceSecrets, testbuilders.Home, "x"); err == nil || !strings.HasPrefix(err.Error(), ofRuns) {
		t.Errorf("an object that cannot be decoded: %q, %v", got, err)
	}
}

// TestReadingsAreShared: all orders of a namespace share one reading of it for a second, and all orders share one reading of cluster-scoped
// objects.
func TestReadingsAreShared(t *testing.T) {
	u := newUsages(t, allReferrers(), mounting("p", "used"))
	ask := func(step string, namespaces ...string) {
		t.Helper()
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				namespace := namespaces[i%len(namespaces)]
				for object, want := range map[string]string{"used": "an object of pods refers to it", "unused": ""} {
					if namespace != testbuilders.Home {
						want = ""
					}
					if got, err := u.InUse(t.Context(), gc.ResourceConfigMaps, namespace, object); err != nil || got != want {
						t.Errorf("%s: %s in %s: %q, %v", step, object, namespace, got, err)
					}
				}
			})
		}
		all.Wait()
	}
	expect := func(step string, home, other, racks int) {
		t.Helper()
		if a, b, c := u.lists("pods", testbuilders.Home), u.lists("pods", "team-b"), u.lists("racks", ""); a != home || b != other || c != racks {
			t.Errorf("%s: listed %d and %d times in namespaces, and %d times without", step, a, b, c)
		}
		if n := u.lists("pods", ""); n > 0 {
			t.Errorf("%s: Pods of all namespaces were listed", step)
		}
	}
	ask("at first", testbuilders.Home)
	expect("at first", 1, 0, 1)
	ask("of two namespaces", testbuilders.Home, "team-b")
	expect("of two namespaces", 1, 1, 1)
	u.clock.SetTime(testbuilders.Now.Add(usageFor - 1))
	ask("a little later", testbuilders.Home, "team-b")
	expect("a little later", 1, 1, 1)
	u.clock.SetTime(testbuilders.Now.Add(usageFor))
	ask("later", "team-b")
	expect("later", 1, 2, 2)
	u.clock.SetTime(testbuilders.Now)
	ask("the clock was set back", "team-b")
	expect("the clock was set back", 1, 3, 3)
	if len(u.readings) != 2 {
		t.Errorf("%d readings are kept", len(u.readings))
	}
}

// blocked has requests for a resource wait, until release is called, and returns a function that waits until one does.
func (u *usages) blocked(t *testing.T, resource string) (begun func(), release func()) {
	waiting, answer := make(chan struct{}, 100), make(chan struct{})
	release = sync.OnceFunc(func() { close(answer) })
	t.Cleanup(release)
	u.cluster.React(func(r fakecluster.Request) (runtime.Object, error) {
		if r.Resource == resource {
			waiting <- struct{}{}
			<-answer
		}
		return nil, nil
	})
	return func() { <-waiting }, release
}

type usageAnswer struct {
	by  string
	err error
}

func (u *usages) ask(ctx context.Context) <-chan usageAnswer {
	out := make(chan usageAnswer, 1)
	go func() {
		by, err := u.InUse(ctx, gc.ResourceConfigMaps, testbuilders.Home, "used")
		out <- usageAnswer{by, err}
	}()
	return out
}

// TestSlowReadings: while a reading lasts, no other one begins. Once it has ended it can be used, however long it has taken, so that slow
// readings do not make objects stay for ever. A caller that gives up does not end it for the others.
func TestSlowReadings(t *testing.T) {
	u := newUsages(t, allReferrers(), mounting("p", "used"))
	begun, release := u.blocked(t, "pods")
	ctx, cancel := context.WithCancel(t.Context())
	first := u.ask(ctx)
	begun()
	u.clock.SetTime(testbuilders.Now.Add(10 * time.Second))
	second := u.ask(t.Context())
	cancel()
	if got := <-first; !errors.Is(got.err, context.Canceled) || got.by != "" {
		t.Errorf("the caller that gave up got %+v", got)
	}
	select {
	case got := <-second:
		t.Errorf("before the reading has ended: %+v", got)
	default:
	}
	release()
	want := usageAnswer{by: "an object of pods refers to it"}
	if got := <-second; got != want {
		t.Errorf("the other caller got %+v", got)
	}
	u.clock.SetTime(testbuilders.Now.Add(11*time.Second - 1))
	if got := <-u.ask(t.Context()); got != want || u.lists("pods", testbuilders.Home) != 1 {
		t.Errorf("after it has ended: %+v, listed %d times", got, u.lists("pods", testbuilders.Home))
	}
	u.clock.SetTime(testbuilders.Now.Add(11 * time.Second))
	if got := <-u.ask(t.Context()); got != want || u.lists("pods", testbuilders.Home) != 2 {
		t.Errorf("after a second: %+v, listed %d times", got, u.lists("pods", testbuilders.Home))
	}
}

// TestSlowReadingsEnd: if both readings take longer than an order lasts, the next order can use both.
func TestSlowReadingsEnd(t *testing.T) {
	u := newUsages(t, allReferrers())
	u.cluster.React(func(r fakecluster.Request) (runtime.Object, error) {
		if r.Resource == "pods" || r.Resource == "racks" {
			u.lock.Lock() // so that no step is lost
			defer u.lock.Unlock()
			u.clock.SetTime(u.clock.Now().Add(2 * usageFor))
		}
		return nil, nil
	})
	for range 2 {
		if got := <-u.ask(t.Context()); got != (usageAnswer{}) {
			t.Errorf("got %+v", got)
		}
	}
	if a, b := u.lists("pods", testbuilders.Home), u.lists("racks", ""); a != 1 || b != 1 {
		t.Errorf("listed %d times in the namespace, and %d times without", a, b)
	}
}

// TestFailedReadings: an error is for all who ask within a second, so that nobody asks again and again.
func TestFailedReadings(t *testing.T) {
	u := newUsages(t, allReferrers(), mounting("p", "used"))
	var failing atomic.Bool
	failing.Store(true)
	u.cluster.React(func(r fakecluster.Request) (runtime.Object, error) {
		if r.Resource == "runs" && failing.Load() {
			return nil, errors.New("not now")
		}
		return nil, nil
	})
	for _, answers := range []<-chan usageAnswer{u.ask(t.Context()), u.ask(t.Context())} {
		if got := <-answers; got.err == nil || !strings.Contains(got.err.Error(), "not now") {
			t.Errorf("got %+v", got)
		}
	}
	failing.Store(false)
	if got := <-u.ask(t.Context()); got.err == nil || u.lists("runs", testbuilders.Home) != 1 {
		t.Errorf("right after an error: %+v, listed %d times", got, u.lists("runs", testbuilders.Home))
	}
	u.clock.SetTime(testbuilders.Now.Add(usageFor))
	if got := <-u.ask(t.Context()); got.err != nil || got.by == "" {
		t.Errorf("a second after an error: %+v", got)
	}
}

// TestReadingsUseTheNewestTable: a resource that is served since the last reading is read in the next one.
func TestReadingsUseTheNewestTable(t *testing.T) {
	u := newUsages(t, tableOf(kinds.Builtin(), "", nil, pods), running(runs, "r", "used"))
	for step, want := range []string{"", "an object of runs.example.com refers to it", ""} {
		u.clock.SetTime(testbuilders.Now.Add(time.Duration(step) * usageFor))
		if got := <-u.ask(t.Context()); got != (usageAnswer{by: want}) {
			t.Errorf("step %d: %+v", step, got)
		}
		u.table.Store([]*kinds.Table{allReferrers(), tableOf(kinds.Builtin(), "", nil, pods), nil}[step])
	}
}

// TestCanceledBeforeTheReading: the caller is told, and the reading that it began ends.
func TestCanceledBeforeTheReading(t *testing.T) {
	u := newUsages(t, allReferrers())
	ctx, cancel := context.WithCancel(t.Context())
	begun, release := u.blocked(t, "pods")
	answer := u.ask(ctx)
	begun()
	cancel()
	if got := <-answer; !errors.Is(got.err, context.Canceled) {
		t.Errorf("got %+v", got)
	}
	release()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		u.lock.Lock()
		defer u.lock.Unlock()
		return !u.readings[testbuilders.Home].ended.IsZero(), nil
	})
	if err != nil {
		t.Error("the reading does not end")
	}
}
