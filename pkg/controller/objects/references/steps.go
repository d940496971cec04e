// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

// task is what remains to be done with keys of a group.
type task struct {
	what  what
	group *group
	keys  []Key
	// begins says that this is the first task of a wide group, and ends that it is the last.
	begins, ends bool
}

type what uint8

const (
	counting    what = iota // the keys count from now on
	discounting             // the keys no longer count
	dropping                // there is no room for the keys
)

// Done is what a Step has done.
type Done struct {
	// Changed are the keys that are now in use and were not, and those that no longer are.
	Changed []Key
	// Dropped are keys of referrers in Namespace that are not stored, because there is no room. The caller must handle those that name objects
	// in other namespaces. In their own, everything may be used.
	Dropped   []Key
	Namespace string
	// More says that there is more to do.
	More bool
}

func (x *Index) do(t task) { x.tasks = append(x.tasks, t) }

// Step takes in at most so many keys of what was set and removed.
func (x *Index) Step(most int) (d Done) {
	if len(x.tasks) == 0 {
		x.tasks = nil
		return d
	}
	t := &x.tasks[0]
	n := min(most, len(t.keys))
	keys := t.keys[:n]
	switch t.keys = t.keys[n:]; t.what {
	case counting:
		d.Changed = x.count(t.group, keys)
	case discounting:
		d.Changed = x.discount(t.group, keys)
	case dropping:
		d.Dropped, d.Namespace = keys, t.group.namespace
	}
	if len(t.keys) == 0 {
		x.finish(t)
		*t = task{}
		x.tasks = x.tasks[1:]
	}
	d.More = len(x.tasks) > 0
	return d
}

// finish counts the wide groups. One counts from before its keys are dropped until what its members refer to instead is counted.
func (x *Index) finish(t *task) {
	switch namespace := t.group.namespace; {
	case t.begins:
		x.overfull[namespace]++
	case t.ends:
		if x.overfull[namespace]--; x.overfull[namespace] == 0 {
			delete(x.overfull, namespace)
		}
	}
}

// Finish takes in everything, for those who do not care about other namespaces.
func (x *Index) Finish() (changed []Key) {
	for more := true; more; {
		d := x.Step(len(x.tasks) + MaxKeys)
		changed, more = append(changed, d.Changed...), d.More
	}
	return changed
}

// count counts a group for keys of it, and returns those that are in use only now.
func (x *Index) count(g *group, keys []Key) (changed []Key) {
	for _, k := range keys {
		c := x.counts[k]
		if c.groups++; c.groups == 1 {
			c.example = g
			changed = append(changed, k)
		}
		x.counts[k] = c
	}
	return changed
}

// discount undoes count, and returns the keys that are no longer in use.
func (x *Index) discount(g *group, keys []Key) (changed []Key) {
	for _, k := range keys {
		c := x.counts[k]
		if c.groups--; c.groups == 0 {
			delete(x.counts, k)
			changed = append(changed, k)
			continue
		}
		if c.example == g {
			c.example = nil
		}
		x.counts[k] = c
	}
	return changed
}
