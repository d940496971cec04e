// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	eventslisters "k8s.io/client-go/listers/events/v1"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/install"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/cluster"
)

// askEvery is how often the policies are listed.
const askEvery = 500 * time.Millisecond

var namespaces = []string{namespace, previewNamespace, recentNamespace, backlogNamespace}

// observation has the objects at one moment, and what Winnow logged since the last observation.
type observation struct {
	objects []state
	// policies is nil if they were not listed, or could not be listed because of reason.
	policies   []policyRow
	reason     error
	namespaces []*metav1.PartialObjectMetadata
	cronJobs   []*lifecycle.CronJob
	log        []logEntry
	events     []*eventsv1.Event
}

// policyRow is a policy of either kind.
type policyRow struct {
	policy.Stored
	object runtime.Object
	cells  map[string]any // of the table that kubectl prints, by column
}

// state is the state of an object that a policy could match.
type state struct {
	fact       *lifecycle.Fact
	progress   string    // of a running Job
	deleting   time.Time // zero unless it is being deleted
	finalizers []string
}

// logEntry is a line of Winnow's structured log.
type logEntry struct {
	Milliseconds float64   `json:"ts"`
	Message      string    `json:"msg"`
	UID          types.UID `json:"uid"`
	Policy       string    `json:"policy"`
	Rule         string    `json:"rule"`
	FinishedAt   time.Time `json:"finishedAt"`
	Due          time.Time `json:"due"`
	Delay        delay     `json:"delay"`
	Outcome      string    `json:"outcome"`
	Detail       string    `json:"detail"`
}

// delay is a duration in the form "0.012s".
type delay time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *delay) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*l = delay(d)
	return err
}

// observer watches objects and events, lists the policies, and reads Winnow's log.
type observer struct {
	jobs       batchlisters.JobLister
	cronJobs   batchlisters.CronJobLister
	pods       corelisters.PodLister
	namespaces corelisters.NamespaceLister
	events     eventslisters.EventLister
	known      map[types.UID]bool // events that an observation had
	policies   rest.Interface
	decoder    runtime.Decoder
	nextAsk    time.Time
	logFile    string
	read       int64 // how many bytes of the log file were read
}

func newObserver(ctx context.Context, c *cluster.Cluster, logFile string) (*observer, error) {
	config := c.RESTConfig()
	config.Timeout = 5 * time.Second
	config.WarningHandlerWithContext = rest.NoWarnings{}
	policies, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	objects := informers.NewSharedInformerFactory(client, 0)
	events := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = "reportingController=" + gc.GroupName + "/winnow"
	}))
	o := &observer{
		jobs: objects.Batch().V1().Jobs().Lister(), cronJobs: objects.Batch().V1().CronJobs().Lister(),
		pods: objects.Core().V1().Pods().Lister(), namespaces: objects.Core().V1().Namespaces().Lister(),
		events: events.Events().V1().Events().Lister(), known: map[types.UID]bool{},
		policies: policies.GcV1alpha1().RESTClient(), logFile: logFile,
		decoder: serializer.NewCodecFactory(scheme).UniversalDecoder(),
	}
	for _, factory := range []informers.SharedInformerFactory{objects, events} {
		factory.Start(ctx.Done())
		for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
			if !synced {
				return nil, fmt.Errorf("cannot watch %v: %w", kind, context.Cause(ctx))
			}
		}
	}
	return o, nil
}

func (o *observer) observe(ctx context.Context, now time.Time) (*observation, error) {
	out := &observation{}
	for _, ns := range namespaces {
		if err := o.observeObjects(ns, out); err != nil {
			return nil, err
		}
	}
	if err := o.observeOthers(out); err != nil {
		return nil, err
	}
	if !now.Before(o.nextAsk) {
		o.nextAsk = now.Add(askEvery)
		out.policies, out.reason = o.askPolicies(ctx)
	}
	var err error
	out.log, err = o.readLog()
	return out, err
}

