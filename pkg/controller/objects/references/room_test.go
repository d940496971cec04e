// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// TestRoom: whatever comes and goes, a namespace takes no more room than it has, and what its referrers name is in use or may be, except what
// Step has said to be dropped. Other namespaces are not affected.
func TestRoom(t *testing.T) {
	testbuilders.Checks(t, 300)
	const most = 6
	namespaces := []string{"a", "b", ""}
	rapid.Check(t, func(t *rapid.T) {
		x, model, dropped := NewIndex(most), naive{}, map[string]map[Key]bool{"a": {}, "b": {}}
		sources := []*Source{x.Source("pods"), x.Source(Exemptions + "secrets")}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				s, r := rapid.SampledFrom(sources).Draw(t, "source"), Referrer{
					UID: types.UID(rapid.StringMatching(`u[0-9]`).Draw(t, "uid")), Namespace: rapid.SampledFrom(namespaces).Draw(t, "of"), Name: "n",
				}
				refs := []Reference{}
				for range rapid.IntRange(0, most+2).Draw(t, "references") {
					refs = append(refs, Reference{Secrets, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), rapid.StringMatching(`[p-w]`).Draw(t, "name")})
				}
				id := naiveID{s.Name(), r.UID}
				if model[id] = (naiveReferrer{example: example{s.Name(), r}, refs: refs}); len(refs) == 0 {
					delete(model, id)
				}
				s.Set(r, Keys(refs))
			},
			"remove": func(t *rapid.T) {
				s, uid := rapid.SampledFrom(sources).Draw(t, "source"), types.UID(rapid.StringMatching(`u[0-9]`).Draw(t, "uid"))
				delete(model, naiveID{s.Name(), uid})
				s.Remove(uid)
			},
			"": func(t *rapid.T) {
				for more := true; more; {
					d := x.Step(rapid.IntRange(1, 3).Draw(t, "keys"))
					for _, k := range d.Dropped {
						dropped[d.Namespace][k] = true
					}
					more = d.More
				}
				checkRoom(t, x, model, dropped)
			},
		})
	})
}

func checkRoom(t *rapid.T, x *Index, model naive, dropped map[string]map[Key]bool) {
	for name, r := range x.rooms {
		if r.keys > x.most {
			t.Fatalf("%s has %d keys", name, r.keys)
		}
	}
	for _, namespace := range []string{"a", "b"} {
		for name := 'p'; name <= 'x'; name++ {
			use, by := model.use(Secrets, namespace, string(name))
			got := x.Used(Secrets, namespace, string(name))
			switch {
			case got == Used && use != Used, got == Unknown && !x.IsOverfull(namespace):
				t.Fatalf("%s/%c is %d, want %d", namespace, name, got, use)
			case got == Unused && use == Used && !slices.ContainsFunc(by, func(e example) bool {
				return e.Namespace != namespace && x.IsOverfull(e.Namespace) && dropped[e.Namespace][Reference{Secrets, namespace, string(name)}.Key()]
			}):
				t.Fatalf("%s/%c is unused, and %v name it", namespace, name, by)
			}
		}
	}
	if len(model) == 0 && len(x.groups)+len(x.counts)+len(x.rooms)+len(x.overfull) > 0 {
		t.Fatalf("something is left: %v", x)
	}
}

// TestLargestIsWidened: referrers with few keys stay exact, in whatever order they come. Nothing is wide once those with many are gone.
func TestLargestIsWidened(t *testing.T) {
	x := NewIndex(10)
	s := x.Source("pods")
	set := func(name string, keys int) {
		var refs []Reference
		for i := range keys {
			refs = append(refs, Reference{ConfigMaps, "ns", fmt.Sprint(name, i)})
		}
		s.Set(Referrer{UID: types.UID(name), Namespace: "ns", Name: name}, Keys(refs))
		x.Finish()
	}
	use := func(name string, want Use) {
		t.Helper()
		if got := x.Used(ConfigMaps, "ns", name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	set("large", 8)
	set("small", 2)
	use("large0", Used)
	set("another", 2)
	use("large0", Unknown)
	use("small0", Used)
	use("another0", Used)
	if got := strings.Join(x.Overfull(), " "); got != "ns" {
		t.Errorf("overfull are %q", got)
	}
	s.Remove("large")
	x.Finish()
	use("large0", Unused)
	use("small0", Used)
	if x.AnyOverfull() {
		t.Errorf("overfull are %v", x.Overfull())
	}
	set("large", 6)
	use("large0", Used)
	use("another0", Used)
}

// BenchmarkManyNames: what 100 ConfigMaps of one namespace cost that each have 250 KiB of names.
func BenchmarkManyNames(b *testing.B) {
	const configMaps, bytes = 100, 250 << 10
	for name, most := range map[string]int{"bounded": MaxKeys, "unbounded": configMaps * bytes} {
		b.Run(name, func(b *testing.B) {
			var kept float64
			for b.Loop() {
				kept = heap(func() any {
					x := NewIndex(most)
					s := x.Source("configmaps")
					for n := range configMaps {
						refs, err := Builtin("configmaps").References(namesOf(n, bytes))
						if err != nil {
							b.Fatal(err)
						}
						s.Set(Referrer{UID: types.UID(fmt.Sprint(n)), Namespace: "ns", Name: fmt.Sprint(n)}, Keys(refs))
						x.Finish()
					}
					return x
				})
			}
			b.ReportMetric(kept/(1<<20), "MiB")
		})
	}
}

// namesOf is a ConfigMap with so many bytes of names in an annotation.
func namesOf(n, bytes int) map[string]any {
	var text strings.Builder
	for i := 0; text.Len() < bytes; i++ {
		text.WriteString(strconv.FormatInt(int64((n+2)*1_000_000+i), 36) + " ")
	}
	return map[string]any{"metadata": map[string]any{
		"name": fmt.Sprint(n), "namespace": "ns", "annotations": map[string]any{"names": text.String()},
	}}
}
