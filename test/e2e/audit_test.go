// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/winnow-dev/winnow/test/cluster"
)

// deletion is what the audit log says of one DELETE request of Winnow.
type deletion struct {
	cluster.AuditEvent
	object           string // "jobs/name"
	policy, rule     string
	ceiling          string // the cluster policy whose ceiling is the reason; then there is no policy and no rule
	propagation      string
	hasPreconditions bool
}

// auditLog is what was read of the audit log so far: DELETE requests of Winnow by namespace, in the order of their answers.
// Tests ask again and again, so nothing is read twice.
var auditLog struct {
	lock        sync.Mutex
	tail        *cluster.AuditTail
	byNamespace map[string][]deletion
}

// deletions returns the DELETE requests of Winnow in a namespace, in the order of their answers, but not those whose sender was killed
// before their body was sent: the API server refuses them.
func deletions(t *testing.T, ns string) []deletion {
	t.Helper()
	l := &auditLog
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.tail == nil {
		l.tail, l.byNamespace = suite.AuditTail(cluster.DeletesBy("winnow")), map[string][]deletion{}
	}
	events, err := l.tail.Next()
	must(t, err)
	for i := range events {
		e := &events[i]
		cutOff := e.RequestObject == nil && e.ResponseStatus != nil && e.ResponseStatus.Code >= http.StatusBadRequest
		if ref := e.ObjectRef; !cutOff && !strings.HasSuffix(ref.APIGroup, "winnow.dev") {
			l.byNamespace[ref.Namespace] = append(l.byNamespace[ref.Namespace], deletionOf(t, e))
		}
	}
	return slices.Clone(l.byNamespace[ns])
}

func deletionOf(t *testing.T, e *cluster.AuditEvent) deletion {
	t.Helper()
	options, err := cluster.DeleteOptions(e)
	must(t, err)
	d := deletion{AuditEvent: *e, object: e.ObjectRef.Resource + "/" + e.ObjectRef.Name}
	if options.PropagationPolicy != nil {
		d.propagation = string(*options.PropagationPolicy)
	}
	p := options.Preconditions
	d.hasPreconditions = p != nil && p.UID != nil && *p.UID != "" && p.ResourceVersion != nil && *p.ResourceVersion != ""
	_, reason, _ := strings.Cut(strings.TrimSuffix(e.UserAgent, ")"), " (")
	if policy, ok := strings.CutPrefix(reason, "policy="); ok {
		d.policy, d.rule, _ = strings.Cut(policy, "; rule=")
	}
	d.ceiling, _ = strings.CutPrefix(reason, "ceiling=")
	return d
}

// decider names what decided a deletion in a namespace: "policy/rule", or "ceiling=policy".
func (d *deletion) decider(ns string) string {
	if d.policy == "" && d.ceiling != "" {
		return "ceiling=" + d.ceiling
	}
	return strings.TrimPrefix(d.policy, ns+"/") + "/" + d.rule
}

// expectDeletions waits until the multiset of DELETE requests in a namespace is the wanted one: "jobs/name policy/rule",
// or "jobs/name ceiling=policy".
// Each must carry both preconditions. One more than wanted fails.
func expectDeletions(t *testing.T, ns string, want ...string) {
	t.Helper()
	slices.Sort(want)
	eventually(t, func(context.Context) string {
		var got []string
		for _, d := range deletions(t, ns) {
			got = append(got, d.object+" "+d.decider(ns))
			if !d.hasPreconditions {
				t.Fatalf("DELETE of %s without both preconditions", d.object)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Sprintf("%d DELETE requests in %s, want %d; too many:\n  %s\nmissing:\n  %s",
				len(got), ns, len(want), strings.Join(without(got, want), "\n  "), strings.Join(without(want, got), "\n  "))
		}
		return ""
	})
}

// without is what is left of a multiset, sorted, when another is taken away; no more than twenty.
func without(all, other []string) []string {
	counts := map[string]int{}
	for _, s := range other {
		counts[s]++
	}
	var out []string
	for _, s := range all {
		if counts[s]--; counts[s] < 0 && len(out) < 20 {
			out = append(out, s)
		}
	}
	return out
}
