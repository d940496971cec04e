// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// outlives is how long an extended Job must exist after the time at which it was due before.
const outlives = 2 * time.Second

// sight is something that the demonstration must show. how is empty until it was seen.
type sight struct {
	what, how string
	look      func(*model, time.Time) string
}

func allSights() []sight {
	return []sight{
		{what: "kept by rule", look: (*model).seeKept},
		{what: "held by finalizer", look: (*model).seeHeld},
		{what: "extended, kept", look: (*model).seeExtended},
		{what: "explained", look: (*model).seeExplained},
		{what: "rest gone", look: (*model).seeRest},
		{what: "last 3 kept", look: (*model).seeLast},
		{what: "kept for minTTL", look: (*model).seeMinimum},
		{what: "held, then approved", look: (*model).seeApproved},
	}
}

// look looks for sights that were not seen yet. Only Winnow's log and status and the objects count, and not the forecast.
func (m *model) look(now time.Time) {
	if m.sights == nil {
		m.sights = allSights()
	}
	if len(m.missing()) == 0 {
		return
	}
	for i := range m.sights {
		s := &m.sights[i]
		if s.how == "" {
			if s.how = s.look(m, now); s.how != "" {
				m.tell(now, "SEEN %s: %s", s.what, s.how)
			}
		}
	}
	if len(m.missing()) == 0 {
		m.tell(now, "SEEN all: press Ctrl-C to end, or look around")
	}
}

func (m *model) missing() []string {
	var out []string
	for _, s := range m.sights {
		if s.how == "" {
			out = append(out, s.what)
		}
	}
	return out
}

// first returns one of the first objects by its name; nil if it was not observed yet.
func (m *model) first(name string) *object {
	for _, o := range m.objects {
		if o.fact.Namespace == namespace && o.fact.Name == name {
			return o
		}
	}
	return nil
}

// seeKept requires that a failed Job exists longer than a successful one that finished at the same time or later, and that the status of a
// policy shows that the failed Job is kept for more than a minute.
func (m *model) seeKept(now time.Time) string {
	failure := m.first(failing)
	if failure == nil || failure.fact.Outcome != gc.OutcomeFailed || !failure.gone.IsZero() || !failure.deleting.IsZero() {
		return ""
	}
	next := m.nextDeletion(namespace, failuresPolicy)
	for _, o := range m.objects {
		if o.deletion != nil && !o.deletion.FinishedAt.Before(failure.fact.FinishedAt) && next.After(now.Add(time.Minute)) {
			return fmt.Sprintf("%s, until %s by %s/%s", nameOf(failure.fact), clock(next), namespace, failuresPolicy)
		}
	}
	return ""
}

// seeHeld requires one delete, that the object still exists, and that the status of a policy says what the object waits for.
func (m *model) seeHeld(time.Time) string {
	o := m.first(finalized)
	if o == nil || o.deletes != 1 || o.deleting.IsZero() || !o.gone.IsZero() {
		return ""
	}
	said := m.words(o, "")
	if !strings.HasPrefix(said, string(policy.ReasonTerminating)) || !strings.Contains(said, holdFinalizer) {
		return ""
	}
	return nameOf(o.fact) + ", " + said
}

// seeExtended requires that the extended Job exists after it was due before the extension, and that the status of its policy shows that.
func (m *model) seeExtended(now time.Time) string {
	e := m.extension
	if e == nil || now.Before(e.due.Add(outlives)) || !e.at.Before(e.due) {
		return ""
	}
	o := m.objects[e.uid]
	next := m.nextDeletion(namespace, reportsPolicy)
	if o == nil || !o.gone.IsZero() || !o.deleting.IsZero() || o.deletes > 0 || !next.After(e.due) {
		return ""
	}
	return fmt.Sprintf("%s, extended %s before it was due, until %s", nameOf(o.fact), seconds(e.due.Sub(e.at)), clock(next))
}

// seeExplained requires that the candidates of the namespace were shown, each with what happens to it.
func (m *model) seeExplained(time.Time) string {
	shown := 0
	for line := range strings.Lines(m.candidates) {
		switch cells := strings.Fields(line); strings.Join(cells[:min(2, len(cells))], " ") {
		case "jobs.batch/" + failing + " Waiting", "jobs.batch/" + extended + " Waiting", "jobs.batch/" + finalized + " Terminating":
			shown++
		}
	}
	if shown < 3 {
		return ""
	}
	return fmt.Sprintf("%s, %s and %s, by the command %s", failing, extended, finalized, explainCommand)
}

// seeRest requires that all first objects that Winnow must delete are gone, each after one delete by Winnow.
func (m *model) seeRest(time.Time) string {
	var latest delay
	for _, name := range goers {
		o := m.first(name)
		if o == nil || o.gone.IsZero() || o.deletes != 1 {
			return ""
		}
		latest = max(latest, o.deletion.Delay)
	}
	return fmt.Sprintf("%d objects deleted, at most %d ms late", len(goers), time.Duration(latest).Milliseconds())
}

// seeLast requires that a policy counts only the Jobs that finished last, and that Winnow deleted the others.
func (m *model) seeLast(time.Time) string {
	builds := slices.DeleteFunc(m.within(recentNamespace), func(o *object) bool { return o.fact.Name == scratch })
	if len(builds) != buildJobs || m.policy(recentNamespace, keepLast).Status.Candidates != lastKept {
		return ""
	}
	kept := builds[buildJobs-lastKept:]
	for i, o := range builds {
		if went := !o.gone.IsZero() && o.deletes == 1; !o.fact.Finished || went == slices.Contains(kept, o) || o.deletes != 0 && !went {
			return ""
		}
		if i > 0 && o.fact.FinishedAt.Before(builds[i-1].fact.FinishedAt) {
			return ""
		}
	}
	return fmt.Sprintf("of %d, the %d that finished last, from %s on", buildJobs, lastKept, nameOf(kept[0].fact))
}

// seeMinimum requires that a Job with a TTL of zero is not due before the minTTL of the cluster policy.
func (m *model) seeMinimum(time.Time) string {
	for _, o := range m.within(recentNamespace) {
		if o.fact.Name == scratch && !o.gone.IsZero() && o.deletes == 1 && o.deletion.Due.Sub(o.deletion.FinishedAt) == minTTL {
			return fmt.Sprintf("%s, ttl 0s by %s, deleted %s after it finished", nameOf(o.fact), o.deletion.Policy, minTTL)
		}
	}
	return ""
}

// seeApproved requires that all Jobs under a hold are deleted after the approval, and none before.
func (m *model) seeApproved(time.Time) string {
	if m.approval == nil || m.approval.Objects != backlogJobs || m.policy(backlogNamespace, sweep).Status.Deleted != backlogJobs {
		return ""
	}
	for _, o := range m.within(backlogNamespace) {
		if o.gone.IsZero() || o.deletes != 1 || o.deletion.at().Before(m.approval.at) {
			return ""
		}
	}
	return fmt.Sprintf("%d Jobs by %s/%s, none before hold %s was approved", backlogJobs, backlogNamespace, sweep, m.approval.ID)
}
