// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	componentbaseconfig "k8s.io/component-base/config"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/observe/rights"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
	"github.com/winnow-dev/winnow/pkg/controller/write/deleter"
	"github.com/winnow-dev/winnow/pkg/controller/write/status"
	"github.com/winnow-dev/winnow/pkg/serverdate"
)

const (
	policiesPath        = "/apis/gc.winnow.dev/v1alpha1/cleanuppolicies"
	lifecyclesPath      = "/apis/gc.winnow.dev/v1alpha1/resourcelifecycles"
	clusterPoliciesPath = "/apis/gc.winnow.dev/v1alpha1/clustercleanuppolicies"
	namespacesPath      = "/api/v1/namespaces"
	leasePath           = "/apis/coordination.k8s.io/v1/namespaces/winnow-system/leases/winnow"
	jobsPath            = "/apis/batch/v1/namespaces/team-a/jobs/"
	instance            = "replica-1"
)

// server is an API server with one policy, one namespace, a Lease and Jobs.
type server struct {
	*testing.T
	time *clocktesting.FakeClock

	mu sync.Mutex
	// generation is the generation of policy p. The resource versions of lists have as many digits.
	generation int64
	holder     *string // of the Lease
	renewed    *metav1.MicroTime
	jobs       map[string]*batchv1.Job
	// before has functions that are called before a request is answered, by its method and path, or only by its method. If a function returns
	// a code, that is the answer.
	before  map[string]func() int
	seen    []string             // requests
	deletes map[string]time.Time // when each began
}

func newServer(t *testing.T) (*server, *rest.Config) {
	holder := instance
	s := &server{
		T: t, time: clocktesting.NewFakeClock(testbuilders.Now), generation: 1, holder: &holder,
		jobs: map[string]*batchv1.Job{}, before: map[string]func() int{}, deletes: map[string]time.Time{},
	}
	endpoint := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(endpoint.Close)
	return s, &rest.Config{Host: endpoint.URL, QPS: -1}
}

// do calls change with the lock.
func (s *server) do(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// locked returns a condition that is evaluated with the lock.
func (s *server) locked(condition func() bool) func() bool {
	return func() (ok bool) {
		s.do(func() { ok = condition() })
		return ok
	}
}

// on calls do before requests are answered.
func (s *server) on(request string, do func() int) { s.do(func() { s.before[request] = do }) }

// requests counts the requests that begin with prefix.
func (s *server) requests(prefix string) (n int) {
	s.do(func() {
		for _, r := range s.seen {
			if strings.HasPrefix(r, prefix) {
				n++
			}
		}
	})
	return n
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	request := r.Method + " " + r.URL.Path
	var before func() int
	s.do(func() {
		s.seen = append(s.seen, request)
		if r.Method == http.MethodDelete {
			s.deletes[path.Base(r.URL.Path)] = s.time.Now()
		}
		if before = s.before[request]; before == nil {
			before = s.before[r.Method]
		}
	})
	var object any
	s.do(func() { object = s.answer(r) })
	code := http.StatusOK
	if object == nil {
		code = http.StatusNotFound
	}
	if before != nil { // The answer is from before this call.
		code = max(code, before())
	}
	if code != http.StatusOK {
		object = metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure,
			Code:     int32(code),
			Reason:   reasons[code],
		}
	}
	w.Header().Set("Date", s.time.Now().UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		s.Error(err)
	}
}

var reasons = map[int]metav1.StatusReason{
	http.StatusNotFound: metav1.StatusReasonNotFound,
	http.StatusConflict: metav1.StatusReasonConflict,
}

func (s *server) answer(r *http.Request) any {
	switch r.URL.Path {
	case policiesPath:
		return s.list(metav1.ObjectMeta{Namespace: testbuilders.Home, Name: "p", UID: "uid-p", Generation: s.generation})
	case clusterPoliciesPath:
		return s.list()
	case lifecyclesPath:
		return s.list()
	case namespacesPath:
		return s.list(testbuilders.Namespace(testbuilders.Home, "1").ObjectMeta)
	case leasePath:
		return &coordinationv1.Lease{
			TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
			Spec:     coordinationv1.LeaseSpec{HolderIdentity: s.holder, RenewTime: s.renewed},
		}
	}
	name, isJob := strings.CutPrefix(r.URL.Path, jobsPath)
	if job := s.jobs[name]; isJob && job != nil {
		if r.Method == http.MethodDelete {
			delete(s.jobs, name)
			return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
		}
		return job
	}
	return nil
}

// list returns a list of metadata, at a version that changes with the policy.
func (s *server) list(items ...metav1.ObjectMeta) any {
	out := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	out.ResourceVersion = version(s.generation)
	for _, m := range items {
		out.Items = append(out.Items, metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: m,
		})
	}
	return out
}

func version(generation int64) string { return strings.Repeat("1", int(generation)) }

