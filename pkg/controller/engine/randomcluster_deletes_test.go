// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

type answered struct {
	order  *deletion.Order
	result deletion.Result
}

// readingWaits compares a reading with memory, and keeps it, because memory may become fresh later.
func (m *machine) readingWaits(t *rapid.T) {
	skipUnless(t, len(m.readings) > 0)
	m.driver.ConfirmFresh(m.readings[0], m.now)
}

func (m *machine) readingEnds(t *rapid.T) {
	skipUnless(t, len(m.readings) > 0)
	m.driver.ConfirmFresh(m.readings[0], m.now)
	m.readings = m.readings[1:]
}

func (m *machine) take(t *rapid.T) {
	o, ok := m.driver.Take(m.now)
	skipUnless(t, ok)
	m.orders = append(m.orders, o)
}

func (m *machine) pick(t *rapid.T) *deletion.Order {
	i := rapid.IntRange(0, len(m.orders)-1).Draw(t, "order")
	o := m.orders[i]
	m.orders = slices.Delete(m.orders, i, i+1)
	return o
}

// fault says how a request fails.
type fault struct {
	result deletion.Outcome // Accepted if nothing goes wrong
	// commits says that the server carried out the request before its answer was lost.
	commits bool
}

func (m *machine) drawFault(t *rapid.T) fault {
	return rapid.SampledFrom([]fault{
		{result: deletion.Accepted}, {result: deletion.Accepted}, {result: deletion.Accepted}, {result: deletion.RetryLater},
		{result: deletion.Refused}, {result: deletion.Unauthorized}, {result: deletion.Unknown}, {deletion.Unknown, true},
	}).Draw(t, "fault")
}

// send carries out an order as the loop does, up to the answer of the server.
func (m *machine) send(t *rapid.T, o *deletion.Order, f fault) {
	if o.Reread {
		j := m.jobs.now()[key{o.Fact.Namespace, o.Fact.Name}]
		if j == nil || j.uid != o.Fact.UID {
			m.answers = append(m.answers, answered{o, deletion.Result{Outcome: deletion.NotFound}})
			return
		}
		settled, ok := m.driver.Retake(o, realJob(j), m.now)
		m.tally.see(realJob(j))
		if !ok {
			m.driver.Release(o, m.now)
			return
		}
		o = settled
	}
	if !m.now.Before(o.Until) {
		m.driver.Release(o, m.now)
		return
	}
	m.answers = append(m.answers, answered{o, deletion.Result{Outcome: m.request(t, o, f)}})
}

// request acts as the API server: it checks preconditions, and fails if the object must not be deleted.
func (m *machine) request(t *rapid.T, o *deletion.Order, f fault) deletion.Outcome {
	if f.result != deletion.Accepted && !f.commits {
		return f.result
	}
	outcome := deletion.Accepted
	switch j := m.jobs.now()[key{o.Fact.Namespace, o.Fact.Name}]; {
	case j == nil:
		outcome = deletion.NotFound
	case j.uid != o.Fact.UID || uint64(j.version) != o.Fact.ResourceVersion:
		outcome = deletion.Conflict
	case m.deleted[j.uid] || j.terminating:
		t.Fatalf("a second DELETE of %+v", j)
	case !m.mayDelete(j):
		t.Fatalf("a DELETE of %+v at %v, which must stay", j, m.now.Sub(testbuilders.Now))
	default:
		m.deleted[j.uid] = true
		m.deleteJob(*j)
	}
	if f.commits {
		return deletion.Unknown
	}
	return outcome
}

func (m *machine) answer(t *rapid.T) {
	skipUnless(t, len(m.answers) > 0)
	i := rapid.IntRange(0, len(m.answers)-1).Draw(t, "answer")
	m.endAnswer(i)
}

func (m *machine) endAnswer(i int) {
	a := m.answers[i]
	m.answers = slices.Delete(m.answers, i, i+1)
	m.driver.Done(a.order, a.result, m.now)
	if a.result.Outcome == deletion.Accepted {
		m.tally.accept(a.order)
	} else if a.result.Unanswered() {
		m.tally.lose(a.order)
	}
}

// work makes deletions likely: it does at once what otherwise takes four random steps in the right order.
func (m *machine) work(t *rapid.T) {
	r := m.consistentRead()
	if rapid.Bool().Draw(t, "barrier") {
		r = m.barrierRead()
	}
	m.driver.ConfirmFresh(r, m.now)
	m.driver.Expire(m.now)
	for o, ok := m.driver.Take(m.now); ok; o, ok = m.driver.Take(m.now) {
		m.send(t, o, m.drawFault(t))
	}
	for len(m.answers) > 0 {
		m.endAnswer(0)
	}
}

// lag changes a policy, and delivers no event for more than a second while deletes go on.
func (m *machine) lag(t *rapid.T) {
	m.work(t)
	m.policy(t)
	m.now = m.now.Add(time.Second)
	m.work(t)
}
