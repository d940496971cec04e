// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/soak/faultproxy"
)

// TestCheckerUnderFaults: what a fault explains is no fault of Winnow, and all else is.
func TestCheckerUnderFaults(t *testing.T) {
	byOldQuota := func(p *play) {
		p.policy(-29, limit(&gc.Capacity{PercentOfQuota: ptr(int64(50))}))
		p.quotaOf(-29, 2)
		p.quotaOf(-20, 9)
		p.crowd(3)
		p.delete(6, "job-0", 1)
	}
	held := func(p *play) {
		p.job("a", 0)
		p.hold(at(4), "a")
		p.heldBy(at(4.5), "a")
		p.delete(60, "a", 1)
	}
	twice := func(p *play) { p.job("a", 0); p.delete(6, "a", 1); p.delete(7, "a", 1) }
	early := func(p *play) { p.job("a", 0); p.delete(4.9, "a", 1) }
	for name, c := range map[string]struct {
		play        func(p *play)
		resource    string // whose watch a replica does not have
		from, until float64
		want        string // what the fault says; empty when there is none
	}{
		"a quota that was not seen":               {byOldQuota, "resourcequotas", -22, 5, ""},
		"a quota that was seen":                   {byOldQuota, "resourcequotas", -10, 5, "WithinCapacity"},
		"a quota that was seen after a fault":     {byOldQuota, "resourcequotas", -22, -6, "WithinCapacity"},
		"something else was not seen":             {byOldQuota, "secrets", -22, 5, "WithinCapacity"},
		"nothing was seen":                        {byOldQuota, faultproxy.Everything, -22, 5, ""},
		"held although it was not known":          {held, "jobs", 3, 5, ""},
		"held while a replica did not know it":    {held, "jobs", -9, -5, ""},
		"held, and not known later":               {held, "jobs", 50, 70, "waits for approval"},
		"held, and something else was not known":  {held, "secrets", 3, 5, "waits for approval"},
		"twice, since its end was not seen":       {twice, "jobs", 5, 9, ""},
		"twice, and something else was not seen":  {twice, "secrets", 5, 9, "second time"},
		"too early, whatever else was not seen":   {early, faultproxy.Everything, 0, 9, "NotDue"},
		"too early, and nothing was seen for now": {early, "jobs", -60, 9, "NotDue"},
	} {
		t.Run(name, func(t *testing.T) {
			p, proxy := newPlay(), faultproxy.New("proxy", nil, nil, 0)
			proxy.Spans.Begin(c.resource, at(c.from))(at(c.until))
			p.checker.trouble = &faults{proxies: []*faultproxy.Proxy{proxy}}
			c.play(p)
			p.checker.check(at(90), time.Now().Add(time.Hour))
			found := strings.Join(p.checker.faults, "\n")
			if (c.want == "") != (found == "") || !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// TestUsesUnderFaults: a use that a replica cannot have seen does not count.
func TestUsesUnderFaults(t *testing.T) {
	const key = "configmaps/contents-0/c"
	for name, c := range map[string]struct {
		resource    string
		from, until float64
		wrong       bool
	}{
		"not seen":          {"pods", 89, 99, false},
		"seen at last":      {"pods", 60, 70, true},
		"seen for a moment": {"pods", 98, 99, true},
		"of something else": {"leases", 89, 99, true},
	} {
		proxy, u := faultproxy.New("proxy", nil, nil, 0), newUses()
		proxy.Spans.Begin(c.resource, at(c.from))(at(c.until))
		u.faults = &faults{proxies: []*faultproxy.Proxy{proxy}}
		u.created(key, false, at(0))
		u.begin(key, at(90))
		u.take(&cluster.AuditEvent{ObjectRef: &auditv1.ObjectReference{Resource: "configmaps", Namespace: "contents-0", Name: "c"}}, at(100))
		if wrong := u.check(at(101)); (len(wrong) > 0) != c.wrong {
			t.Errorf("%s: found %q", name, wrong)
		}
	}
}

// TestGhostOfARefusal: what is gone after a DELETE that seemed to fail is checked once.
func TestGhostOfARefusal(t *testing.T) {
	p := newPlay()
	p.job("a", 0)
	p.checker.failed["a"] = true
	p.checker.tail = &cluster.AuditTail{}
	if p.checker.ghosts(at(9), nil); len(p.checker.pending) != 0 || len(p.left()) != 0 {
		t.Errorf("checks %v, and left are %v", p.checker.pending, p.left())
	}
}