// world is a controller and an API server.
type world struct {
	*testing.T
	*Controller
	*server
	tracker *tracker.Tracker
	reader  *reader
}

// newWorld returns a world with a policy that deletes every finished Job.
func newWorld(t *testing.T) *world {
	s, config := newServer(t)
	cluster, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	tr := tracker.New(memory.Config{HoldAbove: -1, HoldAboveTotal: -1}, nil)
	tr.SetLastRun(time.Time{})
	tr.ReplaceCronJobs(nil, testbuilders.Now)
	tr.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, "1")}, "1", testbuilders.Now)
	tr.ReplaceClusterPolicies(nil, "1", testbuilders.Now)
	tr.ReplacePolicies([]*gc.CleanupPolicy{testbuilders.Policy("p").Default("0s").Obj()}, "1", testbuilders.Now)
	tr.Coverage()
	list(tr, gc.ResourcePods)
	list(tr, gc.ResourceJobs)
	election := componentbaseconfig.LeaderElectionConfiguration{
		LeaderElect:       true,
		ResourceNamespace: "winnow-system",
		ResourceName:      "winnow",
	}
	dated := datedClient(t, config)
	// This reader lists the metadata of policies instead of writing barriers.
	r, err := newReader(Config{Loopback: config, Instance: instance, LeaderElection: election}, dated, cluster, answerLifecycles(nil),
		newHistory(tr.Newest, func(err error) { t.Error(err) }))
	if err != nil {
		t.Fatal(err)
	}
	asker := rights.New(cluster, s.time)
	writer := status.New(status.Config{Tracker: tr, Events: cluster, Clock: s.time})
	return &world{T: t, server: s, tracker: tr, reader: r, Controller: &Controller{
		loop: loop{
			clock: s.time, tracker: tr, reader: r, deleter: deleter.New(cluster, "winnow/test", s.time, asker),
			limit: deleter.NewLimit(1), relist: func() {}, gone: writer.Gone, record: func(*deletion.Order, time.Time, bool) {},
		},
		config: Config{LeaderElection: election}, cluster: cluster, dated: dated, replica: tr, policyStore: r.policyStore, status: writer,
	}}
}

// datedClient returns a client whose answers have a Date.
func datedClient(t *testing.T, config *rest.Config) metadata.Interface {
	dated := rest.CopyConfig(config)
	dated.Wrap(serverdate.NewReader)
	client, err := metadata.NewForConfig(dated)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// answerLifecycles returns a function that confirms the lifecycles with this result.
func answerLifecycles(err error) func(map[types.NamespacedName]freshness.Revision) error {
	return func(map[types.NamespacedName]freshness.Revision) error { return err }
}

// writeBarriers makes the reader write barriers instead of listing policies.
func (w *world) writeBarriers(policies, clusterPolicies func(context.Context) (string, error)) {
	w.reader.policies, w.reader.clusterPolicies = barrier("cleanuppolicies", policies), barrier("clustercleanuppolicies", clusterPolicies)
}

// job adds a finished Job, which is due, to the server and to the tracker.
func (w *world) job(name string) *batchv1.Job {
	job := testbuilders.Job(name).Complete(testbuilders.Now.Add(-time.Hour))
	o := job.Obj()
	o.APIVersion, o.Kind = "batch/v1", "Job"
	w.do(func() { w.jobs[name] = o })
	w.tracker.Upsert(facts.Compress(job.Fact()), w.time.Now())
	return o
}

// gone removes a Job from the tracker, as the watch does.
func (w *world) gone(job *batchv1.Job) {
	f, err := lifecycle.FromJob(job)
	if err != nil {
		w.Fatal(err)
	}
	w.tracker.Remove(facts.Compress(f), w.time.Now())
}

// confirmFresh reads, and fails unless memory is fresh.
func (w *world) confirmFresh() {
	w.Helper()
	now := w.time.Now()
	reading, err := w.reader.read(context.Background(), now)
	if err != nil || !w.tracker.ConfirmFresh(reading, now) {
		w.Fatal("memory is not fresh", err)
	}
}

// take takes the order for the only Job that is due.
func (w *world) take() *deletion.Order {
	w.Helper()
	order, ok := w.tracker.Take(w.time.Now())
	if !ok {
		w.Fatal("there is nothing to take")
	}
	return order
}

// until waits for a condition that other goroutines make true.
func (w *world) until(what string, condition func() bool) {
	w.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		w.Fatalf("timed out: %s", what)
	}
}

var named = types.NamespacedName{Namespace: testbuilders.Home, Name: "p"}

// list ends a list of all objects of a resource.
func list(t *tracker.Tracker, resource string, all ...*facts.Compact) {
	l := t.BeginList(resource)
	l.Add(all, testbuilders.Now)
	l.End(1, testbuilders.Now)
}
