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

const exempt = references.Exemptions + "secrets"

var start = time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)

// naive says the same as a Tracker, from scratch.
type naive struct {
	undiscovered bool
	sources      map[string]*naiveSource
	objects      map[int]*naiveObject
}

type naiveSource struct {
	listed, failing bool
	referrers       map[types.UID][]references.Reference
	unlisted        map[types.UID]bool
}

type naiveObject struct {
	Object
	since     time.Time
	seenInUse bool
}

func (n *naive) known() bool {
	for _, s := range n.sources {
		if !s.listed || s.failing {
			return false
		}
	}
	return !n.undiscovered
}

func (n *naive) use(o *naiveObject) references.Use {
	out := references.Unused
	for _, s := range n.sources {
		for _, refs := range s.referrers {
			for _, r := range refs {
				if r.To&o.To == 0 || r.Namespace != o.Namespace && r.Namespace != references.All {
					continue
				}
				switch r.Name {
				case o.Name:
					return references.Used
				case references.All:
					out = references.Unknown
				}
			}
		}
	}
	return out
}

func (n *naive) refresh(now time.Time) {
	for _, o := range n.objects {
		switch use := n.use(o); {
		case use == references.Used:
			o.since, o.seenInUse = time.Time{}, true
		case use == references.Unused && n.known() && o.since.IsZero():
			o.since = now
		}
	}
}

func (n *naive) usage(o *naiveObject) lifecycle.Usage {
	switch use := n.use(o); {
	case use == references.Used:
		return lifecycle.Usage{State: lifecycle.InUse}
	case use == references.Unused && n.known():
		return lifecycle.Usage{State: lifecycle.Unused, Since: o.since}
	}
	return lifecycle.Usage{Since: o.since}
}

func nobody(string) bool { return false }

