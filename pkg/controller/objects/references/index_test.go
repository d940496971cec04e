// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// naive says the same as an Index, from scratch.
type naive map[naiveID]naiveReferrer

type naiveID struct {
	source string
	uid    types.UID
}

type naiveReferrer struct {
	example
	refs     []Reference
	unlisted bool
}

type example struct {
	source string
	Referrer
}

// use returns whether an object is used, and by whom.
func (n naive) use(to To, namespace, name string) (Use, []example) {
	var named, unknown []example
	for _, r := range n {
		matches := func(name string) bool {
			return slices.ContainsFunc(r.refs, func(f Reference) bool {
				return f.To&to != 0 && (f.Namespace == namespace || f.Namespace == All) && f.Name == name
			})
		}
		r.UID = ""
		if matches(name) {
			named = append(named, r.example)
		}
		if matches(All) {
			unknown = append(unknown, r.example)
		}
	}
	switch {
	case named != nil:
		return Used, named
	case unknown != nil:
		return Unknown, unknown
	}
	return Unused, nil
}

func (n naive) keys() map[Key]bool {
	out := map[Key]bool{}
	for _, r := range n {
		for _, f := range r.refs {
			out[f.Key()] = true
		}
	}
	return out
}

// TestIndex: referrers come, change, are renamed and go, in any order.
func TestIndex(t *testing.T) {
	testbuilders.Checks(t, 300)
	namespaces, names := []string{"a", "b", "c"}, []string{"x", "y", "z"}
	reference := rapid.Custom(func(t *rapid.T) Reference {
		return Reference{
			To:        rapid.SampledFrom([]To{Secrets, ConfigMaps, both}).Draw(t, "to"),
			Namespace: rapid.SampledFrom(append(namespaces, All)).Draw(t, "namespace"),
			Name:      rapid.SampledFrom(append(names, names[0], All)).Draw(t, "name"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		x, model := NewIndex(MaxKeys), naive{}
		sources := []*Source{x.Source("pods"), x.Source("jobs.batch")}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				s, r := rapid.SampledFrom(sources).Draw(t, "source"), Referrer{
					UID:       types.UID(rapid.StringMatching(`u[0-9]`).Draw(t, "uid")),
					Namespace: rapid.SampledFrom(namespaces).Draw(t, "of"),
					Name:      rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "referrer"),
				}
				refs := rapid.SliceOfN(reference, 0, 3).Draw(t, "references")
				before, id := model.keys(), naiveID{s.Name(), r.UID}
				s.Set(r, Keys(refs))
				if model[id] = (naiveReferrer{example: example{s.Name(), r}, refs: refs}); len(refs) == 0 {
					delete(model, id)
				}
				checkChanged(t, finish(t, x), before, model.keys())
			},
			"remove": func(t *rapid.T) {
				s, uid := rapid.SampledFrom(sources).Draw(t, "source"), types.UID(rapid.StringMatching(`u[0-9]`).Draw(t, "uid"))
				before := model.keys()
				delete(model, naiveID{s.Name(), uid})
				s.Remove(uid)
				checkChanged(t, finish(t, x), before, model.keys())
			},
			"begin a list": func(t *rapid.T) {
				s := rapid.SampledFrom(sources).Draw(t, "source")
				s.BeginList()
				for id, r := range model {
					r.unlisted = r.unlisted || id.source == s.Name()
					model[id] = r
				}
			},
			"end a list": func(t *rapid.T) {
				s, before := rapid.SampledFrom(sources).Draw(t, "source"), model.keys()
				maps.DeleteFunc(model, func(id naiveID, r naiveReferrer) bool { return id.source == s.Name() && r.unlisted })
				s.EndList()
				checkChanged(t, finish(t, x), before, model.keys())
			},
			"": func(t *rapid.T) {
				for _, to := range []To{Secrets, ConfigMaps} {
					for _, namespace := range append(namespaces, "d") {
						for _, name := range append(names, "w") {
							checkUse(t, x, model, to, namespace, name)
						}
					}
				}
				if len(model) == 0 && len(x.groups)+len(x.counts)+len(x.rooms)+len(x.tasks) > 0 {
					t.Fatalf("something is left: %v", x)
				}
			},
		})
	})
}

// finish takes in everything in small steps.
func finish(t *rapid.T, x *Index) (changed []Key) {
	for more := true; more; {
		d := x.Step(rapid.IntRange(1, 2).Draw(t, "keys"))
		changed, more = append(changed, d.Changed...), d.More
	}
	return changed
}

func checkChanged(t *rapid.T, changed []Key, before, after map[Key]bool) {
	for k := range after {
		if before[k] == slices.Contains(changed, k) {
			t.Fatalf("key %d: used before %t, and changed %t", k, before[k], !before[k])
		}
	}
	for k := range before {
		if after[k] == slices.Contains(changed, k) {
			t.Fatalf("key %d: used after %t, and changed %t", k, after[k], !after[k])
		}
	}
	slices.Sort(changed)
	if n := len(changed); len(slices.Compact(changed)) != n {
		t.Fatalf("changed twice: %v", changed)
	}
}

