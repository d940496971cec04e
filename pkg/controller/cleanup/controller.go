// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cleanup is the loop: it takes orders from the tracker, sends their DELETEs, and passes the deletions on to the status writer. It
// passes the time to all packages that do not read the clock themselves.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	componentbaseconfig "k8s.io/component-base/config"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/forecast"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/observe"
	"github.com/winnow-dev/winnow/pkg/controller/observe/discovery"
	"github.com/winnow-dev/winnow/pkg/controller/observe/rights"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
	"github.com/winnow-dev/winnow/pkg/controller/write/copies"
	"github.com/winnow-dev/winnow/pkg/controller/write/deleter"
	"github.com/winnow-dev/winnow/pkg/controller/write/marks"
	"github.com/winnow-dev/winnow/pkg/controller/write/notify"
	"github.com/winnow-dev/winnow/pkg/controller/write/records"
	"github.com/winnow-dev/winnow/pkg/controller/write/status"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/serverdate"
)

// Config is what a Controller works with.
type Config struct {
	// Cluster reaches the cluster, Loopback this server itself, for the policies.
	Cluster, Loopback *rest.Config
	// Barriers is nil when policies are not kept in the cluster. Then all policies are listed instead.
	Barriers *Barriers
	// UserAgent is the beginning of the user agent in every request, such as "winnow/v1.0.0".
	UserAgent string
	// Instance names this replica, different from all others.
	Instance string
	// ConcurrentDeletions is the maximum number of concurrent deletes.
	ConcurrentDeletions int
	// ProtectedNamespaces are protected in addition to the Kubernetes system namespaces.
	ProtectedNamespaces []string
	// HoldAbove is how many objects of a namespace one change may make due at once where no cluster policy sets a limit, and HoldAboveTotal
	// how many in all namespaces that it reaches; negative means no limit.
	HoldAbove, HoldAboveTotal int
	// StartSuspended stops every deletion in namespaces that no enforcing cluster policy selects.
	StartSuspended bool
	// DefaultServiceAccount is the ServiceAccount of the namespace as which Winnow acts for policies that name none; empty for its own.
	// RequireServiceAccount demands one of every policy.
	DefaultServiceAccount string
	RequireServiceAccount bool
	// Notify says where events about deletions and holds are sent. New sets what all clients have in common.
	Notify notify.Config
	// RecordRetention is how long the records of deleted objects are kept, and RecordsPerNamespace how many of a namespace; 0 for none.
	RecordRetention     time.Duration
	RecordsPerNamespace int
	// CopiesPerNamespace is how many copies of deleted objects are kept in a namespace, and CopyBytesPerNamespace how much room they take at
	// most. CopyBytesTotal is how much room the copies of all namespaces take at most.
	CopiesPerNamespace    int
	CopyBytesPerNamespace int64
	CopyBytesTotal        int64
	LeaderElection        componentbaseconfig.LeaderElectionConfiguration
	// FirstLists is called when the lists that fill the memory begin and end; see observe.Config.
	FirstLists func(underWay bool)
}

// Controller observes objects and decides for them on every replica. Only the leader deletes, and writes status, marks and copies. Every
// replica writes the records of what it deleted.
type Controller struct {
	loop
	config  Config
	cluster kubernetes.Interface
	dated   metadata.Interface // whose answers have a Date; see package serverdate
	replica replica
	// policyStore is that of the reader.
	policyStore func(context.Context) (version string, err error)

	kinds    *discovery.Follower
	observer *observe.Observer
	status   *status.Writer
	notifier *notify.Notifier
	marks    *marks.Writer
	records  *records.Writer
	history  *records.Reader
	copies   *copies.Writer
	copied   *copies.Reader
	rights   *rights.Asker
	forecast *forecast.Forecaster
	leading  atomic.Bool
}

