// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
)

const most = 4

// crowded has referrers with more names than there is room for.
type crowded struct {
	*Tracker[int]
	now       time.Time
	referrers map[types.UID]referrer
	objects   map[int]Object
	// named are the objects that were named at any time since the last reread that was complete, or since the one that goes on has begun.
	named, namedSince map[Object]bool
	reread            uint32      // that goes on; 0 if none does
	unread            []types.UID // that it has not read yet
}

type referrer struct {
	namespace string
	refs      []references.Reference
}

func (c *crowded) step(t *rapid.T) {
	for more := true; more; {
		_, more = c.Step(rapid.IntRange(1, 3).Draw(t, "keys"), c.now)
	}
	c.see()
}

// see notes what is named now.
func (c *crowded) see() {
	for _, o := range c.objects {
		if c.uses(o) {
			c.named[o], c.namedSince[o] = true, true
		}
	}
}

func (c *crowded) uses(o Object) bool {
	for _, r := range c.referrers {
		if slices.ContainsFunc(r.refs, func(f references.Reference) bool {
			return (f.Namespace == o.Namespace || f.Namespace == references.All) && (f.Name == o.Name || f.Name == references.All)
		}) {
			return true
		}
	}
	return false
}

// check: nothing that is named is unused, and whatever was not named is unused if it is not in an overfull namespace, and the others were read
// since it came.
func (c *crowded) check(t *rapid.T) {
	for i, o := range c.objects {
		got := c.Usage(i)
		if c.uses(o) && got.State == lifecycle.Unused {
			t.Fatalf("%v is unused, but named", o)
		}
		why := c.Explain(i, nobody)
		if (why == "") != (got.State == lifecycle.Unused) {
			t.Fatalf("%v is %v: %q", o, got, why)
		}
		if !c.NeedsReread() && got.State == lifecycle.UsageUnknown && !c.uses(o) && !c.index.IsOverfull(o.Namespace) {
			t.Fatalf("%v may be in use, and nothing will tell: %s", o, why)
		}
		if c.index.AnyOverfull() || got.State != lifecycle.InUse {
			continue
		}
		if !c.uses(o) {
			t.Fatalf("%v is in use by nobody, and nothing is overfull: %s", o, why)
		}
	}
}

// TestRereads: referrers have more names than there is room for, and are read again from time to time, while everything changes.
func TestRereads(t *testing.T) {
	testbuilders.Checks(t, 500)
	namespaces := []string{"a", "b", "c"}
	reference := rapid.Custom(func(t *rapid.T) references.Reference {
		return references.Reference{
			To:        references.Secrets,
			Namespace: rapid.SampledFrom(append(namespaces, references.All)).Draw(t, "namespace"),
			Name:      rapid.SampledFrom([]string{"x", "y", "z", "x", "y", "z", "w", references.All}).Draw(t, "name"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		c := &crowded{
			Tracker: New[int](most), now: start, referrers: map[types.UID]referrer{}, objects: map[int]Object{},
			named: map[Object]bool{}, namedSince: map[Object]bool{},
		}
		c.SetSources([]string{"pods"}, "", c.now)
		c.BeginList("pods", c.now)
		c.EndList("pods", c.now)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				uid, namespace := types.UID(rapid.StringMatching(`u[0-3]`).Draw(t, "uid")), rapid.SampledFrom(namespaces).Draw(t, "of")
				refs := rapid.SliceOfN(reference, 0, most+2).Draw(t, "references")
				for i, r := range refs { // As collection has it.
					if r.Namespace == references.All && r.Name == references.All {
						refs[i].Namespace = namespace
					}
				}
				c.SetReferrer("pods", references.Referrer{UID: uid, Namespace: namespace, Name: string(uid)}, references.Keys(refs))
				c.referrers[uid] = referrer{namespace, refs}
				c.step(t)
			},
			"remove": func(t *rapid.T) {
				uid := types.UID(rapid.StringMatching(`u[0-3]`).Draw(t, "uid"))
				c.RemoveReferrer("pods", uid)
				delete(c.referrers, uid)
				c.step(t)
			},
			"add": func(t *rapid.T) {
				i := rapid.IntRange(0, 8).Draw(t, "object")
				if _, ok := c.objects[i]; ok {
					t.Skip()
				}
				c.objects[i] = Object{To: references.Secrets, Namespace: namespaces[i/3], Name: []string{"x", "y", "z"}[i%3]}
				c.Add(i, c.objects[i], time.Time{}, c.now)
				c.see()
			},
			"delete": func(t *rapid.T) {
				i := rapid.IntRange(0, 8).Draw(t, "object")
				c.Delete(i)
				delete(c.named, c.objects[i])
				delete(c.objects, i)
			},
			"begin a reread": func(*rapid.T) {
				if number, overfull := c.BeginReread(); number > 0 {
					c.reread, c.unread = number, nil
					for uid, r := range c.referrers {
						if slices.Contains(overfull, r.namespace) {
							c.unread = append(c.unread, uid)
						}
					}
					slices.Sort(c.unread)
					clear(c.namedSince)
					c.see()
				}
			},
			"reread": func(t *rapid.T) {
				if len(c.unread) == 0 {
					t.Skip()
				}
				r := c.referrers[c.unread[0]]
				c.unread = c.unread[1:]
				c.Reread(r.namespace, references.Keys(r.refs))
				c.step(t)
			},
			"end a reread": func(t *rapid.T) {
				if c.reread == 0 || len(c.unread) > 0 {
					t.Skip()
				}
				c.EndReread(c.reread)
				c.reread, c.named = 0, maps.Clone(c.namedSince)
				c.step(t)
				for i, o := range c.objects {
					if got := c.Usage(i); got.State == lifecycle.InUse && !c.named[o] {
						t.Fatalf("%v is in use, but nothing has named it since the reread has begun: %s", o, c.Explain(i, nobody))
					}
				}
			},
			"time": func(*rapid.T) { c.now = c.now.Add(time.Second) },
			"":     c.check,
		})
	})
}

