// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/rules/turns"
)

const (
	// refusedFor is for how long a notice is not sent again that the receiver has refused.
	refusedFor = 10 * time.Minute
	// demandedMost is how many notices of a namespace one request has, unless no other namespace has any.
	demandedMost = 50
)

// Tracker knows which notices the receiver must acknowledge.
type Tracker interface {
	// NamespacesToDeliver returns the namespaces that may have such notices, sorted, and NoticesToDeliver up to most of one namespace, except
	// those of some objects. NoticeDelivered says that the notice of an object was acknowledged that was given at a time, and which time for
	// its deletion the receiver has read.
	NamespacesToDeliver() []string
	NoticesToDeliver(namespace string, except func(of types.UID) bool, most int, now time.Time) []view.DeletionNotice
	NoticeDelivered(of types.UID, given, named, now time.Time)
}

// demanded are the notices that the receiver must acknowledge. They wait in the engine, which knows what is stored, until they can be sent:
// so a receiver that is down costs no memory here, and a new leader goes on. All fields but leading belong to Run.
type demanded struct {
	clock   clock.Clock
	tracker Tracker
	leading atomic.Bool
	// sent are the objects whose notices are on the way, and refused those whose notices the receiver has refused not long ago.
	sent    sets.Set[types.UID]
	refused *cache.Expiring
	last    string // the namespace whose turn was last
}

func newDemanded(c clock.Clock, t Tracker) *demanded {
	return &demanded{clock: c, tracker: t, sent: sets.Set[types.UID]{}, refused: cache.NewExpiringWithClock(c)}
}

// take returns the next notices. Namespaces take turns.
func (d *demanded) take(now time.Time) (out []notice) {
	if !d.leading.Load() {
		return nil
	}
	except := func(of types.UID) bool {
		_, refused := d.refused.Get(of)
		return refused || d.sent.Has(of)
	}
	namespaces := d.tracker.NamespacesToDeliver()
	most := demandedMost
	if len(namespaces) == 1 {
		most = batchMost
	}
	for _, namespace := range turns.After(d.last, namespaces) {
		if len(out) >= batchMost {
			break
		}
		d.last = namespace
		all := d.tracker.NoticesToDeliver(namespace, except, min(most, batchMost-len(out)), now)
		for i := range all {
			n := &demandedNotice{newAnnouncement(&all[i], all[i].Given, all[i].AcknowledgedAt(now)), d, now}
			d.sent.Insert(n.Object.UID)
			out = append(out, n)
		}
	}
	return out
}

// forget forgets what is on the way.
func (d *demanded) forget() { clear(d.sent) }

// demandedNotice is a notice that the receiver must acknowledge.
type demandedNotice struct {
	*announcement
	of    *demanded
	taken time.Time // when the receiver had not acknowledged it yet
}

func (n *demandedNotice) settle(acknowledged bool) {
	uid, now := n.Object.UID, n.of.clock.Now()
	n.of.sent.Delete(uid)
	switch {
	case !acknowledged:
		n.of.refused.Set(uid, true, refusedFor)
	case !now.Round(0).Before(n.taken.Round(0)): // Otherwise the clock was set back, and the notice is sent again.
		n.of.tracker.NoticeDelivered(uid, n.GivenAt, n.DeletedFrom, now)
	}
}

// lasting: it is stored that the notice was given, and not that it was acknowledged.
func (n *demandedNotice) lasting() bool { return true }
