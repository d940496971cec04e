// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation runs two whole replicas of Winnow against a simulated API server, in one process and in a time of its own. A seed
// draws what users do, in which order messages arrive, and what goes wrong.
package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/pki"
	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

const (
	// between is the mean time between two things that users do.
	between = 3 * time.Second
	// settle is how long after the last fault nothing that is due may be left.
	settle = 10 * time.Minute
	// controlled is how often the controllers of Kubernetes look, and bookmarked how often watches get a bookmark.
	controlled, bookmarked = 10 * time.Second, time.Minute
	// quiet is after how long without a fault everything is known and assessed.
	quiet = 3 * time.Minute
	// starting is after how long a replica that starts has seen everything.
	starting = 30 * time.Second
	// kept is for how long the store keeps what has changed.
	kept = 15 * time.Minute
)

// Result is what one seed led to.
type Result struct {
	Seed      uint64
	Messages  int            // that were delivered
	Digest    string         // of all messages in their order: runs with the same digest were the same
	Seconds   int            // that were simulated
	Objects   int            // that users created
	Replicas  int            // that were started
	Deletes   map[string]int // that were carried out, by resource
	Deadlines int            // that were set, changed or removed
	Older     int            // of the DELETEs and deadlines, right only by what a replica knew because of a fault
	Faults    []string
	Refused   []string // requests of users that should have been carried out
}

func (s *simulation) result() *Result {
	s.unexpectedLock.Lock()
	defer s.unexpectedLock.Unlock()
	return &Result{
		Seed: s.seed, Messages: s.steps, Digest: fmt.Sprintf("%x", s.digest), Seconds: int(time.Since(s.began).Seconds()), Objects: s.created,
		Replicas: s.started, Deletes: s.judge.deletes, Deadlines: s.judge.deadlines, Older: s.judge.byOld,
		Faults: s.judge.faults, Refused: s.refused,
	}
}

// simulation is one run.
type simulation struct {
	*network

	seed     uint64
	began    time.Time
	ctx      context.Context
	dir      string
	random   *rand.Rand // of what users do, and of faults
	proxies  *pki.Authority
	judge    *judge
	replicas []*replica
	started  int
	created  int
	// control and bookmark are when the controllers of Kubernetes look next, and when watches get the next bookmark.
	control, bookmark time.Time
	// skewUntil is when the clock of the API server is right again.
	skewUntil time.Time
	// disturbed is when watches were disturbed, or a CustomResourceDefinition came or went, and look when the judge looks for what is late.
	disturbed, look time.Time
	// held is what waited for approval when the judge looked at heldAt; nil if policies have changed since.
	held   map[string]gc.PolicyHold
	heldAt time.Time
	// times are how many times as often as usual things happen, by what often draws.
	times map[string]int
	// names are the names of the namespaces of users.
	names []string
	// writes is how often users write policies, of 200 things that they do.
	writes int
	// behind is how far each replica may be behind by faults, until a time.
	behind map[string]lag

	unexpectedLock sync.Mutex
	refused        []string // requests of users that should have been carried out
}

func newSimulation(ctx context.Context, dir string, seed uint64) (*simulation, error) {
	proxies, err := pki.NewAuthority("proxy", time.Now().Add(-time.Hour), time.Now().AddDate(30, 0, 0))
	if err != nil {
		return nil, err
	}
	judge := newJudge()
	store := apiserver.NewStore(time.Now, judge.observe, resources()...)
	s := &simulation{
		network: newNetwork(store, rand.New(rand.NewPCG(seed, 1))), ctx: ctx, dir: dir, random: rand.New(rand.NewPCG(seed, 2)), proxies: proxies,
		seed: seed, began: time.Now(), behind: map[string]lag{}, times: map[string]int{}, judge: judge,
	}
	judge.holdAbove = draw(s, 3, 8, 8, 20) // Few, so that changes are held.
	s.names = []string{"a", "b", "c", "d"}[:draw(s, 1, 2, 4)]
	s.writes = draw(s, 1, 2, 6, 16)
	store.PageMost = draw(s, 0, 0, 0, 10)
	s.network.unanswered, s.network.brokenOff = draw(s, 0, 0, 20), draw(s, 0, 2)
	judge.store, judge.lag, judge.sees, judge.uses.unseen = store, s.lagOf, s.seesSince, s.unseen
	s.network.patched, s.network.wrote = judge.patched, judge.changed
	s.network.deleted = func(from string, a *apiserver.Answer) {
		judge.deleted(from, a)
		s.comesBack(a.Deleted)
	}
	http.DefaultTransport = s.network
	if err := found(store, proxies.CertPEM()); err != nil {
		return nil, err
	}
	for _, ns := range s.names {
		if err := s.makeNamespace(ns); err != nil {
			return nil, err
		}
	}
	s.define()
	for range 2 {
		r, err := s.newReplica()
		if err != nil {
			return nil, err
		}
		s.replicas = append(s.replicas, r)
	}
	return s, nil
}

