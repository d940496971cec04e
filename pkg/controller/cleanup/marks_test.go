// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/write/marks"
)

// confirming is a replica whose memory is as new as the stored marks after some comparisons.
type confirming struct {
	replica
	behind   int
	compared []string
}

func (c *confirming) ConfirmMarks(versions map[types.NamespacedName]string, _ string, _ time.Time) bool {
	c.compared = append(c.compared, versions[types.NamespacedName{Namespace: testbuilders.Home, Name: "marks-0"}])
	c.behind--
	return c.behind < 0
}

// TestConfirmMarks: the stored marks are compared until memory has them, and once after that no more.
func TestConfirmMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: testbuilders.Home, Name: "marks-0", ResourceVersion: "7"}}
		m.SetGroupVersionKind(marks.Resource.GroupVersion().WithKind("UsageMarks"))
		client, failures := metadatafake.NewSimpleMetadataClient(scheme), 2
		if err := client.Tracker().Create(marks.Resource, m, m.Namespace); err != nil {
			t.Fatal(err)
		}
		client.PrependReactor("list", marks.Resource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			failures--
			return failures >= 0, nil, errors.New("overloaded")
		})
		r := &confirming{behind: 2}
		c := &Controller{dated: client, replica: r, loop: loop{clock: clock.RealClock{}}}
		c.confirmMarks(t.Context())
		if want := []string{"7", "7", "7"}; !slices.Equal(r.compared, want) {
			t.Errorf("compared %q, want %q", r.compared, want)
		}
	})
}
