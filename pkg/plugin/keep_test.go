// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// TestKept: what was just kept needs no advice on how to keep it.
func TestKept(t *testing.T) {
	kept := candidates(v1alpha1.CandidateWaiting, "NotDue")
	kept[0].Status.Object.ResourceVersion = "7"
	kept[0].Status.Message = "It is kept until it is due. " + gc.ToKeepLonger + "; guardrails.maxTTL of c limits that to 30d"
	cluster := newTestCluster(t).withWinnow(kept, nil).with(map[string]any{jobsPath + "/a": &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "a", UID: "a", ResourceVersion: "7"},
	}})
	for _, args := range [][]string{{"keep", "job/a", "--for", "2d"}, {"release", "job/a"}} {
		out, errOut, code := cluster.run(args...)
		if code != 0 || !strings.HasSuffix(out, "\nWaiting (NotDue): It is kept until it is due.\n") {
			t.Errorf("%q ended with %d: %s%s", args, code, out, errOut)
		}
	}
}

// TestKeepNothing: where there is no Winnow either, a wrong name is not all that there is to mend.
func TestKeepNothing(t *testing.T) {
	const missing = `cannot do it`
	newTestCluster(t).expectError(missing+"; there is no Winnow in this cluster either\n", "keep", "job/x", "--forever")
	newTestCluster(t).withWinnow(nil, nil).expectError(missing+"\n", "keep", "job/x", "--forever")
}
