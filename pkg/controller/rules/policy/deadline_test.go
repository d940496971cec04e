// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestDeadline: what happens to the deadline of an object that started an hour ago.
func TestDeadline(t *testing.T) {
	started := now.Add(-time.Hour)
	job := func() *testbuilders.JobBuilder { return testbuilders.Job("a").Started(started) }
	pod := func() *testbuilders.PodBuilder { return testbuilders.Pod("a").Started(started) }
	p := testbuilders.Policy
	ofJobs := testbuilders.Rule("r", "").WithoutTTL().For(gc.ResourceJobs).Deadline("2h")
	all := func(builders ...*testbuilders.PolicyBuilder) []*testbuilders.PolicyBuilder { return builders }
	type want struct {
		by    string // empty: nothing is changed
		set   time.Duration
		ends  bool
		never bool // it is not known when it ends
	}
	for name, c := range map[string]struct {
		fact     *lifecycle.Fact
		policies []*testbuilders.PolicyBuilder
		want     want
	}{
		"a default":                       {job().Fact(), all(p("p").Deadline("6h")), want{by: "p/default", set: 6 * time.Hour}},
		"a rule":                          {job().Fact(), all(p("p").Rules(ofJobs).Deadline("6h")), want{by: "p/r", set: 2 * time.Hour}},
		"a rule for others":               {pod().Fact(), all(p("p").Rules(ofJobs)), want{}},
		"a rule inherits nothing":         {job().Fact(), all(p("p").Rules(testbuilders.Rule("r", "1h")).Deadline("6h")), want{}},
		"a Pod":                           {pod().Fact(), all(p("p").Deadline("6h")), want{by: "p/default", set: 6 * time.Hour}},
		"one that it has run for":         {job().Fact(), all(p("p").Deadline("1h")), want{by: "p/default", set: time.Hour, ends: true}},
		"one that it has almost run for":  {job().Fact(), all(p("p").Deadline("1h1s")), want{by: "p/default", set: time.Hour + time.Second}},
		"not started":                     {testbuilders.Job("a").Fact(), all(p("p").Deadline("1s")), want{by: "p/default", set: time.Second, never: true}},
		"its own deadline":                {job().Deadline(5).Fact(), all(p("p").Deadline("6h")), want{}},
		"ours":                            {job().Deadline(21600).RecordsDeadline("21600").Fact(), all(p("p").Deadline("6h")), want{}},
		"ours, now longer":                {job().Deadline(60).RecordsDeadline("60").Fact(), all(p("p").Deadline("6h")), want{by: "p/default", set: 6 * time.Hour}},
		"ours, now shorter":               {job().Deadline(21600).RecordsDeadline("21600").Fact(), all(p("p").Deadline("1m")), want{by: "p/default", set: time.Minute, ends: true}},
		"ours, and no policy":             {job().Deadline(60).RecordsDeadline("60").Fact(), nil, want{by: "/", never: true}},
		"ours, and a policy without":      {job().Deadline(60).RecordsDeadline("60").Fact(), all(p("p").Default("1h")), want{by: "p/default", never: true}},
		"ours, changed by somebody":       {job().Deadline(61).RecordsDeadline("60").Fact(), nil, want{}},
		"ours, removed by somebody":       {job().RecordsDeadline("60").Fact(), all(p("p").Deadline("6h")), want{}},
		"of a Pod, now longer":            {pod().Deadline(60).RecordsDeadline("60").Fact(), all(p("p").Deadline("6h")), want{}},
		"of a Pod, and no policy":         {pod().Deadline(60).RecordsDeadline("60").Fact(), nil, want{}},
		"of a Pod, now shorter":           {pod().Deadline(60).RecordsDeadline("60").Fact(), all(p("p").Deadline("30s")), want{by: "p/default", set: 30 * time.Second, ends: true}},
		"the longest":                     {job().Fact(), all(p("p").Deadline("6h"), p("q").Deadline("7h")), want{by: "q/default", set: 7 * time.Hour}},
		"the same twice":                  {job().Fact(), all(p("q").Deadline("6h"), p("p").Deadline("6h")), want{by: "p/default", set: 6 * time.Hour}},
		"a policy that does not agree":    {job().Fact(), all(p("p").Deadline("6h"), p("q").Default("1h"), p("r").Deadline("9h")), want{}},
		"a policy that comes first":       {job().Fact(), all(p("a").Default("1h"), p("p").Deadline("6h")), want{}},
		"a Preview policy does not count": {job().Fact(), all(p("p").Deadline("6h"), p("q").Default("1h").Preview()), want{by: "p/default", set: 6 * time.Hour}},
		"a Preview policy sets none":      {job().Fact(), all(p("p").Deadline("6h").Preview()), want{}},
		"of a CronJob":                    {job().ControlledBy("batch/v1", "CronJob", "nightly").Fact(), all(p("p").Deadline("6h")), want{by: "p/default", set: 6 * time.Hour}},
		"of another controller":           {job().ControlledBy("example.com/v1", "Thing", "t").Fact(), all(p("p").Deadline("6h")), want{}},
		"a Pod of a Job":                  {pod().ControlledBy("batch/v1", "Job", "train").Fact(), all(p("p").Deadline("6h")), want{}},
		"being deleted":                   {job().Terminating().Fact(), all(p("p").Deadline("6h")), want{}},
		"finished":                        {job().Complete(now).Fact(), all(p("p").Deadline("6h")), want{}},
		"an annotation that is malformed": {job().TTL("soon").Fact(), all(p("p").Deadline("6h")), want{}},
		"an annotation that has no say":   {job().TTL("never").Fact(), all(p("p").Deadline("6h")), want{by: "p/default", set: 6 * time.Hour}},
		"applied by Argo CD": {
			job().Annotation("argocd.argoproj.io/tracking-id", "web:batch/Job:team-a/a").Fact(), all(p("p").Deadline("6h")), want{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, r, d := decideAnswer(t, c.fact, lifecycle.OwnerNone, c.policies)
			if c.want == (want{}) {
				if d.Action == policy.SetDeadline {
					t.Fatalf("got %+v", d)
				}
				return
			}
			if by := r.Policy.Name + "/" + r.RuleName(); d.Action != policy.SetDeadline || by != c.want.by || d.Deadline != c.want.set || d.Ends != c.want.ends ||
				d.At.IsZero() != c.want.never || !c.want.never && !d.At.Equal(started.Add(c.want.set)) || d.Candidate() || d.Due() || !d.Ready() {
				t.Fatalf("got %+v by %s", d, by)
			}
			if held := d.Held(policy.ReasonHeld, "x"); held.Action != policy.HoldDeadline || held.Ready() || held.Candidate() || held.Ends != d.Ends {
				t.Fatalf("held as %+v", held)
			}
		})
	}
}

// TestCompileDeadline: a policy that validation would refuse cannot be read.
func TestCompileDeadline(t *testing.T) {
	for deadline, want := range map[gc.TTL]string{"never": "activeDeadline", "0s": "0s is not allowed", "1.5h": "activeDeadline", "": "activeDeadline"} {
		if _, err := policy.Compile(testbuilders.Policy("p").Deadline(deadline).Obj()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", deadline, err)
		}
	}
	for _, resource := range []string{"workflows.argoproj.io", gc.ResourceAll} {
		p := testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For(resource).Deadline("6h")).Obj()
		if _, err := policy.Compile(p); err == nil || !strings.Contains(err.Error(), "activeDeadline: only") {
			t.Errorf("%s: %v", resource, err)
		}
	}
	if p := compiled(t, testbuilders.Policy("p").Deadline("6h")); !p.SetsDeadlines() || p.DoesNothing() {
		t.Error("a policy with nothing but a deadline does nothing")
	}
	if p := compiled(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h"))); p.SetsDeadlines() {
		t.Error("a policy without a deadline sets some")
	}
}
