// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/controller/oracle"
	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

// endOverdue does what the Job controller and the kubelet do: it ends what has run for longer than its activeDeadlineSeconds.
func (s *simulation) endOverdue() {
	for _, r := range []schema.GroupResource{jobs, pods} {
		for _, o := range s.store.Objects(r) {
			if !overdue(o) {
				continue
			}
			_, err := s.store.Update(r, keyOf(o), func(c map[string]any) error {
				ended := content{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "lastTransitionTime": s.timestamp(0)}
				if r == jobs {
					c["status"].(map[string]any)["conditions"] = []any{ended}
				} else {
					c["status"] = ofPod("Failed", s.timestamp(0))
					c["status"].(content)["reason"] = "DeadlineExceeded"
				}
				return nil
			})
			s.try("end "+o.Meta.Name, err)
		}
	}
}

// overdue reports whether an object runs, and its deadline is over.
func overdue(o *apiserver.Object) bool {
	var object struct {
		Spec struct {
			ActiveDeadlineSeconds *int64
			Suspend               bool
		}
		Status struct {
			StartTime  time.Time
			Phase      string
			Conditions []any
		}
	}
	mustDecode(o, &object)
	deadline, status := object.Spec.ActiveDeadlineSeconds, object.Status
	runs := !status.StartTime.IsZero() && status.Phase == "" && len(status.Conditions) == 0 && !object.Spec.Suspend
	return runs && deadline != nil && !time.Now().Before(status.StartTime.Add(time.Duration(*deadline)*time.Second))
}

// patched judges a PATCH that the API server has just carried out. Of objects of users, Winnow changes the deadline alone.
func (j *judge) patched(from string, a *apiserver.Answer) {
	o := a.Patched
	fact := j.fact(o)
	if fact == nil {
		return // Something of Winnow's own.
	}
	what := fmt.Sprintf("%s changed %s %s/%s (%s at %d) by %s", from, fact.Resource, fact.Namespace, fact.Name, fact.UID, o.Revision, a.Patch)
	var patch struct {
		Metadata struct{ UID, ResourceVersion string }
		Spec     struct{ ActiveDeadlineSeconds *int64 }
	}
	if err := json.Unmarshal(a.Patch, &patch); err != nil || patch.Metadata.UID == "" || patch.Metadata.ResourceVersion == "" {
		j.fault("%s, without preconditions: %v", what, err)
		return
	}
	j.deadlines++
	right := func(answer oracle.Answer) bool {
		seconds := patch.Spec.ActiveDeadlineSeconds
		switch {
		case answer.Action != oracle.SetDeadline:
			return false
		case seconds == nil:
			return answer.Reason == "ActiveDeadlineWithdrawn"
		case answer.At.IsZero(): // It has not started.
			return answer.Reason == "ActiveDeadline"
		}
		return answer.At.Equal(fact.Deadline.StartedAt.Add(time.Duration(*seconds) * time.Second))
	}
	if answer, ok := j.decided(what, from, fact, right); ok && !answer.At.IsZero() && !time.Now().Before(answer.At) {
		j.heldBack(what, from, fact, answer)
	}
}
