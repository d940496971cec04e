// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assessment is what the leader stores of its assessments: holds with their members, and what it has assessed. The next leader
// knows from this what must wait, and which changes nobody has assessed yet. The package is plain data, and where it is placed.
package assessment

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Format is the format of the contents. An object of a higher format cannot be read.
const Format = 1

// The names of objects. ClusterName is the only one; the others are followed by a number.
const (
	ClusterName      = "cluster"
	HoldsPrefix      = "holds-"
	NamespacesPrefix = "namespaces-"
)

// Object is one stored object. Its name says which of the contents it has.
type Object struct {
	Name            string `json:"-"`
	ResourceVersion string `json:"-"`
	// Seen is the newest version of each resource that its writer knew.
	Seen map[string]uint64 `json:"seen,omitempty"`

	Holds      *Holds      `json:"holds,omitempty"`
	Namespaces []Namespace `json:"namespaces,omitempty"`
	Cluster    *Cluster    `json:"cluster,omitempty"`
}

// Holds are some holds, each with some of its members. A hold with many members is in several objects.
type Holds struct {
	Holds []Hold `json:"holds,omitempty"`
}

// Hold is a hold in one namespace.
type Hold struct {
	ID        string `json:"id"`
	Namespace string `json:"namespace"`
	// Owner is the UID of the policy whose annotation approves the hold; empty if that policy has left the namespace.
	Owner types.UID `json:"owner,omitempty"`
	// Former are IDs that the hold had before members were added.
	Former []string `json:"former,omitempty"`
	// Total says that the hold exceeds the limit of all namespaces together.
	Total bool `json:"total,omitempty"`
	// Since is when the change was observed, Why what it was.
	Since time.Time `json:"since,omitzero"`
	Why   string    `json:"why,omitempty"`
	// Number is the number of the assessment of the namespace that last added members; see Namespace.Number. If the namespace has a lower
	// one, the change of the hold is still pending.
	Number  uint64      `json:"number"`
	Members []types.UID `json:"members"`
}

// Namespace says what was assessed in a namespace with policies: everything that people can change and that decides what is due there.
type Namespace struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// Number counts the assessments of the namespace.
	Number uint64 `json:"number"`
	Inputs
	// LabelsSeen is the newest resource version of a namespace that the assessment knew.
	LabelsSeen uint64 `json:"labelsSeen,omitempty"`
	// Unlisted are the resources that could not be listed.
	Unlisted []string `json:"unlisted,omitempty"`
	// HoldAbove is the strictest limit that has applied since a change that is not fully assessed, because a policy is suspended; or else
	// the limit that applies.
	HoldAbove *Limit `json:"holdAbove,omitempty"`
	// Counts are what the changes of the last minutes made due without an approval.
	Counts []Count `json:"counts,omitempty"`
}

// Inputs are what decides what is due in a namespace.
type Inputs struct {
	// Stopped is why nothing is deleted there; empty if objects may be.
	Stopped string `json:"stopped,omitempty"`
	// Kinds is a digest of the kinds of objects that the policies delete, and of the rules of this release.
	Kinds string `json:"kinds,omitempty"`
	// Policies are the policies and cluster policies that apply, by UID.
	Policies []Policy `json:"policies,omitempty"`
	// Quotas are the numbers of objects that quotas allow, by the UID of the quota.
	Quotas map[types.UID]string `json:"quotas,omitempty"`
}

// Equal reports whether the same is due by both. Titles do not matter.
func (i *Inputs) Equal(o *Inputs) bool {
	same := func(a, b Policy) bool { return a.UID == b.UID && a.Generation == b.Generation && a.Digest == b.Digest }
	return i.Stopped == o.Stopped && i.Kinds == o.Kinds && slices.EqualFunc(i.Policies, o.Policies, same) && maps.Equal(i.Quotas, o.Quotas)
}

// Policy is a state of a policy.
type Policy struct {
	UID        types.UID `json:"uid"`
	Title      string    `json:"title"`
	Wide       bool      `json:"wide,omitempty"` // a cluster policy
	Generation int64     `json:"generation"`
	// Digest is of the spec, or says why it cannot be read.
	Digest string `json:"digest,omitempty"`
}

// Limit is what cluster policies set for holds. A negative number means no limit.
type Limit struct {
	Objects   int    `json:"objects"`
	Total     int    `json:"total"`
	ObjectsOf string `json:"objectsOf,omitempty"` // the cluster policy that sets it
	TotalOf   string `json:"totalOf,omitempty"`
}

// Count is how many objects a change made due at a time. Policies are the cluster policies whose changes count together in all namespaces.
type Count struct {
	At       time.Time   `json:"at"`
	Objects  int         `json:"objects"`
	Policies []types.UID `json:"policies,omitempty"`
}

// AddCount adds a count. Counts of the same minute become one, so that frequent changes need no more room.
func AddCount(all []Count, c Count) []Count {
	for i := range all {
		if same := &all[i]; same.At.Truncate(time.Minute).Equal(c.At.Truncate(time.Minute)) && slices.Equal(same.Policies, c.Policies) {
			same.At, same.Objects = c.At, same.Objects+c.Objects
			return all
		}
	}
	return append(all, c)
}

// Cluster says who leads. Term counts the leaders. Holds is how many objects of holds there are: if one is missing, somebody has deleted
// it, because the leader keeps them even without holds.
type Cluster struct {
	Leader string `json:"leader"`
	Term   uint64 `json:"term"`
	Holds  int    `json:"holds,omitempty"`
}

// Validate returns why an object cannot be used; nil if it can.
func (o *Object) Validate() error {
	switch {
	case o.Name == ClusterName:
		return o.only(o.Cluster != nil && o.Cluster.Leader != "", o.Holds == nil && len(o.Namespaces) == 0)
	case strings.HasPrefix(o.Name, HoldsPrefix):
		if err := o.only(o.Holds != nil, o.Cluster == nil && len(o.Namespaces) == 0); err != nil {
			return err
		}
		return o.Holds.validate()
	case strings.HasPrefix(o.Name, NamespacesPrefix):
		if err := o.only(len(o.Namespaces) > 0, o.Cluster == nil && o.Holds == nil); err != nil {
			return err
		}
		return validateNamespaces(o.Namespaces)
	}
	return fmt.Errorf("%q is no name of stored assessments", o.Name)
}

func (o *Object) only(has, only bool) error {
	switch {
	case !has:
		return fmt.Errorf("%s lacks its contents", o.Name)
	case !only:
		return fmt.Errorf("%s has contents of another object", o.Name)
	}
	return nil
}

func (h *Holds) validate() error {
	for i := range h.Holds {
		switch hold := &h.Holds[i]; {
		case hold.ID == "":
			return fmt.Errorf("hold %d has no ID", i)
		case hold.Namespace == "":
			return fmt.Errorf("hold %s has no namespace", hold.ID)
		}
	}
	return nil
}

func validateNamespaces(all []Namespace) error {
	known := sets.New[types.UID]()
	for i := range all {
		switch uid := all[i].UID; {
		case uid == "":
			return errors.New("a namespace has no UID")
		case known.Has(uid):
			return fmt.Errorf("namespace %s is there twice", uid)
		}
		known.Insert(all[i].UID)
	}
	return nil
}
