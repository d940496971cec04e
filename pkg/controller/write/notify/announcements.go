// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"path"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
)

// Notice is the data of an event about an object that was given notice of its deletion.
type Notice struct {
	Object Object `json:"object"`
	Owner  *Owner `json:"owner,omitempty"`
	Policy Policy `json:"policy"`
	// Rule is empty if a ceiling of the policy decides.
	Rule string `json:"rule,omitempty"`
	// Reason is why the object is due, or will be.
	Reason string    `json:"reason"`
	DueAt  time.Time `json:"dueAt"`
	// GivenAt is when the notice was given, and DeletedFrom when the object is deleted at the earliest.
	GivenAt     time.Time `json:"givenAt"`
	DeletedFrom time.Time `json:"deletedFrom"`
	// Keep says how to keep the object for longer.
	Keep string `json:"keep"`
}

// announcement is an object that was given notice.
type announcement struct {
	Notice
	id string
}

// newAnnouncement returns the notice of an object that was given at a time, and is deleted from another time on at the earliest.
func newAnnouncement(d *view.DeletionNotice, given, from time.Time) *announcement {
	f := d.Fact
	n := Notice{
		Object: Object{Resource: f.Resource, Namespace: f.Namespace, Name: f.Name, UID: f.UID}, Owner: ownerOf(f.Controller),
		Policy: Policy{Namespace: d.Policy.Namespace, Name: d.Policy.Name, UID: d.PolicyUID, Generation: d.PolicyGeneration},
		Rule:   d.Rule, Reason: string(d.Reason), DueAt: d.Due.UTC(), GivenAt: given.UTC(), DeletedFrom: from.UTC(), Keep: d.Keep,
	}
	n.Object.APIVersion, n.Object.Kind = d.Kind.ToAPIVersionAndKind()
	// A leader that ends before the notice is stored leaves it to the next one to give it again: that is the same event. An object that is due
	// later than its first notice said is given another.
	id := n.DueAt
	if d.Required() { // It is stored, so it is the same for all leaders. One that is given anew must not be taken for it.
		id = n.GivenAt
	}
	return &announcement{n, string(f.UID) + "/notice/" + id.Format(time.RFC3339)}
}

func (a *announcement) event(sourcePrefix string, _ time.Time) event.Event {
	o := &a.Object
	return newEvent(TypeNotice, sourcePrefix+a.Policy.source(), path.Join(o.Resource, o.Namespace, o.Name), a.id, a.GivenAt, a.Notice)
}

func (a *announcement) settle(bool)    {}
func (a *announcement) lasting() bool  { return false }
func (a *announcement) about() *Object { return &a.Object }

// size is about how much memory the event takes until it is sent.
func (a *announcement) size() int {
	o := &a.Object
	n := 512 + len(o.APIVersion) + len(o.Kind) + len(o.Resource) + len(o.Namespace) + len(o.Name) + len(o.UID) +
		len(a.Policy.Name) + len(a.Rule) + len(a.Keep)
	if a.Owner != nil {
		n += len(a.Owner.Group) + len(a.Owner.Kind) + len(a.Owner.Name) + len(a.Owner.UID)
	}
	return n
}
