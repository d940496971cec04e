// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

// controlledResources are the resources that the controllers of Kubernetes delete.
var controlledResources = []schema.GroupResource{
	jobs, pods, workflows, configMaps, secrets, serviceAccounts, replicaSets, cronJobs, quotas, policies,
	{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"},
}

// collectGarbage does what the controllers of Kubernetes do: it deletes what has lost its owner, or whose namespace ends.
func (s *simulation) collectGarbage() {
	owners, ending, left := map[types.UID]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range controlledResources {
		for _, o := range s.store.Objects(r) {
			owners[o.Meta.UID] = true
		}
	}
	for _, ns := range s.store.Objects(namespaces) {
		ending[ns.Meta.Name] = ns.Meta.DeletionTimestamp != nil
	}
	for _, r := range controlledResources {
		for _, o := range s.store.Objects(r) {
			ends := ending[o.Meta.Namespace]
			left[o.Meta.Namespace] = left[o.Meta.Namespace] || ends
			s.collect(r, o, ends, ends || len(o.Meta.OwnerReferences) > 0 && !owners[o.Meta.OwnerReferences[0].UID])
		}
	}
	for name := range ending {
		if ending[name] && !left[name] {
			s.store.Finish(name)
		}
	}
}

// collect deletes an object that has to go, or removes its finalizers, in time, if its namespace ends.
func (s *simulation) collect(r schema.GroupResource, o *apiserver.Object, ends, goes bool) {
	if goes && o.Meta.DeletionTimestamp == nil {
		_, err := s.store.Delete(r, keyOf(o), &metav1.DeleteOptions{})
		s.try("collect "+o.Meta.Name, err)
	} else if ends && s.percent(20) {
		s.finalize(r, o)
	}
}

// finalize removes the finalizers of an object, as their controller does.
func (s *simulation) finalize(r schema.GroupResource, o *apiserver.Object) {
	_, err := s.store.Update(r, keyOf(o), func(c map[string]any) error {
		delete(c["metadata"].(map[string]any), "finalizers")
		return nil
	})
	s.try("finalize "+o.Meta.Name, err)
}