func checkUse(t *rapid.T, x *Index, model naive, to To, namespace, name string) {
	use, by := model.use(to, namespace, name)
	if got := x.Used(to, namespace, name); got != use {
		t.Fatalf("%d %s/%s: got %d, want %d", to, namespace, name, got, use)
	}
	source, referrer, others := x.Example(to, namespace, name)
	if others != (len(by) > 1) || (source == "") != (len(by) == 0) || len(by) > 0 && !slices.Contains(by, example{source, referrer}) {
		t.Fatalf("%d %s/%s: got %s %v and others %t, want of %v", to, namespace, name, source, referrer, others, by)
	}
}

// TestSameHash: two groups with the same hash stay separate.
func TestSameHash(t *testing.T) {
	x := NewIndex(MaxKeys)
	pods := x.Source("pods")
	keysOfA, keysOfB := Keys([]Reference{{Secrets, "ns", "a"}}), Keys([]Reference{{Secrets, "ns", "b"}})
	pods.Set(Referrer{UID: "a", Namespace: "ns", Name: "a"}, keysOfA)
	pods.Set(Referrer{UID: "b", Namespace: "ns", Name: "b"}, keysOfB)
	x.Finish()
	hashOfA, hashOfB := pods.hash("ns", keysOfA), pods.hash("ns", keysOfB)
	first, second := x.groups[hashOfA], x.groups[hashOfB]
	first.next, second.hash = second, hashOfA // As if they had the same hash.
	delete(x.groups, hashOfB)
	pods.Remove("a")
	if changed := x.Finish(); !slices.Equal(changed, keysOfA) {
		t.Errorf("got %v", changed)
	}
	if x.groups[hashOfA] != second || x.Used(Secrets, "ns", "b") != Used || x.Used(Secrets, "ns", "a") != Unused {
		t.Error("the other group is lost")
	}
}

// pod returns a Pod of a template that names three objects, with a token as each Pod has it.
func pod(template, n int) *corev1.Pod {
	name := fmt.Sprintf("web-%d-7d4b9c5f6d-%05d", template, n)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fmt.Sprintf("team-%d", template%50), UID: types.UID(fmt.Sprintf("8b7f2c1e-0000-4000-8000-%012d", n))},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "example.com/web:1", EnvFrom: []corev1.EnvFromSource{
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprintf("credentials-of-web-%d", template)}}},
			}}},
			Volumes: []corev1.Volume{
				{Name: "c", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprintf("configuration-of-web-%d", template)}}}},
				{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
				}}}},
			},
		},
	}
}

// refsOf returns the references of a Pod that was decoded into a Go type.
func refsOf(b *testing.B, p *corev1.Pod) []Reference {
	content, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		b.Fatal(err)
	}
	refs, err := Builtin("pods").References(content)
	if err != nil || len(refs) != 3 {
		b.Fatal(refs, err)
	}
	return refs
}

// heap returns how many bytes more are in use after a function, as long as what it returns is.
func heap(f func() any) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

// BenchmarkMemory: what a reference costs with 100,000 Pods of 1,000 templates, beside the names in a slice.
func BenchmarkMemory(b *testing.B) {
	const pods, templates = 100_000, 1000
	for name, store := range map[string]func() any{
		"index": func() any {
			x := NewIndex(MaxKeys)
			s := x.Source("pods")
			for n := range pods {
				p := pod(n%templates, n)
				s.Set(Referrer{UID: p.UID, Namespace: p.Namespace, Name: p.Name}, Keys(refsOf(b, p)))
				x.Finish()
			}
			return s
		},
		"slices": func() any {
			all := map[types.UID][]string{}
			for n := range pods {
				p := pod(n%templates, n)
				refs := refsOf(b, p)
				names := make([]string, 0, len(refs))
				for _, r := range refs {
					names = append(names, strings.Clone(r.Name))
				}
				all[p.UID] = names
			}
			return all
		},
	} {
		b.Run(name, func(b *testing.B) {
			var bytes float64
			for b.Loop() {
				bytes = heap(store)
			}
			b.ReportMetric(bytes/pods/3, "B/reference")
			b.ReportMetric(bytes/pods, "B/pod")
		})
	}
}

// BenchmarkPod: Pods are decoded into a Go type, and come and go all the time.
func BenchmarkPod(b *testing.B) {
	p, x := pod(1, 1), NewIndex(MaxKeys)
	s := x.Source("pods")
	r := Referrer{UID: p.UID, Namespace: p.Namespace, Name: p.Name}
	b.Run("convert", func(b *testing.B) {
		for b.Loop() {
			if _, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(p); err != nil {
				b.Fatal(err)
			}
		}
	})
	content, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := Builtin("pods").References(content); err != nil {
				b.Fatal(err)
			}
		}
	})
	refs := refsOf(b, p)
	b.Run("keys", func(b *testing.B) {
		for b.Loop() {
			Keys(refs)
		}
	})
	keys := Keys(refs)
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			s.Set(r, keys)
			s.Remove(r.UID)
			x.Finish()
		}
	})
}