// TestTracker: sources come, fail and are listed again, referrers and objects come and go, in any order.
func TestTracker(t *testing.T) {
	testbuilders.Checks(t, 500)
	namespaces, names, sources := []string{"a", "b"}, []string{"x", "y"}, []string{"pods", "secrets", exempt}
	tos := []references.To{references.Secrets, references.ConfigMaps}
	reference := rapid.Custom(func(t *rapid.T) references.Reference {
		return references.Reference{
			To:        rapid.SampledFrom(append(tos, references.Secrets|references.ConfigMaps)).Draw(t, "to"),
			Namespace: rapid.SampledFrom(append(namespaces, references.All)).Draw(t, "namespace"),
			Name:      rapid.SampledFrom(append(names, names[0], names[1], references.All)).Draw(t, "name"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		tr, model, now := New[int](references.MaxKeys), &naive{undiscovered: true, sources: map[string]*naiveSource{}, objects: map[int]*naiveObject{}}, start
		check := func(changed Changed[int], before map[int]lifecycle.Usage) {
			for more := true; more; {
				var c Changed[int]
				c, more = tr.Step(rapid.IntRange(1, 3).Draw(t, "keys"), now)
				changed.add(c)
			}
			model.refresh(now)
			for i, o := range model.objects {
				want := model.usage(o)
				if got := tr.Usage(i); got != want {
					t.Fatalf("object %d: got %v, want %v", i, got, want)
				}
				if b, ok := before[i]; ok && b != want && !changed.All && !slices.Contains(changed.Namespaces, o.Namespace) && !slices.Contains(changed.Objects, i) {
					t.Fatalf("object %d has changed from %v to %v, and only %v was said to", i, b, want, changed)
				}
				if why := tr.Explain(i, nobody); (why == "") != (want.State == lifecycle.Unused) {
					t.Fatalf("object %d is %v: %q", i, want, why)
				}
			}
			if (tr.Unknown() == "") != model.known() {
				t.Fatalf("unknown because of %q, want %t", tr.Unknown(), !model.known())
			}
		}
		usages := func() map[int]lifecycle.Usage {
			out := map[int]lifecycle.Usage{}
			for i, o := range model.objects {
				out[i] = model.usage(o)
			}
			return out
		}
		source := func(t *rapid.T) (string, *naiveSource) {
			name := rapid.SampledFrom(sources).Draw(t, "source")
			return name, model.sources[name]
		}
		t.Repeat(map[string]func(*rapid.T){
			"sources": func(t *rapid.T) {
				before, present, why := usages(), rapid.SliceOfNDistinct(rapid.SampledFrom(sources), 1, 3, rapid.ID).Draw(t, "present"), ""
				if model.undiscovered = rapid.IntRange(0, 5).Draw(t, "undiscovered") == 3; model.undiscovered {
					why = "discovery failed"
				}
				maps.DeleteFunc(model.sources, func(name string, _ *naiveSource) bool { return !slices.Contains(present, name) })
				for _, name := range present {
					if model.sources[name] == nil {
						model.sources[name] = &naiveSource{referrers: map[types.UID][]references.Reference{}, unlisted: map[types.UID]bool{}}
					}
				}
				check(tr.SetSources(present, why, now), before)
			},
			"failing": func(t *rapid.T) {
				before := usages()
				name, s := source(t)
				why := rapid.SampledFrom([]string{"", "forbidden"}).Draw(t, "why")
				if s != nil {
					s.failing = why != ""
				}
				check(tr.Failing(name, why, now), before)
			},
			"begin a list": func(t *rapid.T) {
				before := usages()
				name, s := source(t)
				if s != nil {
					s.listed = false
					for uid := range s.referrers {
						s.unlisted[uid] = true
					}
				}
				check(tr.BeginList(name, now), before)
			},
			"end a list": func(t *rapid.T) {
				before := usages()
				name, s := source(t)
				if s != nil {
					s.listed, s.failing = true, false
					for uid := range s.unlisted {
						delete(s.referrers, uid)
					}
					clear(s.unlisted)
				}
				check(tr.EndList(name, now), before)
			},
			"set": func(t *rapid.T) {
				before := usages()
				name, s := source(t)
				r := references.Referrer{
					UID: types.UID(rapid.StringMatching(`u[0-5]`).Draw(t, "uid")), Namespace: rapid.SampledFrom(namespaces).Draw(t, "of"), Name: "n",
				}
				refs := rapid.SliceOfN(reference, 0, 2).Draw(t, "references")
				if s != nil {
					s.referrers[r.UID] = refs
					delete(s.unlisted, r.UID)
				}
				tr.SetReferrer(name, r, references.Keys(refs))
				check(Changed[int]{}, before)
			},
			"remove": func(t *rapid.T) {
				before := usages()
				name, s := source(t)
				uid := types.UID(rapid.StringMatching(`u[0-5]`).Draw(t, "uid"))
				if s != nil {
					delete(s.referrers, uid)
					delete(s.unlisted, uid)
				}
				tr.RemoveReferrer(name, uid)
				check(Changed[int]{}, before)
			},
			"add": func(t *rapid.T) {
				i := rapid.IntRange(0, 5).Draw(t, "object")
				if model.objects[i] != nil {
					t.Skip()
				}
				o := &naiveObject{Object: Object{To: tos[i%2], Namespace: namespaces[i/2%2], Name: names[i/4]}}
				if rapid.Bool().Draw(t, "marked") {
					o.since = now.Add(-time.Hour)
				}
				model.objects[i] = o
				tr.Add(i, o.Object, o.since, now)
				check(Changed[int]{}, nil)
			},
			"delete": func(t *rapid.T) {
				i := rapid.IntRange(0, 5).Draw(t, "object")
				delete(model.objects, i)
				tr.Delete(i)
				check(Changed[int]{}, nil)
			},
			"adopt": func(t *rapid.T) {
				i := rapid.IntRange(0, 5).Draw(t, "object")
				at := now.Add(-time.Duration(rapid.IntRange(0, 100).Draw(t, "seconds ago")) * time.Second)
				o := model.objects[i]
				adopts := o != nil && model.use(o) != references.Used && !o.since.Equal(at) && (!o.seenInUse || !o.since.IsZero() && at.After(o.since))
				if adopts {
					o.since = at
				}
				if got := tr.Adopt(i, at); got != adopts {
					t.Fatalf("adopted %t, want %t", got, adopts)
				}
				check(Changed[int]{}, nil)
			},
			"time": func(*rapid.T) { now = now.Add(10*time.Second + 7*time.Millisecond) },
			"": func(t *rapid.T) {
				if len(model.objects) == 0 && len(tr.buckets[0])+len(tr.buckets[1])+len(tr.buckets[2])+len(tr.objects) > 0 {
					t.Fatalf("something is left: %v", tr)
				}
			},
		})
	})
}

// TestExplain: people are told which object is the reason.
func TestExplain(t *testing.T) {
	tr := New[string](references.MaxKeys)
	all := func(string) bool { return true }
	say := func(of, want string) {
		t.Helper()
		if got := tr.Explain(of, all); got != want {
			t.Errorf("%s: %q, want %q", of, got, want)
		}
	}
	set := func(source, namespace, name string, refs ...references.Reference) {
		tr.SetReferrer(source, references.Referrer{UID: types.UID(source + name), Namespace: namespace, Name: name}, references.Keys(refs))
		tr.Step(100, start)
	}
	for _, name := range []string{"unused", "token", "tls", "web", "any"} {
		tr.Add(name, Object{references.Secrets, "shop", name}, time.Time{}, start)
	}
	say("unused", "the resources of the cluster are not known yet")
	sources := []string{"pods", "gateways.gateway.networking.k8s.io", "widgets.example.com", exempt}
	tr.SetSources(sources, "", start)
	say("unused", "Winnow has not listed all exempt secrets yet")
	tr.Failing("pods", "pods cannot be listed", start)
	for _, s := range sources[1:] {
		tr.BeginList(s, start)
		tr.EndList(s, start)
	}
	say("unused", "pods cannot be listed")
	tr.BeginList("pods", start)
	tr.EndList("pods", start)
	say("unused", "")
	set(exempt, "shop", "it is the token of a ServiceAccount", references.Reference{To: references.Secrets, Namespace: "shop", Name: "token"})
	set("gateways.gateway.networking.k8s.io", "edge", "public", references.Reference{To: references.Secrets, Namespace: "shop", Name: "tls"})
	for i := range 3 {
		set("pods", "shop", fmt.Sprint("web-", i), references.Reference{To: references.Secrets, Namespace: "shop", Name: "web"})
	}
	say("token", "it is the token of a ServiceAccount")
	say("tls", "an object of gateways.gateway.networking.k8s.io outside the namespace refers to it")
	if got := tr.Explain("web", nobody); got != "an object of pods and others refer to it" {
		t.Errorf("web: %q", got)
	}
	if got := tr.Explain("web", all); !strings.HasPrefix(got, "pods/web-") || !strings.HasSuffix(got, " and others refer to it") {
		t.Errorf("web: %q", got)
	}
	set("widgets.example.com", "shop", "w", references.Reference{To: references.Secrets, Namespace: "shop", Name: references.All})
	say("any", "widgets.example.com/w may refer to everything in the namespace")
}

// TestManySources: what is said of each object that is held does not take longer if there are many resources.
func TestManySources(t *testing.T) {
	tr, names := New[string](references.MaxKeys), make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprint("resources-", i)
	}
	tr.SetSources(names, "", time.Now())
	if got, want := tr.Unknown(), "Winnow has not listed all resources-0 yet"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := testing.AllocsPerRun(10, func() { tr.Unknown() }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