func (o *observer) observeObjects(ns string, out *observation) error {
	jobs, err := o.jobs.Jobs(ns).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, job := range jobs {
		fact, err := lifecycle.FromJob(job)
		if err != nil {
			return err
		}
		out.objects = append(out.objects, newState(fact, &job.ObjectMeta, progress(job)))
	}
	pods, err := o.pods.Pods(ns).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, pod := range pods {
		fact, err := lifecycle.FromPod(pod)
		if err != nil {
			return err
		}
		if fact.Controller == nil { // All other Pods are left to their Jobs.
			out.objects = append(out.objects, newState(fact, &pod.ObjectMeta, ""))
		}
	}
	events, err := o.events.Events(ns).List(labels.Everything())
	for _, e := range events {
		if !o.known[e.UID] {
			o.known[e.UID] = true
			out.events = append(out.events, e)
		}
	}
	slices.SortFunc(out.events, func(a, b *eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return err
}

// observeOthers observes the namespaces and owners of the objects.
func (o *observer) observeOthers(out *observation) error {
	all, err := o.namespaces.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, ns := range all {
		out.namespaces = append(out.namespaces, &metav1.PartialObjectMetadata{ObjectMeta: ns.ObjectMeta})
	}
	cronJobs, err := o.cronJobs.List(labels.Everything())
	for _, cj := range cronJobs {
		out.cronJobs = append(out.cronJobs, lifecycle.FromCronJob(cj))
	}
	return err
}

func newState(fact *lifecycle.Fact, m *metav1.ObjectMeta, progress string) state {
	s := state{fact: fact, progress: progress, finalizers: m.Finalizers}
	if m.DeletionTimestamp != nil {
		s.deleting = m.DeletionTimestamp.Time
	}
	return s
}

// progress returns how many completions a Job has, if it needs several.
func progress(job *batchv1.Job) string {
	if job.Spec.Completions == nil || *job.Spec.Completions == 1 {
		return ""
	}
	return fmt.Sprintf("%d of %d completions", job.Status.Succeeded, *job.Spec.Completions)
}

// askPolicies requests the tables of policies that kubectl prints.
func (o *observer) askPolicies(ctx context.Context) ([]policyRow, error) {
	var out []policyRow
	for _, resource := range []string{"cleanuppolicies", "clustercleanuppolicies"} {
		raw, err := o.policies.Get().Resource(resource).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
			Param("includeObject", string(metav1.IncludeObject)).
			DoRaw(ctx)
		if err != nil {
			return nil, err
		}
		table := &metav1.Table{}
		if err := json.Unmarshal(raw, table); err != nil {
			return nil, err
		}
		for i := range table.Rows {
			row, err := o.policyRow(table.ColumnDefinitions, &table.Rows[i])
			if err != nil {
				return nil, err
			}
			out = append(out, row)
		}
	}
	return out, nil
}

func (o *observer) policyRow(columns []metav1.TableColumnDefinition, row *metav1.TableRow) (policyRow, error) {
	object, err := runtime.Decode(o.decoder, row.Object.Raw)
	if err != nil {
		return policyRow{}, err
	}
	out := policyRow{object: object, cells: map[string]any{}}
	switch p := object.(type) {
	case *gc.CleanupPolicy:
		out.Stored = policy.StoredOf(p)
	case *gc.ClusterCleanupPolicy:
		out.Stored = policy.StoredOf(p)
	}
	for i, c := range columns {
		out.cells[c.Name] = row.Cells[i]
	}
	return out, nil
}

// readLog returns the complete lines that were added to Winnow's log. It skips lines that are not structured.
func (o *observer) readLog() ([]logEntry, error) {
	file, err := os.Open(o.logFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(o.read, io.SeekStart); err != nil {
		return nil, err
	}
	added, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	var out []logEntry
	for {
		line, rest, whole := bytes.Cut(added, []byte("\n"))
		if !whole {
			return out, nil
		}
		o.read += int64(len(line)) + 1
		added = rest
		var e logEntry
		if json.Unmarshal(line, &e) == nil {
			out = append(out, e)
		}
	}
}
