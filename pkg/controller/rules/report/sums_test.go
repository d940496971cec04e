// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

var (
	own = &policy.Policy{NamespacedName: types.NamespacedName{Namespace: "a", Name: "p"}}
	all = &policy.Policy{NamespacedName: types.NamespacedName{Name: "c"}}
)

// object is an object of namespace a.
type object struct {
	resource, name string
	terminating    bool
}

func (o object) Named() (namespace, resource, name string) { return "a", o.resource, o.name }
func (o object) Terminating() bool                         { return o.terminating }

// counted is an object and a decision of a policy for it. The detail of a held object comes from its decision.
type counted struct {
	object
	policy.Decision
}

func job(name string, d policy.Decision) counted {
	return counted{object{resource: "jobs.batch", name: name}, d}
}
func pod(name string, d policy.Decision) counted {
	return counted{object{resource: "pods", name: name}, d}
}
func secret(name string, d policy.Decision) counted {
	return counted{object{resource: "secrets", name: name}, d}
}

func wait(after time.Duration) policy.Decision {
	return policy.Decision{Action: policy.Wait, Reason: policy.ReasonNotDue, At: testbuilders.Now.Add(after)}
}

func hold(reason policy.Reason, detail string) policy.Decision {
	return policy.Decision{Action: policy.Hold, Reason: reason, Detail: detail, At: testbuilders.Now}
}

func await(detail string) policy.Decision {
	return policy.Decision{Action: policy.Await, Reason: policy.ReasonTerminating, Detail: detail}
}

var (
	ignore = policy.Decision{Action: policy.Ignore, Reason: policy.ReasonNotFinished, At: testbuilders.Now}
	keep   = policy.Decision{Action: policy.Keep, Reason: policy.ReasonNever, At: testbuilders.Now}
	del    = policy.Decision{Action: policy.Delete, Reason: policy.ReasonExpired, At: testbuilders.Now}
)

func going(c counted) counted {
	c.terminating = true
	return c
}

func sumOf(p *policy.Policy, objects ...counted) *Sum {
	s := &Sum{}
	for _, o := range objects {
		s.Add(p, o.object, o.Decision, func() string { return o.Detail })
	}
	return s
}

func in(after time.Duration) *metav1.Time { return &metav1.Time{Time: testbuilders.Now.Add(after)} }

// sumCase is the expected report on objects, in any order, and however they are divided among several sums.
type sumCase struct {
	policy  *policy.Policy
	objects []counted
	want    Report
	ready   int64
}

var sumCases = map[string]sumCase{
	"nothing":        {own, nil, Report{}, 0},
	"no candidate":   {own, []counted{job("x", ignore), pod("x", ignore)}, Report{}, 0},
	"kept for ever":  {own, []counted{job("x", keep)}, Report{Candidates: 1}, 0},
	"not due":        {own, []counted{job("x", wait(2*time.Hour)), job("y", wait(time.Hour))}, Report{Candidates: 2, NextDeletion: in(time.Hour)}, 0},
	"without a time": {own, []counted{job("x", policy.Decision{Action: policy.Wait})}, Report{Candidates: 1}, 0},
	"due":            {own, []counted{job("x", del), job("y", del), job("z", wait(1))}, Report{Candidates: 3, Due: 2, NextDeletion: in(time.Second)}, 2}, // Rounded up.
	"held": {own, []counted{pod("x", hold(policy.ReasonHeld, "h")), job("y", del)}, Report{
		Candidates: 2, Due: 2, Held: 1,
		HeldByReason: []Group{{Reason: policy.ReasonHeld, Detail: "h", Object: "pods/x", Count: 1}},
	}, 1},
	"held for several reasons, and the first object of each is shown": {own, []counted{
		pod("b", hold(policy.ReasonRefused, "b")), pod("a", hold(policy.ReasonRefused, "a")), pod("c", hold(policy.ReasonRefused, "c")),
		job("z", hold(policy.ReasonRefused, "z")), pod("0", hold(policy.ReasonHeld, "0")),
	}, Report{
		Candidates: 5, Due: 5, Held: 5,
		HeldByReason: []Group{
			{Reason: policy.ReasonHeld, Detail: "0", Object: "pods/0", Count: 1},
			{Reason: policy.ReasonRefused, Detail: "z", Object: "jobs.batch/z", Count: 4},
		},
	}, 0},
	"objects that must not be named come last": {own, []counted{
		secret("a", hold(policy.ReasonRefused, "a")), pod("z", hold(policy.ReasonRefused, "z")), secret("b", hold(policy.ReasonRefused, "b")),
		secret("d", hold(policy.ReasonHeld, "d")), secret("c", hold(policy.ReasonHeld, "c")),
	}, Report{
		Candidates: 5, Due: 5, Held: 5,
		HeldByReason: []Group{
			{Reason: policy.ReasonHeld, Detail: "c", Object: "secrets/c", Unnamed: true, Count: 2},
			{Reason: policy.ReasonRefused, Detail: "z", Object: "pods/z", Count: 3},
		},
	}, 0},
	"not gone yet": {own, []counted{going(pod("b", await("f"))), going(pod("a", await("")))}, Report{
		Candidates: 2, Due: 2, AwaitingByReason: []Group{{Reason: policy.ReasonTerminating, Object: "pods/a", Count: 2}},
	}, 0},
	"left to Kubernetes": {own, []counted{pod("a", await(""))}, Report{Candidates: 1, Due: 1}, 0},
	"of a cluster policy": {all, []counted{pod("x", hold(policy.ReasonHeld, "h")), going(job("y", await("f")))}, Report{
		Candidates: 2, Due: 2, Held: 1,
		HeldByReason:     []Group{{Reason: policy.ReasonHeld, Detail: "h", Object: "a/pods/x", Count: 1}},
		AwaitingByReason: []Group{{Reason: policy.ReasonTerminating, Detail: "f", Object: "a/jobs.batch/y", Count: 1}},
	}, 0},
}

