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
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// The types of events. A later version of the same type only adds fields to its data.
const (
	TypeDeletion = "dev.winnow.gc.deletion.v1"
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
	DueAt      time.Time  `json:"dueAt"`
	DeletedAt  time.Time  `json:"deletedAt"`
	// ServiceAccount is the account of the namespace as which Winnow deleted the object; empty for Winnow itself.
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// Hold is the data of a TypeHold event: a change waits for approval, or does no longer.
type Hold struct {
	ID    string `json:"id"`
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

// Dropped is the data of a TypeDropped event: how many events the receiver did not get since an earlier batch.
type Dropped struct {
	Since time.Time `json:"since"`
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

func deletionEvent(g *deletion.Gone) event.Event {
	f := g.Fact
	d := Deletion{
		Object: Object{Resource: f.Resource, Namespace: f.Namespace, Name: f.Name, UID: f.UID},
		Policy: Policy{Namespace: g.Policy.Namespace, Name: g.Policy.Name, UID: g.PolicyUID, Generation: g.PolicyGeneration},
		Rule:   g.Rule, Trigger: metrics.Trigger(g.Order), Reason: string(g.Reason),
		DueAt: g.Due.UTC(), DeletedAt: g.At.UTC(), ServiceAccount: g.Account,
	}
	d.Object.APIVersion, d.Object.Kind = g.Kind.GroupVersionKind.ToAPIVersionAndKind()
	if c := f.Controller; c != nil {
		d.Owner = &Owner{Group: c.Group, Kind: c.Kind, Name: c.Name, UID: c.UID}
	}
	if !f.FinishedAt.IsZero() {
		at := f.FinishedAt.UTC()
		d.FinishedAt = &at
	}
	subject := path.Join(f.Resource, f.Namespace, f.Name)
	return newEvent(TypeDeletion, d.Policy.source(), subject, string(f.UID)+"/deletion", g.At, d)
}

func (c *holdChange) event(now time.Time) event.Event {
	h, of := &c.hold, &c.policy
	owner := h.Owner(types.NamespacedName{Namespace: of.Namespace, Name: of.Name})
	d := Hold{
		ID: h.ID, Phase: c.phase, Policy: *of, ApprovePolicy: gc.PolicyTitle(owner.Namespace, owner.Name),
		Namespace: h.Namespace, Resources: h.Resources, Objects: h.Objects, Why: h.Why,
	}
	if h.Since != nil {
		at := h.Since.UTC()
		d.Since = &at
	}
	part, at := "/ended", now
	if c.phase == phaseFound {
		part = "/found"
		d.ListCommand, d.ApproveCommand = gc.ListCommand(h.Resources, h.Namespace), h.ApproveCommand(of.Namespace, of.Name)
		if d.Since != nil {
			at = *d.Since
		}
	}
	subject := path.Join(gc.PolicyResource(of.Namespace), of.Namespace, of.Name)
	return newEvent(TypeHold, of.source(), subject, string(of.UID)+"/"+h.ID+part, at, d)
}

func droppedEvent(d dropped, id string, now time.Time) event.Event {
	return newEvent(TypeDropped, apiPath, "", id, now, Dropped{Since: d.since.UTC(), QueueFull: d.queueFull, Refused: d.refused})
}