// New returns a Controller, which Run starts. It fails if no client can be made from the configurations.
func New(c Config) (*Controller, error) {
	protobuf := client(c.Cluster, c.UserAgent, runtime.ContentTypeProtobuf)
	cluster, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	observed, err := observe.NewClient(protobuf)
	if err != nil {
		return nil, fmt.Errorf("client of what is observed: %w", err)
	}
	dated := client(c.Cluster, c.UserAgent, "")
	dated.Wrap(serverdate.NewReader)
	dating, err := metadata.NewForConfig(dated)
	if err != nil {
		return nil, fmt.Errorf("metadata client of the cluster: %w", err)
	}
	policies, err := versioned.NewForConfig(client(c.Loopback, c.UserAgent, ""))
	if err != nil {
		return nil, fmt.Errorf("client of this server: %w", err)
	}
	objects, err := dynamic.NewForConfig(client(c.Cluster, c.UserAgent, ""))
	if err != nil {
		return nil, fmt.Errorf("dynamic client of the cluster: %w", err)
	}
	now := clock.RealClock{}
	t := tracker.New(memory.Config{
		Protected: c.ProtectedNamespaces, HoldAbove: c.HoldAbove, HoldAboveTotal: c.HoldAboveTotal,
		StartSuspended: c.StartSuspended, DefaultAccount: c.DefaultServiceAccount, RequireAccount: c.RequireServiceAccount,
		Notifies: c.Notify.URL != "",
	}, now.Now)
	out := &Controller{config: c, cluster: cluster, dated: dating, replica: t}
	if out.kinds, err = newFollower(c, dating, objects, policies.GcV1alpha1(), t, now, out.wentBack); err != nil {
		return nil, err
	}
	reader, err := newReader(c, dating, cluster, out.kinds.Confirm, newHistory(t.Newest, out.wentBack))
	if err != nil {
		return nil, err
	}
	c.Notify.UserAgent, c.Notify.Instance, c.Notify.Clock, c.Notify.Tracker = c.UserAgent, c.Instance, now, t
	out.notifier = notify.New(c.Notify)
	out.status = status.New(status.Config{
		Tracker: t, Policies: policies.GcV1alpha1(), Events: cluster, Clock: now, Served: out.kinds.Served, Instance: c.Instance,
		Reported: out.notifier.Reported, Announced: out.notifier.Announced, Deliver: out.notifier.Deliver,
	})
	out.observer = observe.New(observe.Config{
		Tracker: t, Policies: policies.GcV1alpha1(), Stored: objects, Client: observed, Metadata: dating, Clock: now,
		WentBack: out.wentBack, FirstLists: c.FirstLists,
	})
	out.policyStore = reader.policyStore
	out.rights = rights.New(cluster, now)
	out.newRecords(objects, dating)
	out.newCopies(objects, dating)
	out.loop = loop{
		clock: now, tracker: t, reader: reader, deleter: deleter.New(cluster, c.UserAgent, now, out.rights),
		limit: deleter.NewLimit(c.ConcurrentDeletions), relist: out.observer.Relist, gone: out.tellGone, record: out.records.Add,
		copies: out.copies,
		usage:  &observe.UsageReader{Client: observed, Kinds: t.Kinds, Clock: now},
	}
	out.marks = marks.NewWriter(t, objects, now)
	out.forecast = forecast.New(forecast.Config{Tracker: t, Client: observed, Clock: now})
	return out, nil
}

// newFollower returns what gives the tracker the table of kinds.
func newFollower(
	c Config, definitions metadata.Interface, services dynamic.Interface, own gcclient.GcV1alpha1Interface, t *tracker.Tracker,
	now clock.Clock, wentBack func(error),
) (*discovery.Follower, error) {
	served, err := clientdiscovery.NewDiscoveryClientForConfig(client(c.Cluster, c.UserAgent, ""))
	if err != nil {
		return nil, fmt.Errorf("discovery client of the cluster: %w", err)
	}
	return discovery.New(discovery.Config{
		Reader: discovery.Reader{
			Discovery: served, APIServices: services, Schemas: openapi.NewClientWithContext(served.RESTClient()),
		},
		Metadata: definitions, Lifecycles: own.ResourceLifecycles(), Tracker: t, Clock: now, WentBack: wentBack,
	})
}

// client copies a configuration. The client does not limit its own rate, because Priority and Fairness of the API server does.
func client(c *rest.Config, userAgent, contentType string) *rest.Config {
	c = rest.CopyConfig(c)
	c.UserAgent, c.QPS = userAgent, -1
	c.DisableCompression = true // The API server is near, so compression costs both sides more than it saves.
	if contentType != "" {
		c.ContentType, c.AcceptContentTypes = contentType, contentType+",application/json"
	}
	return c
}

// syncedEvery is how often Run checks whether the first lists have arrived.
const syncedEvery = 20 * time.Millisecond

// Synced reports whether policies and namespaces were listed, so that this replica can lead.
func (c *Controller) Synced() bool { return c.observer.Synced() }

// Leading reports whether this replica leads. It may be called at any time.
func (c *Controller) Leading() bool { return c.leading.Load() }

// Forecast tells people what becomes due at once by a change that is about to be made; nothing before policies and namespaces are
// known. It may be called at any time.
func (c *Controller) Forecast(ctx context.Context, change gc.PolicyChange) gc.PolicyForecast {
	if !c.Synced() {
		return gc.PolicyForecast{}
	}
	return c.forecast.Forecast(ctx, change)
}

var errNotSynced = errors.New("this replica of Winnow does not know all policies and namespaces yet; try again in a few seconds")

// NamedResources returns the resources that any policy names.
func (c *Controller) NamedResources() (sets.Set[string], error) {
	if !c.Synced() {
		return nil, errNotSynced
	}
	return c.replica.NamedResources(), nil
}

// ForecastLifecycle tells people what becomes due at once by a change of a lifecycle that is about to be made; nothing before policies and
// namespaces are known, or if the change has no effect. It may be called at any time.
func (c *Controller) ForecastLifecycle(ctx context.Context, change gc.LifecycleChange) []string {
	if !c.Synced() {
		return nil
	}
	kind := c.kinds.KindAfter(change)
	if kind == nil {
		return nil
	}
	return c.forecast.ForecastLifecycle(ctx, change, kind)
}