func TestAdd(t *testing.T) {
	for name, c := range sumCases {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				s := sumOf(c.policy, c.objects...)
				var got Report
				if s.Fill(&got); !reflect.DeepEqual(got, c.want) {
					t.Errorf("got  %+v\nwant %+v", got, c.want)
				}
				if s.Ready() != c.ready {
					t.Errorf("%d are ready, want %d", s.Ready(), c.ready)
				}
				slices.Reverse(c.objects)
			}
		})
	}
}

// TestAddExplainsOnlyWhatIsShown: computing the detail takes time, and only the detail of the first object of a group is shown.
func TestAddExplainsOnlyWhatIsShown(t *testing.T) {
	s, asked := &Sum{}, []string{}
	for _, name := range []string{"b", "c", "a", "a", "b"} {
		s.Add(own, object{resource: "pods", name: name}, hold(policy.ReasonHeld, ""), func() string {
			asked = append(asked, name)
			return name
		})
	}
	if !slices.Equal(asked, []string{"b", "a"}) {
		t.Errorf("explained %v", asked)
	}
}

// TestMerge: merged sums of parts are the same as one sum of all objects.
func TestMerge(t *testing.T) {
	for name, c := range sumCases {
		t.Run(name, func(t *testing.T) {
			for first := range len(c.objects) + 1 {
				for _, parts := range [][2]*Sum{
					{sumOf(c.policy, c.objects[:first]...), sumOf(c.policy, c.objects[first:]...)},
					{sumOf(c.policy, c.objects[first:]...), sumOf(c.policy, c.objects[:first]...)},
				} {
					s := &Sum{}
					s.Merge(parts[0])
					s.Merge(nil)
					s.Merge(parts[1])
					var got Report
					if s.Fill(&got); !reflect.DeepEqual(got, c.want) {
						t.Errorf("%d objects first: got  %+v\nwant %+v", first, got, c.want)
					}
				}
			}
		})
	}
}

