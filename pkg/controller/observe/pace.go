// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
)

// Match conditions are evaluated in the goroutine that reads the watch of all namespaces, so whoever makes them costly, or changes objects
// often, would delay the events of everybody. Therefore each namespace has so much of the time of one processor, in units of CEL's cost,
// each some 100 ns. Once that is used up, a watch does not evaluate the match conditions of its objects: they are held, and the objects of
// the namespace are listed beside the watch, as slowly as the namespace can afford it.
const (
	paceBurst     = 200_000
	pacePerSecond = 1_000_000
	// bytesPerUnit is how many bytes of an object are decoded and converted in that time.
	bytesPerUnit = 10
)

// place is where match conditions wait.
type place struct{ resource, namespace string }

// pacer has the time that each namespace has left.
type pacer struct {
	clock clock.Clock
	// changed gets a value when conditions wait at another place.
	changed chan struct{}

	lock    sync.Mutex
	buckets map[string]*bucket
	waiting map[place]bool
}

// bucket is what a namespace had left at a time. It may be less than nothing.
type bucket struct {
	left int64
	at   time.Time
}

func newPacer(c clock.Clock) *pacer {
	return &pacer{clock: c, changed: make(chan struct{}, 1), buckets: map[string]*bucket{}, waiting: map[place]bool{}}
}

// left returns what a namespace has left.
func (p *pacer) left(namespace string) int64 {
	b := p.buckets[namespace]
	if b == nil {
		return paceBurst
	}
	now := p.clock.Now()
	elapsed := min(max(now.Sub(b.at), 0), time.Minute)
	b.left, b.at = min(b.left+int64(elapsed*pacePerSecond/time.Second), paceBurst), now
	return b.left
}

// charge subtracts a cost from what a namespace has left.
func (p *pacer) charge(namespace string, cost uint64) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.left(namespace)
	if p.buckets[namespace] == nil {
		p.forgetFull()
		p.buckets[namespace] = &bucket{left: paceBurst, at: p.clock.Now()}
	}
	p.buckets[namespace].left -= int64(min(cost, 100*paceBurst))
}

// forgetFull forgets the namespaces that have as much as those that are not known.
func (p *pacer) forgetFull() {
	if len(p.buckets) < 1_000 {
		return
	}
	for namespace := range p.buckets {
		if p.left(namespace) == paceBurst {
			delete(p.buckets, namespace)
		}
	}
}

// may reports whether a namespace has anything left. If not, match conditions wait at the place.
func (p *pacer) may(at place) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.left(at.namespace) > 0 {
		return true
	}
	if !p.waiting[at] {
		p.waiting[at] = true
		p.signal()
	}
	return false
}

func (p *pacer) signal() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// takeWaiting returns the namespaces in which match conditions for a resource wait, and forgets them.
func (p *pacer) takeWaiting(resource string) (namespaces []string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for at := range p.waiting {
		if at.resource == resource {
			namespaces = append(namespaces, at.namespace)
			delete(p.waiting, at)
		}
	}
	return namespaces
}

// wait returns once a namespace has something left, or ctx ends.
func (p *pacer) wait(ctx context.Context, namespace string) {
	for {
		p.lock.Lock()
		left := p.left(namespace)
		p.lock.Unlock()
		if left > 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-p.clock.After(time.Duration(1-left) * time.Second / pacePerSecond):
		}
	}
}

// inTurn returns the reading for a watch of all namespaces, which does not wait for the time of one of them.
func (p *pacer) inTurn(r decode.Reading) decode.Reading {
	may := func(resource, namespace string) bool { return p.may(place{resource, namespace}) }
	return r.Paced(decode.Pace{May: may, Charge: p.chargeObject})
}

// alone returns the reading for a list that waits for the time of the namespace.
func (p *pacer) alone(ctx context.Context, r decode.Reading) decode.Reading {
	may := func(_, namespace string) bool {
		p.wait(ctx, namespace)
		return true
	}
	return r.Paced(decode.Pace{May: may, Charge: p.chargeObject})
}

// chargeObject also subtracts what an object of so many bytes costs to decode.
func (p *pacer) chargeObject(namespace string, cost uint64, bytes int) {
	p.charge(namespace, cost+uint64(bytes/bytesPerUnit))
}

// lateLists are the namespaces whose objects of one resource are being listed, each with whether they must be listed once more.
type lateLists struct {
	lock  sync.Mutex
	again map[string]bool
}

// begin reports whether a list must be started. Otherwise the one that runs is followed by another.
func (l *lateLists) begin(namespace string) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.again == nil {
		l.again = map[string]bool{}
	}
	_, running := l.again[namespace]
	l.again[namespace] = running
	return !running
}

// end reports whether the namespace must be listed once more. If ctx has ended, it need not be.
func (l *lateLists) end(ctx context.Context, namespace string) (again bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if again = l.again[namespace] && ctx.Err() == nil; again {
		l.again[namespace] = false
	} else {
		delete(l.again, namespace)
	}
	return again
}

// listLate lists the objects of namespaces in which match conditions wait.
func (o *Observer) listLate(resource string, r *reflection) {
	for _, namespace := range o.pace.takeWaiting(resource) {
		if _, covered := r.covered[namespace]; !covered || r.kind == nil || !r.late.begin(namespace) {
			continue
		}
		ctx := r.ctx
		r.done.Go(func() {
			for more := true; more; more = r.late.end(ctx, namespace) {
				o.merge(ctx, r.kind, namespace)
			}
		})
	}
}
