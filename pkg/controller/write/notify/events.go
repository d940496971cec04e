// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"path"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// The types of events. A later version of the same type only adds fields to its data.
const (
	TypeDeletion = "dev.winnow.gc.deletion.v1"
	TypeNotice   = "dev.winnow.gc.notice.v1"
	TypeHold     = "dev.winnow.gc.hold.v1"
	TypeDropped  = "dev.winnow.gc.dropped.v1"
)

// Object identifies an object. Events have nothing else of it.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Resource is the name that policies use, as "resource.group".
	Resource  string    `json:"resource"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// Owner is the controlling owner of an object.
type Owner struct {
	Group string    `json:"group,omitempty"`
	Kind  string    `json:"kind"`
	Name  string    `json:"name"`
	UID   types.UID `json:"uid"`
}

// Policy identifies a policy, and the generation that decided. A cluster policy has no namespace.
type Policy struct {
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
}

// Deletion is the data of a TypeDeletion event: an object that Winnow deleted is gone.
type Deletion struct {
	Object Object `json:"object"`
	Owner  *Owner `json:"owner,omitempty"`
	Policy Policy `json:"policy"`
	// Rule is empty if a ceiling of the policy decided.
	Rule string `json:"rule,omitempty"`
	// Trigger is what the TTL is counted from, and Reason why the object was due.
	Trigger    string     `json:"trigger"`
	Reason     string     `json:"reason"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	// WaitTimedOut says that the object did not have what its rule waits for, and had waited for long enough.
	WaitTimedOut bool      `json:"waitTimedOut,omitempty"`
	DueAt        time.Time `json:"dueAt"`
	DeletedAt    time.Time `json:"deletedAt"`
	// ServiceAccount is the account of the namespace as which Winnow deleted the object; empty for Winnow itself.
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// Hold is the data of a TypeHold event: a change waits for approval, or does no longer.
type Hold struct {
	ID string `json:"id"`
	// Phase is one of the phases in holds.go.
	Phase string `json:"phase"`
	// Policy is the one that would delete the objects. ApprovePolicy is the one whose annotation approves: usually the same.
	Policy        Policy `json:"policy"`
	ApprovePolicy string `json:"approvePolicy"`
	// Namespace is empty if the hold covers all namespaces.
	Namespace string     `json:"namespace,omitempty"`
	Resources []string   `json:"resources,omitempty"`
	Objects   int64      `json:"objects"`
	Why       string     `json:"why"`
	Since     *time.Time `json:"since,omitempty"`
	// ListCommand and ApproveCommand are empty once the hold has ended.
	ListCommand    string `json:"listCommand,omitempty"`
	ApproveCommand string `json:"approveCommand,omitempty"`
}

// Dropped is the data of a TypeDropped event: how many events the receiver did not get since an earlier request.
type Dropped struct {
	// EventType is the type of these events.
	EventType string    `json:"eventType"`
	Since     time.Time `json:"since"`
	// QueueFull were dropped because too many waited, and Refused because the receiver did not accept them.
	QueueFull int `json:"queueFull"`
	Refused   int `json:"refused"`
}

// newEvent returns an event. What has happened at the same source is identified by id, however often it is sent.
func newEvent(kind, source, subject, id string, at time.Time, data any) event.Event {
	e := event.New()
	e.SetType(kind)
	e.SetSource(source)
	e.SetSubject(subject)
	e.SetID(id)
	e.SetTime(at.UTC())
	_ = e.SetData(event.ApplicationJSON, data) // Strings, numbers and times of the API can be encoded.
	return e
}

// apiPath is the beginning of every source.
var apiPath = "/apis/" + v1alpha1.SchemeGroupVersion.String()

// source returns the path of a policy in the API.
func (p *Policy) source() string {
	if p.Namespace == "" {
		return path.Join(apiPath, "clustercleanuppolicies", p.Name)
	}
	return path.Join(apiPath, "namespaces", p.Namespace, "cleanuppolicies", p.Name)
}

// What an API server accepts has shorter names. Only references to owners are not checked: they may contain anything.
const (
	nameMost = 253
	kindMost = 63
)

// ownerOf returns an owner; nil if there is none, and for a reference that is too long to name an existing object.
func ownerOf(c *lifecycle.Owner) *Owner {
	if c == nil || len(c.Group) > nameMost || len(c.Name) > nameMost || len(c.Kind) > kindMost || len(c.UID) > kindMost {
		return nil
	}
	return &Owner{Group: c.Group, Kind: c.Kind, Name: c.Name, UID: c.UID}
}