// CandidateResources returns the resources that may have candidates, in a namespace or with "" in any, each with why some of them may be
// missing or out of date; empty if none is.
func (c *Controller) CandidateResources(namespace string) (map[string]string, error) {
	if !c.Synced() {
		return nil, errNotSynced
	}
	return c.replica.CandidateResources(namespace), nil
}

// Candidates returns a page of candidates.
func (c *Controller) Candidates(ctx context.Context, q gc.CandidateQuery) (gc.CandidatePage, error) {
	return c.replica.Candidates(ctx, q)
}

// Review says what a draft would delete, and when.
func (c *Controller) Review(ctx context.Context, draft gc.Draft) (gc.ClusterCleanupReviewStatus, error) {
	if !c.Synced() {
		return gc.ClusterCleanupReviewStatus{}, errNotSynced
	}
	return c.forecast.Review(ctx, draft)
}

// Served returns what the cluster says of a resource; nothing before it was asked.
func (c *Controller) Served(resource string) gc.ServedResource { return c.kinds.Served(resource) }

// Schema returns the schema of a resource; nil if none is known.
func (c *Controller) Schema(ctx context.Context, resource string) (*spec.Schema, error) {
	return c.kinds.Schema(ctx, resource)
}

// RegisterMetrics registers the metrics of the controller. A process has one controller with metrics.
func (c *Controller) RegisterMetrics() {
	metrics.Register()
	metrics.RegisterTracked(func() view.Totals { return c.replica.Totals(c.clock.Now()) })
}

// Run observes and decides until ctx ends, and deletes while this replica leads. It returns after the last request has ended.
func (c *Controller) Run(ctx context.Context) error {
	var starting sync.WaitGroup
	starting.Go(func() { c.kinds.Start(ctx) })
	err := c.readLastRun(ctx)
	starting.Wait()
	if err != nil {
		return nil // told to end before the start
	}
	c.replica.Follow()
	// By a wrong clock, this replica would find no member of a hold that it adopts, and end the hold.
	c.replica.DoubtClocks(c.clock.Now())
	seen := newHistory(c.replica.Newest, c.wentBack)
	c.look(ctx, &seen)
	defer c.startNotifying(ctx)()
	ctx, stop := context.WithCancel(ctx)
	var observing sync.WaitGroup
	defer observing.Wait()
	defer stop()
	observing.Go(func() { c.kinds.Run(ctx) })
	observing.Go(func() { c.observer.Run(ctx) })
	observing.Go(func() { c.keepUp(ctx) })
	observing.Go(func() { c.rights.Run(ctx, c.replica, c.clock) })
	observing.Go(func() { c.keepLooking(ctx, &seen) })
	// A leader must know which holds the replicas before it have found.
	if err := wait.PollUntilContextCancel(ctx, syncedEvery, true, func(context.Context) (bool, error) { return c.Synced(), nil }); err != nil {
		return nil // told to end before that
	}
	defer c.keepRecords(ctx)()
	if !c.config.LeaderElection.LeaderElect {
		c.lead(ctx)
		return nil
	}
	for ctx.Err() == nil {
		if err := c.elect(ctx); err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
	}
	return nil
}

// readLastRun reads when a controller last ran, and retries until it succeeds. It fails when ctx ends.
func (c *Controller) readLastRun(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		last, err := c.lastLed(ctx)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot read the lease, trying again")
			return false, nil
		}
		c.replica.SetLastRun(last)
		return true, nil
	})
}

// expireEvery is how often every replica decides for the objects whose timers have ended. The leader also does this in dispatch, as soon as
// a timer ends. The other replicas need to do it because they may lead next: an object that became due because time passed must not be
// attributed to a later change.
const expireEvery = time.Second

// keepUp runs on every replica until ctx ends. It decides for the objects whose timers have ended, and for objects that a change affects.
func (c *Controller) keepUp(ctx context.Context) {
	ticker := c.clock.NewTicker(expireEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			for c.replica.Expire(c.clock.Now()) && ctx.Err() == nil {
			}
		case <-c.replica.Behind():
		}
		for c.replica.Step(c.clock.Now()) && ctx.Err() == nil {
		}
	}
}

// lead deletes, writes status and marks, and removes old records and copies, until ctx ends. It runs only on the leader.
func (c *Controller) lead(ctx context.Context) {
	klog.FromContext(ctx).Info("Leading", "instance", c.config.Instance)
	c.replica.DoubtMarks(c.clock.Now())
	c.replica.Lead()
	defer c.replica.Follow()
	c.notifier.Lead()
	defer c.notifier.Follow()
	c.leading.Store(true)
	defer c.leading.Store(false)
	metrics.Leading.Set(1)
	defer metrics.Leading.Set(0)
	var writing sync.WaitGroup
	writing.Go(func() { c.status.Run(ctx) })
	writing.Go(func() { c.kinds.Report(ctx) })
	writing.Go(func() { c.marks.Run(ctx) })
	writing.Go(func() { c.confirmMarks(ctx) })
	writing.Go(func() { c.records.Remove(ctx) })
	c.copies.Forget()
	writing.Go(func() { c.copies.Remove(ctx) })
	c.dispatch(ctx)
	writing.Wait()
}
