// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
)

// askWithin is how long a request may take.
const askWithin = 5 * time.Second

// observation is what the cluster and Winnow say at one moment, and what Winnow logged since the last observation.
type observation struct {
	jobs       []batchv1.Job
	candidates map[types.UID]*v1alpha1.CleanupCandidateStatus
	policies   map[string]*v1alpha1.CleanupPolicy
	log        []logEntry
}

// logEntry is a line of Winnow's structured log.
type logEntry struct {
	Milliseconds float64   `json:"ts"`
	Message      string    `json:"msg"`
	UID          types.UID `json:"uid"`
	Policy       string    `json:"policy"`
	FinishedAt   time.Time `json:"finishedAt"`
	Due          time.Time `json:"due"`
	Delay        delay     `json:"delay"`
}

// at returns when the line was written.
func (e *logEntry) at() time.Time { return time.UnixMilli(int64(e.Milliseconds)) }

// delay is a duration in the form "0.012s".
type delay time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *delay) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*l = delay(d)
	return err
}

// clients are for the namespace of the demonstration.
type clients struct {
	kubernetes kubernetes.Interface
	winnow     gcclient.GcV1alpha1Interface
}

func newClients(config *rest.Config) (*clients, error) {
	config.Timeout = askWithin
	config.WarningHandlerWithContext = rest.NoWarnings{}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	winnow, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &clients{kubernetes: core, winnow: winnow.GcV1alpha1()}, nil
}

// observer lists objects, and reads Winnow's log.
type observer struct {
	*clients
	logFile string
	read    int64 // how many bytes of the log file were read
}

// observe reads the log last, so that it has the deletion of a Job that is gone, or will have it soon.
func (o *observer) observe(ctx context.Context) (*observation, error) {
	out := &observation{
		candidates: map[types.UID]*v1alpha1.CleanupCandidateStatus{}, policies: map[string]*v1alpha1.CleanupPolicy{},
	}
	policies, err := o.winnow.CleanupPolicies(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range policies.Items {
		out.policies[policies.Items[i].Name] = &policies.Items[i]
	}
	jobs, err := o.kubernetes.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out.jobs = jobs.Items
	candidates, err := o.winnow.CleanupCandidates(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range candidates.Items {
		out.candidates[types.UID(candidates.Items[i].Name)] = &candidates.Items[i].Status
	}
	out.log, err = o.readLog()
	return out, err
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
