// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/oracle"
	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

const (
	// loops is after how many returns in a row Winnow holds an object.
	loops = 2
	// returnsSoon is how soon an object comes back that counts, and returnsAtLast one that may count: a replica may see late that it was gone.
	returnsSoon, returnsAtLast = 50 * time.Second, 5 * time.Minute
	// returnsMost is how often something creates an object again.
	returnsMost = 4
)

// objectName identifies an object before and after it is created again.
type objectName struct{ resource, namespace, name string }

func nameOf(f *lifecycle.Fact) objectName { return objectName{f.Resource, f.Namespace, f.Name} }

// returns are the objects that come back under their names.
type returns struct {
	of map[objectName]*returned
	// made is what something creates again, in JSON.
	made map[objectName][]byte
	// deleted are the objects that Winnow has deleted, and says of each whether its return counts surely.
	deleted map[types.UID]bool
}

// returned is how often an object has come back in a row.
type returned struct {
	// perhaps counts every return of what Winnow had deleted, and surely those that must count: it came back soon, as it was.
	perhaps, surely int
	since           time.Time // when the first that surely came back was deleted
	gone            time.Time // the last time; zero while it exists
	last            types.UID // that has gone
}

// observe takes in a change of the store.
func (r *returns) observe(resource apiserver.Resource, e apiserver.Event) {
	if !slices.Contains(judgedResources, resource.GroupResource()) {
		return
	}
	meta := &e.Object.Meta
	name := objectName{resource.GroupResource().String(), meta.Namespace, meta.Name}
	n := r.of[name]
	switch {
	case e.Type == watch.Deleted:
		if n == nil {
			n = &returned{}
			r.of[name] = n
		}
		if n.gone, n.last = e.Time, meta.UID; n.surely == 0 {
			n.since = e.Time
		}
	case e.Before == nil && n != nil:
		r.back(name, n, e.Time.Sub(n.gone))
	}
}

// back takes in that an object is there again, some time after it had gone.
func (r *returns) back(name objectName, n *returned, after time.Duration) {
	sure, byWinnow := r.deleted[n.last]
	if after > returnsAtLast || !byWinnow && n.perhaps < loops {
		delete(r.of, name)
		return
	}
	n.gone = time.Time{}
	n.perhaps++
	if n.surely++; after > returnsSoon || r.made[name] == nil || !sure {
		n.surely = 0
	}
}

// take takes in that Winnow has deleted an object. The others may decide differently, so that it counts only perhaps, while objects of the
// namespace have come back too often, which not all have seen.
func (r *returns) take(f *lifecycle.Fact) {
	r.deleted[f.UID] = true
	for name, n := range r.of {
		if there := n.gone.IsZero() || name == nameOf(f); there && name.namespace == f.Namespace && n.perhaps >= loops {
			r.deleted[f.UID] = false
		}
	}
}

// restored takes in that the store went back.
func (r *returns) restored() {
	for _, n := range r.of {
		n.surely = 0
	}
}

// perhaps are the objects that Winnow may hold because they have come back too often.
func (r *returns) perhaps(objects []*lifecycle.Fact) map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, f := range objects {
		if n := r.of[nameOf(f)]; n != nil && n.perhaps >= loops {
			out[f.UID] = true
		}
	}
	return out
}

// namespaces are those of the objects that Winnow may hold because they have come back too often.
func (r *returns) namespaces(objects []*lifecycle.Fact) sets.Set[string] {
	again, out := r.perhaps(objects), sets.Set[string]{}
	for _, f := range objects {
		if again[f.UID] {
			out.Insert(f.Namespace)
		}
	}
	return out
}

// surely reports whether a replica must hold an object, if it has seen everything since a time.
func (r *returns) surely(f *lifecycle.Fact, sees time.Time) bool {
	n := r.of[nameOf(f)]
	return n != nil && n.surely >= loops && n.since.After(sees)
}

// mayLoop returns a world in which Winnow holds what may have come back too often.
func (r *returns) mayLoop(w *oracle.World) *oracle.World {
	out := *w
	out.Recreated = r.perhaps(w.Objects)
	return &out
}

// comesBack has something create a Job, Pod or Workflow again that Winnow has deleted, for some names.
func (s *simulation) comesBack(o *apiserver.Object) {
	f := s.judge.fact(o)
	if f == nil || !f.Finishes {
		return
	}
	name, r := nameOf(f), &s.judge.returns
	if n := r.of[name]; n != nil && n.perhaps >= returnsMost {
		return
	}
	if r.made[name] == nil {
		if !s.often("return", 2) {
			return
		}
		r.made[name] = again(o)
	}
	s.send(s.upTo(returnsSoon), fmt.Sprint("create again ", name), func() {
		c := content{}
		if err := json.Unmarshal(r.made[name], &c); err != nil {
			panic(err)
		}
		resource := schema.ParseGroupResource(f.Resource)
		c["status"] = s.finished(resource)
		_, err := s.store.Create(resource, c)
		s.try(fmt.Sprint("create again ", name), err)
	})
}

// again is what creates an object again as it was.
func again(o *apiserver.Object) []byte {
	var was struct{ Spec any }
	mustDecode(o, &was)
	out, err := json.Marshal(content{
		"metadata": content{"namespace": o.Meta.Namespace, "name": o.Meta.Name, "labels": o.Meta.Labels}, "spec": was.Spec,
	})
	if err != nil {
		panic(err)
	}
	return out
}