// TestOverfull: the messages to users, and a namespace with too many names holds its own objects, the objects that it names, and no others.
func TestOverfull(t *testing.T) {
	tr := New[string](2)
	settle := func() {
		for more := true; more; {
			_, more = tr.Step(1, start)
		}
	}
	tr.SetSources([]string{"configmaps"}, "", start)
	tr.BeginList("configmaps", start)
	tr.EndList("configmaps", start)
	add := func(namespace, name string) {
		tr.Add(namespace+"/"+name, Object{references.Secrets, namespace, name}, time.Time{}, start)
	}
	add("crowd", "mine")
	add("shop", "named")
	add("shop", "other")
	keys := references.Keys([]references.Reference{
		{To: references.Secrets, Namespace: "crowd", Name: "a"}, {To: references.Secrets, Namespace: "crowd", Name: "b"},
		{To: references.Secrets, Namespace: "shop", Name: "named"}, {To: references.Secrets, Namespace: "shop", Name: "later"},
	})
	tr.SetReferrer("configmaps", references.Referrer{UID: "u", Namespace: "crowd", Name: "many"}, keys)
	settle()
	say := func(of string, state lifecycle.UsageState, want string) {
		t.Helper()
		if got := tr.Explain(of, func(string) bool { return true }); got != want || tr.Usage(of).State != state {
			t.Errorf("%s: %v %q, want %v %q", of, tr.Usage(of).State, got, state, want)
		}
	}
	crowded := "configmaps/many may refer to everything in the namespace: the objects of the namespace have more than 2 names together"
	say("crowd/mine", lifecycle.UsageUnknown, crowded)
	say("shop/named", lifecycle.InUse, "an object outside the namespace refers to it")
	say("shop/other", lifecycle.Unused, "")
	add("shop", "later")
	add("shop", "new")
	for _, name := range []string{"shop/later", "shop/new"} {
		if got := tr.Explain(name, nobody); tr.Usage(name).State != lifecycle.UsageUnknown || !strings.Contains(got, "has not read them again yet") {
			t.Errorf("%s is %v: %q", name, tr.Usage(name), got)
		}
	}
	number, namespaces := tr.BeginReread()
	if fmt.Sprint(namespaces) != "[crowd]" {
		t.Fatalf("reread are %v", namespaces)
	}
	tr.Reread("crowd", keys)
	settle()
	tr.EndReread(number)
	settle()
	say("shop/later", lifecycle.InUse, "an object outside the namespace refers to it")
	say("shop/new", lifecycle.Unused, "")
	outdated, _ := tr.BeginReread()
	add("shop", "latest")
	tr.RemoveReferrer("configmaps", "u")
	settle()
	tr.SetReferrer("configmaps", references.Referrer{UID: "u", Namespace: "crowd", Name: "many"}, keys)
	settle()
	tr.EndReread(outdated) // It tells nothing: meanwhile no namespace was overfull.
	settle()
	say("shop/latest", lifecycle.Unused, "")
	tr.RemoveReferrer("configmaps", "u")
	settle()
	for _, of := range []string{"crowd/mine", "shop/named", "shop/later"} {
		say(of, lifecycle.Unused, "")
	}
	if len(tr.rereads.pending) > 0 || tr.NeedsReread() {
		t.Errorf("something is left: %v", tr.rereads)
	}
}