// TestMergeLeavesTheOther: sums of namespaces are kept, and merged again into the next report.
func TestMergeLeavesTheOther(t *testing.T) {
	kept := sumOf(all, pod("x", hold(policy.ReasonHeld, "h")), going(pod("y", await("f"))))
	for range 2 {
		s := &Sum{}
		s.Merge(kept)
		s.Merge(sumOf(all, pod("a", hold(policy.ReasonHeld, "a")), going(pod("b", await("b")))))
	}
	var got, want Report
	kept.Fill(&got)
	sumOf(all, pod("x", hold(policy.ReasonHeld, "h")), going(pod("y", await("f")))).Fill(&want)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestIn(t *testing.T) {
	held := Group{Reason: policy.ReasonHeld, Detail: "h", Object: "a/pods/x", Count: 1}
	awaiting := Group{Reason: policy.ReasonTerminating, Detail: "f", Object: "a/pods/y", Count: 1}
	for name, c := range map[string]struct {
		sum  *Sum
		want NamespaceGroups
		ok   bool
	}{
		"no sum":        {nil, NamespaceGroups{}, false},
		"nothing":       {&Sum{}, NamespaceGroups{}, false},
		"due, not held": {sumOf(all, pod("x", del), job("y", wait(1))), NamespaceGroups{}, false},
		"held": {
			sumOf(all, pod("x", hold(policy.ReasonHeld, "h"))), NamespaceGroups{Namespace: "a", HeldByReason: []Group{held}}, true,
		},
		"not gone yet": {
			sumOf(all, going(pod("y", await("f")))), NamespaceGroups{Namespace: "a", AwaitingByReason: []Group{awaiting}}, true,
		},
		"both": {
			sumOf(all, pod("x", hold(policy.ReasonHeld, "h")), going(pod("y", await("f")))),
			NamespaceGroups{Namespace: "a", HeldByReason: []Group{held}, AwaitingByReason: []Group{awaiting}}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := c.sum.In("a"); !reflect.DeepEqual(got, c.want) || ok != c.ok {
				t.Errorf("got %+v, %t; want %+v, %t", got, ok, c.want, c.ok)
			}
		})
	}
	if n := (*Sum)(nil).Ready(); n != 0 {
		t.Errorf("%d objects are ready without a sum", n)
	}
}

func TestCountIn(t *testing.T) {
	for name, c := range map[string]struct {
		sum  *Sum
		want gc.NamespaceStatus
		ok   bool
	}{
		"no sum":       {nil, gc.NamespaceStatus{}, false},
		"no candidate": {sumOf(all, pod("x", ignore)), gc.NamespaceStatus{}, false},
		"not due":      {sumOf(all, pod("x", wait(1))), gc.NamespaceStatus{Namespace: "a", Candidates: 1}, true},
		"of each": {
			sumOf(all, pod("x", wait(1)), pod("y", del), job("y", hold(policy.ReasonHeld, "h"))),
			gc.NamespaceStatus{Namespace: "a", Candidates: 3, Due: 2, Held: 1}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := c.sum.CountIn("a"); got != c.want || ok != c.ok {
				t.Errorf("got %+v, %t; want %+v, %t", got, ok, c.want, c.ok)
			}
		})
	}
}

// TestWaiting: the owner of a hold reports all objects under it, every other policy only its own.
func TestWaiting(t *testing.T) {
	of, other := &approval.Hold{ID: "h", Owner: "uid-p"}, &approval.Hold{ID: "o", Owner: "uid-p"}
	sums := Sums{}
	for _, s := range []struct {
		policy    *policy.Policy
		hold      *approval.Hold
		resources []string
	}{
		{own, of, []string{"pods", "jobs.batch", "pods"}},
		{own, nil, []string{"pods"}},
		{own, other, []string{"pods"}},
		{all, of, []string{"deployments.apps"}},
	} {
		for _, r := range s.resources {
			sums.Of(s.policy).AddToHold(s.hold, r)
		}
	}
	for name, c := range map[string]struct {
		hold      *approval.Hold
		policy    *policy.Policy
		uid       types.UID
		objects   int64
		resources []string
	}{
		"the owner":              {of, own, "uid-p", 4, []string{"deployments.apps", "jobs.batch", "pods"}},
		"the owner, unreadable":  {of, nil, "uid-p", 4, []string{"deployments.apps", "jobs.batch", "pods"}},
		"another policy":         {of, all, "uid-c", 1, []string{"deployments.apps"}},
		"a policy with nothing":  {of, &policy.Policy{}, "uid-q", 0, []string{}},
		"another hold":           {other, own, "uid-p", 1, []string{"pods"}},
		"another hold, not mine": {other, all, "uid-c", 0, []string{}},
		"an empty hold":          {&approval.Hold{Owner: "uid-p"}, own, "uid-p", 0, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if n, resources := sums.Waiting(c.hold, c.policy, c.uid); n != c.objects || !slices.Equal(resources, c.resources) {
				t.Errorf("%d objects of %v, want %d of %v", n, resources, c.objects, c.resources)
			}
		})
	}
}
