// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzStripUnread: an object that can be decoded can be decoded without the unread fields, its name is the same, and what has no unread
// field stays as it is.
func FuzzStripUnread(f *testing.F) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}}
	job.Spec.Template.Labels = map[string]string{"unread": "yes"}
	f.Add(encoded(f, job))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		object, _, err := whole.Decode(data, nil, nil)
		reduced, _, errReduced := stripped.Decode(data, nil, nil)
		if !bytes.Equal(before, data) {
			t.Fatal("the data was changed")
		}
		full, ok := object.(*batchv1.Job)
		if err != nil || !ok {
			return
		}
		if errReduced != nil {
			t.Fatalf("decoded whole, and not without unread fields: %v", errReduced)
		}
		if got, ok := reduced.(*batchv1.Job); !ok || got.Name != full.Name || got.UID != full.UID || got.ResourceVersion != full.ResourceVersion {
			t.Fatalf("%+v is another object than %+v", reduced, full)
		}
	})
}
