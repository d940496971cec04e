// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

// workflows are custom resources, of which Winnow knows when they finish.
var workflows = schema.GroupResource{Group: "argoproj.io", Resource: "workflows"}

// ofWorkflow is the status of a Workflow that ended at a time.
func (s *simulation) ofWorkflow(at string) content {
	return content{"phase": draw(s, "Succeeded", "Failed", "Error"), "finishedAt": at}
}

// define creates the CustomResourceDefinition of Workflows, or may delete it with all of them.
func (s *simulation) define() {
	_, err := s.store.Create(crds, content{
		"metadata": content{"name": workflows.String()},
		"spec": content{
			"group": workflows.Group, "scope": "Namespaced", "names": content{"plural": workflows.Resource, "kind": "Workflow"},
			"versions": []any{content{"name": "v1alpha1", "served": true, "storage": true}},
		},
		"status": content{"conditions": []any{content{"type": "Established", "status": "True"}}},
	})
	s.try("create the definition of Workflows", err)
	switch {
	case err == nil:
		s.disturbed = time.Now()
	case s.percent(30):
		s.disturbed = time.Now()
		s.store.Undefine(workflows)
		s.try("delete the definition of Workflows", nil)
	}
}

// factOfWorkflow returns what matters of a Workflow, as https://argo-workflows.readthedocs.io/en/latest/fields/ explains its status.
func factOfWorkflow(o *apiserver.Object) (*lifecycle.Fact, error) {
	f, err := lifecycle.FromMetadata(workflows.String(), schema.GroupKind{Group: workflows.Group, Kind: "Workflow"}, &o.Meta)
	if err != nil {
		return nil, err
	}
	var object struct {
		Status struct {
			Phase      string
			FinishedAt time.Time
		}
	}
	mustDecode(o, &object)
	switch object.Status.Phase {
	case "Succeeded":
		f.Finished, f.Outcome = true, gc.OutcomeSucceeded
	case "Failed", "Error":
		f.Finished, f.Outcome = true, gc.OutcomeFailed
	}
	if f.Finished {
		f.FinishedAt = later(object.Status.FinishedAt, f.Created)
	}
	return f, nil
}
