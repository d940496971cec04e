// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/keymutex"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/testpolicy"
)

// shelf is a store of one namespace.
type shelf struct {
	lock sync.Mutex
	gc.CleanupPolicyList
}

func (s *shelf) list(_ context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	list := s.CleanupPolicyList.DeepCopy()
	list.Items = list.Items[:min(len(list.Items), int(options.Limit))]
	return list, nil
}

// create is what REST does; the store may ask more than once.
func (s *shelf) create(l *limit, asks int) error {
	validate, done := l.onCreate(func(context.Context, runtime.Object) error { return nil })
	defer done()
	for range asks {
		if err := validate(context.Background(), testpolicy.Stored()); err != nil {
			return err
		}
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.Items = append(s.Items, *testpolicy.Stored())
	return nil
}

// TestLimit: however many are created at once, a namespace takes so many and no more.
func TestLimit(t *testing.T) {
	for name, tc := range map[string]struct{ most, creates, want int }{
		"none": {0, 3, 0}, "few": {5, 3, 3}, "as many": {5, 5, 5}, "too many": {5, 30, 5}, "any number": {-1, 30, 30},
	} {
		s := &shelf{}
		l := &limit{tc.most, "CleanupPolicy", s.list, keymutex.NewHashed(1)}
		var group sync.WaitGroup
		for i := range tc.creates {
			group.Go(func() {
				err := s.create(l, 1+i%2)
				const want = `metadata.namespace: Forbidden: namespace "team-a" already has the maximum of 5 policies`
				if err != nil &&
					(!apierrors.IsInvalid(err) || tc.most > 0 && !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--max-policies-per-namespace")) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		group.Wait()
		if len(s.Items) != tc.want {
			t.Errorf("%s: %d of %d were created, want %d", name, len(s.Items), tc.creates, tc.want)
		}
	}
}

// TestLimitLast: what is wrong otherwise is told first, and keeps nobody waiting; what cannot be counted is refused.
func TestLimitLast(t *testing.T) {
	refuse := errors.New("refused")
	l := &limit{
		5,
		"CleanupPolicy",
		func(context.Context, *metainternalversion.ListOptions) (runtime.Object, error) { return nil, refuse },
		keymutex.NewHashed(1),
	}
	first, _ := l.onCreate(func(context.Context, runtime.Object) error { return errors.New("invalid") })
	if err := first(context.Background(), testpolicy.Stored()); err == nil || err.Error() != "invalid" {
		t.Errorf("got %v", err)
	}
	second, done := l.onCreate(func(context.Context, runtime.Object) error { return nil })
	defer done()
	if err := second(context.Background(), testpolicy.Stored()); !errors.Is(err, refuse) {
		t.Errorf("got %v, want %v", err, refuse)
	}
}
