// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/internal/fakecluster"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// overfull is a tracker that wants the referrers of a namespace again, and notes what it is told.
type overfull struct {
	*tracker.Tracker
	wants chan struct{}

	lock  sync.Mutex
	begun uint32
	told  []string
}

func (o *overfull) NeedsReread() <-chan struct{} { return o.wants }

func (o *overfull) BeginReread() (number uint32, namespaces []string) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.begun++
	return o.begun, []string{testbuilders.Home}
}

func (o *overfull) Reread(all []knowledge.Referring, _ time.Time) {
	for _, r := range all {
		o.tell(fmt.Sprintf("%s/%s %d", r.Namespace, r.Name, len(r.Keys)))
	}
}

func (o *overfull) EndReread(number uint32, _ time.Time) { o.tell(fmt.Sprint("end ", number)) }

func (o *overfull) tell(what string) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.told = append(o.told, what)
}

// TestRereads: the referrers of overfull namespaces are listed again, and no others. A list that fails ends nothing, and is repeated, but not
// at once.
func TestRereads(t *testing.T) {
	elsewhere := mounting("elsewhere", "x")
	elsewhere.Namespace = "elsewhere"
	o := newReferred(t, mounting("a", "mounted"), elsewhere, running(runs, "r", "named"), running(racks, "k", "named"))
	o.serve("", nil, pods, runs, racks)
	var fails, failed = true, 0
	var lock sync.Mutex
	o.cluster.React(func(r fakecluster.Request) (runtime.Object, error) {
		lock.Lock()
		defer lock.Unlock()
		if r.Resource == "runs" && fails {
			failed++
			return nil, errors.New("runs cannot be listed")
		}
		return nil, nil
	})
	tr := &overfull{Tracker: o.Tracker, wants: make(chan struct{}, 2)}
	o.Observer.Tracker = tr
	told := func() []string {
		tr.lock.Lock()
		defer tr.lock.Unlock()
		return slices.Clone(tr.told)
	}
	o.run()
	tr.wants <- struct{}{}
	tr.wants <- struct{}{}
	o.until("the observer waits", o.clock.HasWaiters)
	if want := []string{testbuilders.Home + "/a 1"}; !slices.Equal(told(), want) || failed != 1 {
		t.Fatalf("after %d failures the tracker was told %q, want %q", failed, told(), want)
	}
	lock.Lock()
	fails = false
	lock.Unlock()
	o.clock.Step(rereadEvery)
	want := []string{testbuilders.Home + "/a 1", testbuilders.Home + "/a 1", testbuilders.Home + "/r 3", "end 2"}
	o.until("all is read", func() bool { return slices.Contains(told(), "end 2") })
	if !slices.Equal(told(), want) {
		t.Errorf("the tracker was told %q, want %q", told(), want)
	}
}
