// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testkinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// TestConditionsWhereObjectsAreDecoded: the objects of other namespaces lose their unread fields all the same.
func TestConditionsWhereObjectsAreDecoded(t *testing.T) {
	k := testkinds.Of(&batchv1.Job{})
	info, _ := runtime.SerializerInfoForMediaType(
		strippedCodecs{typedCodecs, NewReading(k, testkinds.InTeamA(t, "has(object.spec.template)"))}.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	for namespace, whole := range map[string]bool{"team-a": true, "team-b": false} {
		job := testkinds.TemplatedJob("a")
		job.Namespace = namespace
		encoder := scheme.Codecs.EncoderForVersion(info.Serializer, batchv1.SchemeGroupVersion)
		data, err := runtime.Encode(encoder, job)
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := info.Serializer.Decode(data, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := object.(*evaluated); ok != whole {
			t.Errorf("%s: got %T", namespace, object)
		}
	}
}

// TestConditionsOfManagedFields: a condition that may read managedFields sees them. Facts need the managers in any case.
func TestConditionsOfManagedFields(t *testing.T) {
	k := testkinds.Of(&batchv1.Job{})
	for _, condition := range []string{
		"object.metadata.managedFields.size() == 1",
		"object.metadata.managedFields[0].manager == 'kubectl'",
		"'managedFields' in object.metadata",
		"dyn(object).metadata.managedFields.size() == 1",
		"object.metadata.name == 'a' && has(object.spec.template)",
	} {
		job := testkinds.TemplatedJob("a")
		job.Namespace, job.ManagedFields = "team-a", []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
		r := NewReading(k, testkinds.InTeamA(t, condition))
		object, err := r.evaluate(job, r.present(), 0)
		if err != nil {
			t.Fatal(err)
		}
		compact, err := Fact(k, object)
		if err != nil {
			t.Fatal(err)
		}
		testkinds.ExpectResults(t, compact, map[string]bool{condition: true})
		if len(job.ManagedFields) != 1 {
			t.Errorf("%s: managed fields are not there", condition)
		}
	}
}

// TestSuffices: a watch of the metadata evaluates no condition that reads more, and must be started again for it.
func TestSuffices(t *testing.T) {
	k := testkinds.Run(t, false)
	present := map[string]*lifecycle.Conditions{}
	conditions := func(string) map[string]*lifecycle.Conditions { return present }
	none, inMetadata, inSpec := (*lifecycle.Conditions)(nil), testkinds.Conditions(t, "object.metadata.name == 'a'"), testkinds.Conditions(t, "has(object.spec)")
	levels := []*lifecycle.Conditions{none, inMetadata, inSpec}
	for began := range levels {
		for now := range levels {
			delete(present, "team-a")
			if levels[began] != nil {
				present["team-a"] = levels[began]
			}
			r := NewReading(k, conditions)
			if delete(present, "team-a"); levels[now] != nil {
				present["team-a"] = levels[now]
			}
			if want := began >= now; r.Suffices() != want {
				t.Errorf("began with %d, now %d: suffices: %t", began, now, !want)
			}
			evaluates := r.conditionsOf("team-a", present) != nil
			if want := now > 0 && began >= now; evaluates != want {
				t.Errorf("began with %d, now %d: evaluates: %t", began, now, evaluates)
			}
		}
	}
}
