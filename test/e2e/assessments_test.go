// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"

	"github.com/winnow-dev/winnow/pkg/controller/write/assessments"
	"github.com/winnow-dev/winnow/test/winnow"
)

// storedMembers returns the UIDs of the objects that are stored as members of the hold of this ID in a namespace.
func storedMembers(t *testing.T, ns, id string) sets.Set[types.UID] {
	t.Helper()
	config, err := suite.UserConfig(winnow.User, "system:serviceaccounts", "system:serviceaccounts:"+winnow.Namespace)
	must(t, err)
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	list, err := client.Resource(assessments.Resource).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	out := sets.New[types.UID]()
	for i := range list.Items {
		o, err := assessments.Decode(&list.Items[i])
		must(t, err)
		if o.Holds == nil {
			continue
		}
		for _, h := range o.Holds.Holds {
			if h.Namespace == ns && h.ID == id {
				out.Insert(h.Members...)
			}
		}
	}
	return out
}

// uidsOfJobs returns the UIDs of all Jobs in a namespace.
func uidsOfJobs(t *testing.T, ns string) sets.Set[types.UID] {
	t.Helper()
	list, err := kube.BatchV1().Jobs(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	out := sets.New[types.UID]()
	for i := range list.Items {
		out.Insert(list.Items[i].UID)
	}
	return out
}

// wantStored fails unless exactly the Jobs of a namespace are stored as members of a hold.
func wantStored(t *testing.T, ns, id string) {
	t.Helper()
	if got, want := storedMembers(t, ns, id), uidsOfJobs(t, ns); !got.Equal(want) {
		t.Errorf("%d members of hold %s in %s are stored, want the %d Jobs", len(got), id, ns, len(want))
	}
}