// notice is what one event says. Only Run encodes it, because nobody who reports something should wait for that.
type notice interface {
	event(sourcePrefix string, now time.Time) event.Event
	// settle is called once, by Run: the receiver has acknowledged this event, or it is given up.
	settle(acknowledged bool)
	// lasting reports whether the event is made again by the next leader, so that it is not lost if this replica ends.
	lasting() bool
}

// deletionNotice says that an object is gone. Nothing waits for its acknowledgement.
type deletionNotice struct{ Deletion }

func newDeletionNotice(g *deletion.Gone) *deletionNotice {
	f := g.Fact
	d := Deletion{
		Object: Object{Resource: f.Resource, Namespace: f.Namespace, Name: f.Name, UID: f.UID}, Owner: ownerOf(f.Controller),
		Policy: Policy{Namespace: g.Policy.Namespace, Name: g.Policy.Name, UID: g.PolicyUID, Generation: g.PolicyGeneration},
		Rule:   g.Rule, Trigger: metrics.Trigger(g.Order), Reason: string(g.Reason),
		WaitTimedOut: g.WaitTimedOut, DueAt: g.Due.UTC(), DeletedAt: g.At.UTC(), ServiceAccount: g.Account,
	}
	d.Object.APIVersion, d.Object.Kind = g.Kind.GroupVersionKind.ToAPIVersionAndKind()
	if !f.FinishedAt.IsZero() {
		at := f.FinishedAt.UTC()
		d.FinishedAt = &at
	}
	return &deletionNotice{d}
}

func (d *deletionNotice) event(sourcePrefix string, _ time.Time) event.Event {
	o := &d.Object
	subject := path.Join(o.Resource, o.Namespace, o.Name)
	return newEvent(TypeDeletion, sourcePrefix+d.Policy.source(), subject, string(o.UID)+"/deletion", d.DeletedAt, d.Deletion)
}

func (d *deletionNotice) settle(bool)   {}
func (d *deletionNotice) lasting() bool { return false }

func (d *deletionNotice) about() *Object { return &d.Object }

// size is about how many bytes the notice takes in memory, and less than what its event takes when it is encoded.
func (d *deletionNotice) size() int {
	o := &d.Object
	n := 512 + len(o.APIVersion) + len(o.Kind) + len(o.Resource) + len(o.Namespace) + len(o.Name) + len(o.UID) +
		len(d.Policy.Name) + len(d.Rule) + len(d.ServiceAccount)
	if d.Owner != nil {
		n += len(d.Owner.Group) + len(d.Owner.Kind) + len(d.Owner.Name) + len(d.Owner.UID)
	}
	return n
}

// holdNotice says that a hold has come or ended.
type holdNotice struct {
	known  *knownHold
	policy Policy
	listed gc.PolicyHold
	phase  string
	at     time.Time
	holds  *holds
}

func (n *holdNotice) event(sourcePrefix string, _ time.Time) event.Event {
	h, of := &n.listed, &n.policy
	owner := h.Owner(types.NamespacedName{Namespace: of.Namespace, Name: of.Name})
	d := Hold{
		ID: h.ID, Phase: n.phase, Policy: *of, ApprovePolicy: gc.PolicyTitle(owner.Namespace, owner.Name),
		Namespace: h.Namespace, Resources: h.Resources, Objects: h.Objects, Why: h.Why,
	}
	// The same change may wait twice: it is made, undone, and made again.
	id := string(of.UID) + "/" + h.ID
	if h.Since != nil {
		at := h.Since.UTC()
		d.Since = &at
		id += "/" + at.Format(time.RFC3339)
	}
	part := "/ended"
	if n.phase == phaseFound {
		part = "/found"
		d.ListCommand, d.ApproveCommand = gc.ListCommand(h.Resources, h.Namespace), h.ApproveCommand(of.Namespace, of.Name)
	}
	subject := path.Join(gc.PolicyResource(of.Namespace), of.Namespace, of.Name)
	return newEvent(TypeHold, sourcePrefix+of.source(), subject, id+part, n.at, d)
}

func (n *holdNotice) settle(bool) { n.holds.settle(n) }

// lasting is false for the end of a hold: the next leader does not know of it once the status is written.
func (n *holdNotice) lasting() bool { return n.phase == phaseFound }

// droppedNotice says how many events the receiver does not get.
type droppedNotice struct {
	Dropped
	id string
}

func (d *droppedNotice) event(sourcePrefix string, now time.Time) event.Event {
	return newEvent(TypeDropped, sourcePrefix+apiPath, "", d.id, now, d.Dropped)
}

func (d *droppedNotice) settle(bool)   {}
func (d *droppedNotice) lasting() bool { return true } // Metrics count what it says.
