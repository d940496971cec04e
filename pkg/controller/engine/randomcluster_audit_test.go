// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// tally counts deletions as the status of a policy promises: a deletion counts once it is accepted and the object is seen removed. Without an
// answer it counts if no newer state was seen in between, except one that is being deleted.
type tally struct {
	counts   map[key]int64
	uids     map[key]types.UID
	accepted map[types.UID]*deletion.Order
	// unanswered are the orders without an answer, and seen the newest states that were delivered.
	unanswered map[types.UID]*deletion.Order
	seen       map[types.UID]*lifecycle.Fact
	gone       map[types.UID]bool
}

func newTally() tally {
	return tally{
		map[key]int64{}, map[key]types.UID{}, map[types.UID]*deletion.Order{}, map[types.UID]*deletion.Order{}, map[types.UID]*lifecycle.Fact{},
		map[types.UID]bool{},
	}
}

// audit compares the reports with the cluster, if all events are delivered and no order is in flight.
func (m *machine) audit(t *rapid.T) {
	skipUnless(t, m.covered && m.policies.allDelivered() && m.namespaces.allDelivered() && m.jobs.allDelivered() && len(m.orders)+len(m.answers) == 0)
	m.driver.Expire(m.now)
	type sums struct{ candidates, due, deleted int64 }
	for _, name := range simNamespaces {
		ns, policies := m.namespaces.now()[name], m.policies.now()
		want, got := map[string]sums{}, map[string]sums{}
		for k := range policies {
			if k.namespace == name {
				want[k.name] = sums{deleted: m.tally.counts[k]}
			}
		}
		for _, j := range m.jobs.now() {
			decides := ""
			for _, k := range sortedKeys(policies) {
				if k.namespace == j.namespace && j.namespace == name && !policies[k].preview &&
					(decides == "" || later(policies[k].ttl, policies[key{name, decides}].ttl)) {
					decides = k.name
				}
			}
			if decides == "" || j.finished.IsZero() || ns.protected || ns.terminating {
				continue
			}
			s := want[decides]
			s.candidates++
			if j.terminating || due(j, policies, m.now) {
				s.due++
			}
			want[decides] = s
		}
		for _, r := range m.driver.Reports(name) {
			s := sums{r.Candidates, r.Due, r.Deleted}
			if r.Mode == gc.ModePreview { // Named tests check which objects a preview counts.
				s = sums{deleted: r.Deleted}
			}
			got[r.Name] = s
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("namespace %s: reports %v, want %v", name, got, want)
		}
	}
}

func later(a, b int) bool { return b != never && (a == never || a > b) }

// drain runs until nothing is left to do. Then everything that is due must be deleted, and everything else must still exist.
func (m *machine) drain(t *rapid.T) {
	for range 2000 {
		m.drainOnce(t)
		next, ok := m.driver.Next()
		if !ok && !m.driver.NeedsRead(m.now) {
			break
		}
		m.now = m.now.Add(100 * time.Millisecond)
		if ok && next.After(m.now) {
			m.now = next
		}
	}
	m.drainOnce(t)
	policies := m.policies.now()
	for k, j := range m.jobs.now() {
		ns := m.namespaces.now()[k.namespace]
		if rec := m.driver.Records.Get(j.uid); rec != nil && rec.Flags.Has(memory.Recreated) {
			continue // There are few names, so objects are often recreated. Named tests check when these are held.
		}
		if due(j, policies, m.now) && !ns.protected && !ns.terminating {
			t.Fatalf("%+v is due and was not deleted: %+v", j, m.driver.Records.Get(j.uid))
		}
	}
	m.auditAtRest(t)
}

// drainOnce does everything that can be done at the current time.
func (m *machine) drainOnce(t *rapid.T) {
	m.deliverAll()
	m.cover()
	for len(m.merges) > 0 {
		m.endMerge(0)
	}
	m.driver.Expire(m.now)
	m.driver.ConfirmFresh(m.consistentRead(), m.now)
	for o, ok := m.driver.Take(m.now); ok; o, ok = m.driver.Take(m.now) {
		m.orders = append(m.orders, o)
	}
	for len(m.orders) > 0 {
		m.send(t, m.orders[0], fault{result: deletion.Accepted})
		m.orders = m.orders[1:]
	}
	for len(m.answers) > 0 {
		m.endAnswer(0)
	}
	for _, j := range m.jobs.now() {
		if j.terminating {
			gone := *j
			gone.finalizer = false
			m.deleteJob(gone)
		}
	}
	m.deliverAll()
}

// auditAtRest audits the reports and the records after all events were delivered.
func (m *machine) auditAtRest(t *rapid.T) {
	if m.covered {
		m.audit(t)
	}
	for name, ns := range m.driver.Namespaces {
		for position, rec := range ns.Records {
			if m.jobs.now()[key{name, rec.Name()}] == nil || m.driver.Records.Get(rec.UID()) != rec || int(rec.Position) != position {
				t.Fatalf("%s/%s does not exist, but is still tracked", name, rec.Name())
			}
		}
	}
}

func (c *tally) policies(seen map[key]*simPolicy) {
	for k, uid := range c.uids {
		if p := seen[k]; p == nil || p.uid != uid {
			delete(c.uids, k)
			delete(c.counts, k)
		}
	}
	for k, p := range seen {
		c.uids[k] = p.uid
	}
}

func (c *tally) accept(o *deletion.Order) {
	if c.gone[o.Fact.UID] {
		c.count(o)
	} else {
		c.accepted[o.Fact.UID] = o
	}
}

// lose handles that there is no answer.
func (c *tally) lose(o *deletion.Order) {
	switch last := c.seen[o.Fact.UID]; {
	case last != nil && last.ResourceVersion > o.Fact.ResourceVersion && !last.Terminating:
	case c.gone[o.Fact.UID]:
		c.count(o)
	default:
		c.unanswered[o.Fact.UID] = o
	}
}

// see handles states that are delivered.
func (c *tally) see(all ...*lifecycle.Fact) {
	for _, f := range all {
		if last := c.seen[f.UID]; last != nil && last.ResourceVersion >= f.ResourceVersion {
			continue
		}
		c.seen[f.UID] = f
		if o := c.unanswered[f.UID]; o != nil && f.ResourceVersion > o.Fact.ResourceVersion && !f.Terminating {
			delete(c.unanswered, f.UID)
		}
	}
}

func (c *tally) remove(uid types.UID) {
	c.gone[uid] = true
	if o := c.accepted[uid]; o != nil {
		c.count(o)
	} else if o := c.unanswered[uid]; o != nil {
		c.count(o)
	}
	delete(c.accepted, uid)
	delete(c.unanswered, uid)
}

func (c *tally) count(o *deletion.Order) {
	if k := (key{o.Policy.Namespace, o.Policy.Name}); c.uids[k] == o.PolicyUID {
		c.counts[k]++
	}
}
