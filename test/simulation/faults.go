// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"io"
	"slices"
	"time"
)

// fault has something go wrong.
func (s *simulation) fault() {
	during := time.Duration(1+s.random.IntN(120)) * time.Second
	what := draw(s, "lag", "freeze", "undiscovered", "unanswered", "wrong", "down", "kill", "cut", "replay", "compact", "skew", "restore")
	if !s.often("fault", 15) || !s.often(what, 60) { // While something is wrong, the judge can demand less.
		return
	}
	switch what {
	case "cut", "replay", "compact":
		s.disturbWatches(what, during)
	case "skew":
		s.skew, s.skewUntil = draw(s, -time.Hour, time.Hour, 2*time.Minute), time.Now().Add(during)
		s.note("fault: the clock of the API server is off by %v for %v", s.skew, during)
	case "restore":
		s.restore(time.Duration(1+s.random.IntN(300)) * time.Second)
	default:
		s.disturb(s.random.IntN(len(s.replicas)), what, during)
	}
}

// disturb has something go wrong between one replica and the API server.
func (s *simulation) disturb(i int, what string, during time.Duration) {
	r, until := s.replicas[i], time.Now().Add(during)
	l := s.link(r.host)
	switch what {
	case "lag", "freeze":
		resource := draw(s, append(slices.Clone(judgedResources), namespaces, policies, clusterPolicies, replicaSets, serviceAccounts)...)
		by := time.Duration(1+s.random.IntN(20)) * time.Second
		if what == "freeze" {
			by = 0
		}
		s.note("fault: events of %s lag for %s by %v for %v", resource, r.host, by, during)
		l.lags[resource.String()] = lag{until, by}
		s.late(r.host, during, during)
	case "wrong":
		l.wrong, l.wrongUntil = draw(s, 5, 20, 50), until
		s.note("fault: %d%% of the requests of %s fail for %v", l.wrong, r.host, during)
		s.late(r.host, during, slowMost)
	case "undiscovered":
		s.note("fault: discovery fails for %s for %v", r.host, during)
		l.undiscovered = until
		s.late(r.host, during, during)
	case "unanswered":
		s.note("fault: half of the answers to DELETEs and PATCHes of %s are lost for %v", r.host, during)
		l.unanswered = until
		s.late(r.host, during, slowMost)
	case "down":
		s.note("fault: %s reaches nobody for %v", r.host, during)
		l.down = until
		s.late(r.host, during, during)
	case "kill":
		s.note("fault: %s is killed", r.host)
		s.kill(i)
	}
}

// disturbWatches ends all watches, with or without a compaction, or has half of them report again what they have reported.
func (s *simulation) disturbWatches(what string, past time.Duration) {
	s.note("fault: %s of watches, of the last %v if it is a replay", what, past)
	s.disturbed = time.Now()
	err := errCut
	if what == "compact" {
		s.store.Compact(time.Now().Add(-kept))
		err = io.EOF
	}
	since := s.store.RevisionAt(time.Now().Add(-past))
	for _, w := range s.store.Watches() {
		if what != "replay" {
			w.Cut(err)
		} else if s.percent(50) {
			w.Replay(since)
		}
	}
}

// restore has the store go back in time.
func (s *simulation) restore(by time.Duration) {
	at := later(time.Now().Add(-by), s.began.Add(time.Minute)) // The replicas had started by then.
	to := s.store.RevisionAt(at)
	s.judge.records.forget(func(d deletion) bool { return d.goneSince(at.Add(-recordedAtLast)) })
	bump := s.percent(50)
	s.note("fault: the store goes back by %v, from revision %d to %d; it counts on: %v", by, s.store.Revision(), to, bump)
	s.judge.follow()
	s.store.Restore(to, bump)
	s.judge.restored(to)
}

// late notes that what a replica knows may be behind for some time.
func (s *simulation) late(host string, during, by time.Duration) {
	b := s.behind[host]
	if !time.Now().Before(b.until) {
		b.by = 0
	}
	// What arrives late may be acted on a little later.
	s.behind[host] = lag{later(b.until, time.Now().Add(during+noticed+time.Minute)), max(b.by, by+noticed+slowMost)}
}

// kill ends a replica at once, as SIGKILL does, and starts another one.
func (s *simulation) kill(i int) {
	old := s.replicas[i]
	lost := recordedSoon
	if s.lagOf(old.host) > 0 {
		lost = recordedAtLast
	}
	s.judge.records.forget(func(d deletion) bool { return d.from == old.host && d.goneSince(time.Now().Add(-lost)) })
	s.link(old.host).dead = true
	old.cancel()
	r, err := s.newReplica()
	if err != nil {
		panic(err)
	}
	s.replicas = slices.Clone(s.replicas)
	s.replicas[i] = r
}

// heal ends all faults.
func (s *simulation) heal() {
	s.skew = 0
	for _, r := range s.replicas {
		l := s.link(r.host)
		l.down, l.undiscovered, l.unanswered, l.wrong, l.lags = time.Time{}, time.Time{}, time.Time{}, 0, map[string]lag{}
	}
}
