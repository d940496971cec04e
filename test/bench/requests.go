// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/test/cluster"
)

func byWinnow(e *cluster.AuditEvent) bool { return strings.HasPrefix(e.UserAgent, "winnow") }

// byNative reports whether the TTL-after-finished controller of Kubernetes sent a request. Each controller of the controller manager has
// its own user (--use-service-account-credentials).
func byNative(e *cluster.AuditEvent) bool {
	return e.User.Username == "system:serviceaccount:kube-system:ttl-after-finished-controller"
}

func byGarbageCollector(e *cluster.AuditEvent) bool {
	return e.User.Username == "system:serviceaccount:kube-system:generic-garbage-collector"
}

// requestCounts is what it took to delete some Jobs.
type requestCounts struct {
	deletions int
	seconds   float64
	// By the contestant: DELETEs of the Jobs, all requests on them, and all others.
	deletes, onJobs, others int
	// By the garbage collector on the Jobs.
	collector int
	kinds     map[string]int // by sender, verb and resource
}

// readAudit counts the requests from the first expiry on, and notes when the first DELETE of each Job was received. The last
// lines of the log may come after the events of the watch.
func (o *outcome) readAudit(ctx context.Context, audit *cluster.AuditTail, c contestant, ns string, first time.Time) error {
	o.requests.kinds = map[string]int{}
	return eventually(ctx, 100*time.Millisecond, func(context.Context) error {
		events, err := audit.Next()
		if err != nil {
			return err
		}
		for i := range events {
			if e := &events[i]; !e.RequestReceivedTimestamp.Time.Before(first) {
				o.count(e, c, ns)
			}
		}
		for name, job := range o.jobs {
			if job.received.IsZero() {
				return fmt.Errorf("no DELETE of Job %s/%s by %s is in the audit log", ns, name, c.name)
			}
		}
		return nil
	})
}

func (o *outcome) count(e *cluster.AuditEvent, c contestant, ns string) {
	ref := e.ObjectRef
	onJobs := ref != nil && ref.Namespace == ns && ref.Resource == "jobs"
	r := &o.requests
	sender := c.name
	switch {
	case onJobs && byGarbageCollector(e):
		sender = "garbage collector"
		r.collector++
	case !c.sent(e):
		return
	case !onJobs:
		r.others++
	default:
		r.onJobs++
		if job := o.jobs[ref.Name]; e.Verb == "delete" {
			r.deletes++
			if received := e.RequestReceivedTimestamp.Time; job.received.IsZero() || received.Before(job.received) {
				job.received = received
			}
		}
	}
	r.kinds[strings.Join([]string{sender, e.Verb, resourceOf(e)}, ",")]++
}

// resourceOf is a resource as kubectl takes it, or the path of what is none.
func resourceOf(e *cluster.AuditEvent) string {
	if e.ObjectRef == nil {
		path, _, _ := strings.Cut(e.RequestURI, "?")
		return path
	}
	name := e.ObjectRef.Resource
	if e.ObjectRef.APIGroup != "" {
		name += "." + e.ObjectRef.APIGroup
	}
	if e.ObjectRef.Subresource != "" {
		name += "/" + e.ObjectRef.Subresource
	}
	return name
}

func requestRows(ours, theirs []outcome) []row {
	const native = "native controller"
	var rows []row
	for _, figure := range []struct {
		name, unit string
		of         func(requestCounts) float64
	}{
		{"DELETE requests", "a deletion", func(r requestCounts) float64 { return r.each(r.deletes) }},
		{"requests on the object", "a deletion", func(r requestCounts) float64 { return r.each(r.onJobs) }},
		{"the same with the garbage collector's", "a deletion", func(r requestCounts) float64 { return r.each(r.onJobs + r.collector) }},
		{"other requests while deleting", "1/s", func(r requestCounts) float64 { return float64(r.others) / r.seconds }},
	} {
		rows = append(rows, row{figure.name, figure.unit, perRound(ours, figure.of), native, perRound(theirs, figure.of)})
	}
	return rows
}

func (r requestCounts) each(n int) float64 { return float64(n) / float64(r.deletions) }

func perRound(rounds []outcome, of func(requestCounts) float64) sample {
	var out sample
	for _, round := range rounds {
		out = append(out, of(round.requests))
	}
	return out
}

// requestLines are all requests by kind, with a header.
func requestLines(name string, rounds []outcome) [][]string {
	lines := [][]string{{"round of", "round", "sender", "verb", "resource", "requests", "deletions", "seconds"}}
	for i, round := range rounds {
		for _, kind := range slices.Sorted(maps.Keys(round.requests.kinds)) {
			line := append([]string{name, strconv.Itoa(i + 1)}, strings.Split(kind, ",")...)
			lines = append(lines, append(line, strconv.Itoa(round.requests.kinds[kind]),
				strconv.Itoa(round.requests.deletions), number(round.requests.seconds)))
		}
	}
	return lines
}
