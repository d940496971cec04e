// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanupreview

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestQueue: one review runs at a time, the others wait for a while, and nobody can take all places.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		leave, err := q.enter(t.Context(), "vic")
		if err != nil {
			t.Fatal(err)
		}
		begun, outcomes := time.Now(), make(chan error, reviewsMost)
		for i := range reviewsMost - 1 {
			go func() {
				_, err := q.enter(t.Context(), fmt.Sprint("user-", i%3))
				outcomes <- err
			}()
		}
		synctest.Wait()
		if n := len(outcomes); n != reviewsMost-1-3*mineMost {
			t.Errorf("%d were refused at once, want all but %d of each user", n, mineMost)
		}
		for range reviewsMost - 1 {
			if err := <-outcomes; !apierrors.IsTooManyRequests(err) {
				t.Errorf("got %v, want TooManyRequests", err)
			}
		}
		if waited := time.Since(begun); waited != waitMost {
			t.Errorf("they waited for %v, want %v", waited, waitMost)
		}
		go func() {
			leave, err := q.enter(t.Context(), "user-0")
			if err == nil {
				leave()
			}
			outcomes <- err
		}()
		synctest.Wait()
		leave()
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
		if q.all != 0 || len(q.byUser) != 0 {
			t.Errorf("%d places are taken, by %v", q.all, q.byUser)
		}
	})
}
