// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/apiserver"
	"github.com/winnow-dev/winnow/pkg/registry/gc/cleanuppolicy"
)

// requestLog notes the requests that reach the cluster's API, with what was answered to them.
type requestLog struct {
	mu   sync.Mutex
	sent []string
}

// host is a connection to the cluster whose requests are noted.
func (l *requestLog) host(t *testing.T, config *clientrest.Config) *Host {
	t.Helper()
	config = clientrest.CopyConfig(config)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := rt.RoundTrip(r)
			if err == nil && !r.URL.Query().Has("limit") { // A registry counts its objects from time to time.
				l.mu.Lock()
				defer l.mu.Unlock()
				l.sent = append(l.sent, fmt.Sprint(r.Method, " ", response.StatusCode))
			}
			return response, err
		})
	})
	host, err := NewHost(config, "ns")
	if err != nil {
		t.Fatal(err)
	}
	return host
}

type roundTripper func(*http.Request) (*http.Response, error)

func (rt roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return rt(r) }

// expect checks the requests since the last call.
func (l *requestLog) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.sent, want) {
		t.Errorf("%s: sent %q, want %q", what, l.sent, want)
	}
	l.sent = nil
}

// TestRequestsOfUpdates: an update that follows a write of the same process is one request, and whoever has written in between is read.
func TestRequestsOfUpdates(t *testing.T) {
	other := newTestStore(t) // of another replica
	var log requestLog
	s := newStore(log.host(t, env.config), podCodec(), pods, "Pod", "/pods/", true, newPod)
	count := func(pod *example.Pod) { pod.Generation++ }

	mustCreate(t, s, podNamed("a"))
	log.expect(t, "create", "POST 201")
	mustUpdate(t, s, "a", count)
	log.expect(t, "the first update", "PUT 200")
	mustUpdate(t, s, "a", count)
	log.expect(t, "the second update", "PUT 200")
	mustUpdate(t, s, "a", func(*example.Pod) {})
	log.expect(t, "an update that changes nothing", "GET 200")

	mustUpdate(t, other, "a", func(pod *example.Pod) { pod.Spec.NodeName = "theirs" })
	updated := mustUpdate(t, s, "a", count)
	log.expect(t, "an update after somebody else's", "PUT 409", "GET 200", "PUT 200")
	if updated.Spec.NodeName != "theirs" || updated.Generation != 4 {
		t.Errorf("got %+v", updated)
	}
	mustUpdate(t, s, "a", count)
	log.expect(t, "the update after that", "PUT 200")

	mustUpdate(t, s, "a", func(pod *example.Pod) { pod.Annotations = map[string]string{"a": strings.Repeat("x", rememberedBytes)} })
	log.expect(t, "an update that makes it large", "PUT 200")
	mustUpdate(t, s, "a", count)
	log.expect(t, "an update of a large object", "GET 200", "PUT 200")

	mustCreate(t, s, podNamed("b"))
	mustUpdate(t, other, "b", count)
	corrupt(t, other, "b")
	log.expect(t, "create", "POST 201")
	if err := update(t.Context(), s, "b", &example.Pod{}, count); err == nil {
		t.Error("what cannot be decoded was overwritten")
	}
	log.expect(t, "an update of what cannot be decoded any more", "PUT 409", "GET 200")

	mustCreate(t, s, podNamed("c"))
	log.expect(t, "create", "POST 201")
	env.purge(t, pods)
	if err := update(t.Context(), s, "c", &example.Pod{}, count); err == nil {
		t.Error("what is gone was updated")
	}
	log.expect(t, "an update of what is gone", "PUT 404", "GET 404")
}

// uncached makes stores without a watch cache, whose own requests would be counted too.
type uncached struct{ *optionsGetter }

func (u uncached) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := u.optionsGetter.GetRESTOptions(resource, example)
	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		newFunc, _ func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		s, err := u.store(config, prefix, key, newFunc)
		return s, func() {}, err
	}
	return options, err
}

// policyRegistry has the policies of namespaces, and their status, as Winnow serves them.
func policyRegistry(t *testing.T, host *Host) (policies servedKind, status rest.Updater) {
	t.Helper()
	getter := host.RESTOptionsGetter(apiserver.StorageCodec(), v1alpha1.SchemeGroupVersion, gc.MarkUnreadable)
	served, err := cleanuppolicy.NewStorage(cleanuppolicy.Config{
		Scheme: apiserver.Scheme, Options: uncached{getter.(*optionsGetter)}, Clock: clock.RealClock{},
	}, -1)
	if err != nil {
		t.Fatal(err)
	}
	ttl := gc.TTL("1h")
	object := func(m metav1.ObjectMeta) runtime.Object {
		return &gc.CleanupPolicy{ObjectMeta: m, Spec: gc.CleanupPolicySpec{
			Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationIgnore, TTLAfterFinished: &ttl,
		}}
	}
	return servedKind{served.Policies.Store, "cleanuppolicies", "default", object}, served.Status
}

// changed is an update that, as a patch without a resourceVersion does, starts from whatever is there.
func changed(change func(*gc.CleanupPolicy)) rest.UpdatedObjectInfo {
	return rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		p := old.DeepCopyObject().(*gc.CleanupPolicy)
		change(p)
		return p, nil
	})
}

// testStatusWrites counts the requests for a status, and sees that nothing else of the policy changes.
func testStatusWrites(t *testing.T, winnow *clientrest.Config) {
	var log requestLog
	ours, status := policyRegistry(t, log.host(t, winnow))
	host, err := NewHost(winnow, "ns")
	if err != nil {
		t.Fatal(err)
	}
	theirs, _ := policyRegistry(t, host)
	write := func(deleted int64) (*gc.CleanupPolicy, error) {
		object, _, err := status.Update(ours.as(t, "patch", "winnow"), "p", changed(func(p *gc.CleanupPolicy) { p.Status.Deleted = deleted }),
			nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
		p, _ := object.(*gc.CleanupPolicy)
		return p, err
	}
	expect := func(what string, deleted int64, ttl gc.TTL, generation int64, requests ...string) {
		t.Helper()
		p, err := write(deleted)
		if err != nil {
			t.Fatal(err)
		}
		if p.Status.Deleted != deleted || *p.Spec.TTLAfterFinished != ttl || p.Generation != generation || p.Labels["is"] != "p" {
			t.Errorf("%s: the policy is %+v", what, p)
		}
		log.expect(t, what, requests...)
	}
	defer theirs.deleteAll(t)

	ours.create(t, "p")
	log.expect(t, "create", "POST 201")
	for n := range int64(3) {
		expect("a status", n+1, "1h", 1, "PUT 200")
	}

	longer := gc.TTL("2h")
	if _, _, err := theirs.registry.Update(theirs.as(t, "patch", "alice"), "p", changed(func(p *gc.CleanupPolicy) { p.Spec.TTLAfterFinished = &longer }),
		nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("a status after a change of the spec", 4, "2h", 2, "PUT 409", "GET 200", "PUT 200")

	theirs.write(t, "p", func(payload string) string { return strings.Replace(payload, `"spec":{`, `"spec":{"new":1,`, 1) })
	if _, err := write(5); !apierrors.IsInvalid(err) {
		t.Errorf("a status of a policy that a newer version wrote: %v", err)
	}
	log.expect(t, "a status of a policy that a newer version wrote", "PUT 409", "GET 200")
	theirs.expectUnreadable(t, "p", `unknown field "spec.new"`)
}