func (s *simulation) newReplica() (*replica, error) {
	s.started++
	r := start(s.ctx, s.dir, fmt.Sprintf("replica-%d", s.started), s.judge.holdAbove)
	client, err := newAggregator(s.proxies, r)
	r.client = client
	return r, err
}

func (s *simulation) note(format string, args ...any) {
	if s.network.trace != nil {
		fmt.Fprintf(s.network.trace, "%s    "+format+"\n", append([]any{time.Now().Format("02 15:04:05.000000")}, args...)...)
	}
}

func (s *simulation) unexpected(text string) {
	s.unexpectedLock.Lock()
	defer s.unexpectedLock.Unlock()
	s.refused = append(s.refused, text)
}

// lagOf is how far what a replica knows may be behind.
func (s *simulation) lagOf(replica string) time.Duration {
	if b := s.behind[replica]; time.Now().Before(b.until) {
		return b.by
	}
	return 0
}

// seesSince is since when a replica sees everything soon, and does not doubt the clocks.
func (s *simulation) seesSince(replica string) time.Time {
	since := later(s.behind[replica].until, s.skewUntil.Add(time.Minute))
	for _, r := range s.replicas {
		if r.host == replica {
			since = later(since, r.started.Add(starting))
		}
	}
	return since
}

// unseen is for how long a replica may not see what happens now: it lags, or starts.
func (s *simulation) unseen() time.Duration {
	var most time.Duration
	for _, r := range s.replicas {
		most = max(most, s.lagOf(r.host))
		if time.Since(r.started) < starting {
			most = max(most, starting)
		}
	}
	return most
}

// simulate runs for a time, and then without faults until nothing that is due may be left.
func (s *simulation) simulate(length time.Duration) {
	s.run(time.Now().Add(time.Minute)) // The replicas start.
	for range 2 * len(s.names) {
		s.write()
		s.run(time.Now().Add(between))
	}
	for end := time.Now().Add(length); time.Now().Before(end) && len(s.judge.faults) == 0; {
		s.run(time.Now().Add(time.Duration(s.random.ExpFloat64() * float64(between))))
		s.step()
		s.act()
		s.lookForLate()
	}
	s.heal()
	s.restartInDoubt()
	began := time.Now()
	s.pass(settle, s.approveAll)
	if left := s.judge.left(began); len(s.judge.faults) == 0 && len(left) > 0 {
		s.judge.fault("left although due: %s", strings.Join(left, "; "))
	}
	s.explain(began)
	s.unrecorded()
}

// step does what happens from time to time whatever users do.
func (s *simulation) step() {
	now := time.Now()
	if !now.Before(s.skewUntil) {
		s.skew = 0
	}
	if !now.Before(s.control) {
		s.collectGarbage()
		s.endOverdue()
		s.schedule()
		s.control = now.Add(controlled)
	}
	if !now.Before(s.bookmark) {
		for _, w := range s.store.Watches() {
			w.Bookmark()
		}
		s.bookmark = now.Add(bookmarked)
		s.judge.follow()
		s.store.Compact(now.Add(-kept))
		clear(s.judge.facts)
		clear(s.judge.policies)
	}
}

// pass lets time pass, in which nobody does anything but this.
func (s *simulation) pass(d time.Duration, this func()) {
	for end := time.Now().Add(d); time.Now().Before(end) && len(s.judge.faults) == 0; {
		s.run(time.Now().Add(controlled))
		s.step()
		this()
	}
}

func nothing() {}

// restartInDoubt restarts both replicas while they doubt the clocks, and many objects become due. Nobody has changed anything meanwhile, so
// nothing may wait for approval afterwards that did not before.
func (s *simulation) restartInDoubt() {
	began := time.Now()
	s.pass(quiet, nothing)
	s.explain(began)
	before := listedHolds(s.judge.present())
	for range draw(s, 60, 60, 60, 60, 60, 60, 60, 600) { // With 600, lists have more than one page.
		s.create()
	}
	s.skew, s.skewUntil = time.Hour, time.Now().Add(quiet)
	s.pass(quiet/2, nothing)
	for i := range s.replicas {
		s.kill(i)
	}
	s.heal()
	s.pass(quiet, nothing)
	after := s.judge.present()
	s.newlyHeld(after, before, listedHolds(after))
}

// act does something that users do, or has something go wrong.
func (s *simulation) act() {
	n := s.random.IntN(200)
	for _, a := range []struct {
		often int // of 200
		do    func()
	}{
		{55, s.create},
		{60, s.change},
		{20, s.createContent},
		{15, s.refer},
		{s.writes, s.write},
		{5, s.label},
		{1, s.endNamespace},
		{1, s.quota},
		{2, s.cronJob},
		{1, s.define},
		{9, s.approveAny},
		{4, s.createMany},
		{2, s.makeNamespaces},
		{12, s.fault},
	} {
		if n < a.often {
			a.do()
			return
		}
		n -= a.often
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
