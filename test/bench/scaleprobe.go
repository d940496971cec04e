// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/synthetic"
)

// probeEvery is how often a Job is made due while the lag of the watch is measured.
const probeEvery = 50 * time.Millisecond

// prober makes Jobs due by their annotation, one after the other from the last to the first. Only those are ever due.
type prober struct {
	front *synthetic.Server
	left  map[bool]int // by whether they are untouched; Jobs with lower numbers were not probed yet
	made  int
}

func newProber(front *synthetic.Server, jobs int) prober {
	return prober{front: front, left: map[bool]int{true: jobs, false: jobs}}
}

// probe is a Job that was made due.
type probe struct {
	number int
	sent   time.Time
}

func (p probe) untouched() bool { return isUntouched(p.number) }

func isUntouched(number int) bool { return number%allNamespaces >= boundNamespaces }

// make sends an event that makes the next Job due, of the namespaces that are untouched or of the others.
func (p *prober) make(untouched bool) probe {
	number := p.left[untouched] - 1
	for isUntouched(number) != untouched {
		number--
	}
	p.left[untouched] = number
	p.made++
	out := probe{number, time.Now()}
	p.front.Modify(number, map[string]string{"gc.winnow.dev/ttl": "1s"})
	return out
}

// wait returns how long after the event the DELETE was received.
func (p *prober) wait(ctx context.Context, made probe) (time.Duration, error) {
	err := poll.Until(ctx, knownMost(made.number), 5*time.Millisecond, func(context.Context) error {
		if p.front.DeletedAt(made.number).IsZero() {
			return fmt.Errorf("no DELETE of Job %d", made.number)
		}
		return nil
	})
	return p.front.DeletedAt(made.number).Sub(made.sent), err
}

// lags are the lags of probes, in milliseconds.
type lags struct{ untouched, bound sample }

// during probes for a while, untouched namespaces and others in turn.
func (p *prober) during(ctx context.Context, window time.Duration) (out lags, err error) {
	var all []probe
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for end := time.Now().Add(window); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-ticker.C:
			all = append(all, p.make(len(all)%2 == 0))
		}
	}
	for _, made := range all {
		lag, err := p.wait(ctx, made)
		if err != nil {
			return out, err
		}
		if made.untouched() {
			out.untouched = append(out.untouched, milliseconds(lag))
		} else {
			out.bound = append(out.bound, milliseconds(lag))
		}
	}
	return out, nil
}

// unexpected tells of deletions of Jobs that were not probes.
func (p *prober) unexpected() error {
	if n := p.front.Deletions(); n != p.made {
		return fmt.Errorf("%d Jobs were deleted, and %d made due", n, p.made)
	}
	return nil
}
