// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// The phases of a hold.
const (
	// phaseFound: a change waits for approval.
	phaseFound = "Found"
	// phaseEnded: nothing waits any more. The change was approved or undone, or a later one has taken the hold over.
	phaseEnded = "Ended"
)

// holds finds out from the reports on policies what has to be told about holds. It remembers each hold that a status lists until the
// receiver knows how it stands, so nothing is dropped while the receiver is down. It is safe for concurrent use.
type holds struct {
	mu       sync.Mutex
	policies map[string]map[types.UID]*heldPolicy // by namespace and UID of the policy
	// offers are the holds of which there is something to tell, in the order in which that began.
	offers []*knownHold
	// until is when a replica that no longer leads gives up its offers; zero while it leads.
	until time.Time
	// discarded says that what was taken before is no longer to be sent.
	discarded bool
}

// heldPolicy is a policy with its holds by ID.
type heldPolicy struct {
	policy Policy
	holds  map[string]*knownHold
}

// knownHold is a hold that a report has listed.
type knownHold struct {
	policy *Policy
	listed gc.PolicyHold
	// is is the phase that the receiver should know, since at, and told the last one that it has acknowledged, or refused for good.
	is, told string
	at       time.Time
	// sent says that the receiver may know of the hold. offered says that the hold is one of the offers, or on the way.
	sent, offered bool
}

// lead begins anew: another replica may have led, so it is unknown what the receiver knows.
func (h *holds) lead() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = time.Time{}
	h.discard()
}

// follow gives up the offers some time later. The next leader makes them again.
func (h *holds) follow(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = now.Add(DrainFor)
}

// discard forgets everything. The lock must be held.
func (h *holds) discard() {
	h.policies, h.offers, h.discarded = nil, nil, true
	h.measure()
}

// stale reports whether what was taken before this call must no longer be sent.
func (h *holds) stale(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.until.IsZero() && !now.Before(h.until) && (h.policies != nil || len(h.offers) > 0) {
		h.discard()
	}
	was := h.discarded
	h.discarded = false
	return was
}

// compare finds out what has changed since the last reports on the policies of a namespace, and returns whether there is something to tell.
// More than the status lists of a policy is not told. lost is called for holds whose end is not told.
func (h *holds) compare(namespace string, reports []report.Report, now time.Time, lost func(n int)) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, after := h.policies[namespace], make(map[types.UID]*heldPolicy, len(reports))
	for i := range reports {
		r := &reports[i]
		p := before[r.Stored.UID]
		if p == nil {
			p = storedPolicy(r)
		}
		p.policy.Generation = r.Stored.Generation
		after[r.Stored.UID] = p
		if n := h.comparePolicy(p, r, now); n > 0 {
			lost(n)
		}
	}
	for uid, p := range before {
		if after[uid] == nil {
			h.comparePolicy(p, &report.Report{}, now)
		}
	}
	if h.policies == nil {
		h.policies = map[string]map[types.UID]*heldPolicy{}
	}
	if h.policies[namespace] = after; len(after) == 0 {
		delete(h.policies, namespace)
	}
	h.measure()
	return len(h.offers) > 0
}

// storedPolicy returns a policy of which this replica knows only the stored status. The replica that led before may have told the holds in
// it, so their end must be told.
func storedPolicy(r *report.Report) *heldPolicy {
	p := &heldPolicy{
		policy: Policy{Namespace: r.Stored.Namespace, Name: r.Stored.Name, UID: r.Stored.UID},
		holds:  make(map[string]*knownHold, len(r.Status.Holds)),
	}
	for _, listed := range r.Status.Holds {
		p.holds[listed.ID] = &knownHold{policy: &p.policy, listed: listed, sent: true}
	}
	return p
}

// comparePolicy compares a policy with its report. It returns how many holds it has forgotten, because too many may be among those that the
// report does not list.
func (h *holds) comparePolicy(p *heldPolicy, r *report.Report, now time.Time) (forgotten int) {
	listed := make(map[string]bool, len(r.Holds))
	for _, l := range r.Holds {
		listed[l.ID] = true
		known := p.holds[l.ID]
		if known == nil {
			known = &knownHold{policy: &p.policy}
			p.holds[l.ID] = known
		}
		since := l.Since
		if known.listed.ID != "" {
			since = known.listed.Since // It is part of the ID of the event, and must not change.
		}
		known.listed = l
		known.listed.Since = since
		known.becomes(phaseFound, now)
		h.offer(known)
	}
	unlisted := 0
	for _, old := range sorted(p.holds) {
		switch {
		case listed[old.listed.ID]:
		case r.UnlistedHolds == 0:
			delete(p.holds, old.listed.ID)
			old.becomes(phaseEnded, now)
			h.offer(old)
		case unlisted < report.HoldsListed: // It may be one of these.
			unlisted++
		default:
			delete(p.holds, old.listed.ID)
			forgotten++
		}
	}
	return forgotten
}

func (k *knownHold) becomes(phase string, now time.Time) {
	if k.is == phase {
		return
	}
	k.is, k.at = phase, now
	if phase == phaseFound && k.listed.Since != nil {
		k.at = k.listed.Since.Time
	}
}

// offer offers a hold if there is something to tell about it. The lock must be held.
func (h *holds) offer(of *knownHold) {
	if of.offered || of.is == of.told || of.is == phaseEnded && !of.sent {
		return
	}
	of.offered = true
	h.offers = append(h.offers, of)
}

// take removes the first offers. They are on the way until settle.
func (h *holds) take(time.Time) (out []notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.offers) > 0 && len(out) < batchMost {
		of := h.offers[0]
		h.offers[0] = nil
		h.offers = h.offers[1:]
		if of.is == phaseEnded && !of.sent {
			of.offered = false // It came and went while the receiver was down.
			continue
		}
		of.sent = true
		out = append(out, &holdNotice{known: of, policy: *of.policy, listed: of.listed, phase: of.is, at: of.at, holds: h})
	}
	h.measure()
	return out
}

// settle is called once the receiver knows what a notice says, or has refused it for good. The hold may have ended in the meantime.
func (h *holds) settle(n *holdNotice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n.known.told, n.known.offered = n.phase, false
	if !h.discarded {
		h.offer(n.known)
	}
	h.measure()
}

// measure sets the metric of the length. The lock must be held.
func (h *holds) measure() {
	metrics.NotificationQueue.WithLabelValues(names[holdChanges]).Set(float64(len(h.offers)))
}

// sorted returns holds in the order in which a status lists them.
func sorted(all map[string]*knownHold) (out []*knownHold) {
	listed := make([]gc.PolicyHold, 0, len(all))
	for _, of := range all {
		listed = append(listed, of.listed)
	}
	for _, l := range report.JoinHolds(listed) {
		out = append(out, all[l.ID])
	}
	return out
}
