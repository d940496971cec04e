// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	// armedEvery is how often it is asked whether all are armed, which costs Winnow some 20 ms each time.
	armedEvery = 250 * time.Millisecond
	// lagWindow is how long the lag of the watch is measured, at rest and under changes.
	lagWindow = 15 * time.Second
	// quietWindow is how long a process must have used no more than quietShare of a core to have nothing left to do.
	quietWindow = time.Second
	quietShare  = 0.03
)

// informers are what stands beside: each alone, so that nobody takes its CPU.
func (f *field) informers(ctx context.Context, _ options, s *scaleFigures) (any, error) {
	if err := f.replica().Stop(); err != nil {
		return nil, err
	}
	f.front.Reset(f.jobs)
	for _, kind := range scaleBeside {
		begin := time.Now()
		beside, err := f.startInformer(ctx, kind, f.kubeconfig, f.jobs)
		if err != nil {
			return nil, err
		}
		one, err := reach(ctx, begin, beside.Pid(), beside.get)
		if err == nil {
			err = one.restFor(ctx, quietWindow, beside.Pid(), beside.get)
		}
		if err := errors.Join(err, beside.Kill()); err != nil {
			return nil, err
		}
		s.beside = append(s.beside, one)
	}
	return s.beside, nil
}

// arm starts Winnow over the Jobs, until every one has its time.
func (f *field) arm(ctx context.Context, o options, s *scaleFigures) (any, error) {
	begin := time.Now()
	started := make(chan error, 1)
	go func() {
		if err := f.replica().Start(ctx); err != nil {
			started <- err
			return
		}
		started <- f.profileStart(ctx, o)
	}()
	err := poll.Until(ctx, knownMost(f.jobs), armedEvery, func(ctx context.Context) error {
		return f.armed(ctx, f.jobs)
	})
	if err == nil { // The profile may take longer.
		s.winnow, err = reach(ctx, begin, f.replica().Process.Pid(), f.replica().Get)
	}
	if err := errors.Join(err, <-started); err != nil {
		return nil, err
	}
	if err := s.winnow.restFor(ctx, o.window, f.replica().Process.Pid(), f.replica().Get); err != nil {
		return nil, err
	}
	return s.winnow, f.profile(ctx, o, "heap?gc=1")
}

// reach measures a process that has all Jobs now.
func reach(ctx context.Context, begin time.Time, pid int, get func(context.Context, string) (string, error)) (h held, err error) {
	h.seconds = time.Since(begin).Seconds()
	if h.cpu, err = cpuTime(pid); err != nil {
		return h, err
	}
	if h.peak, err = memoryBytes(pid, "VmHWM:"); err != nil {
		return h, err
	}
	h.before, err = heapOf(ctx, get)
	return h, err
}

// restFor measures the same process at rest.
func (h *held) restFor(ctx context.Context, window time.Duration, pid int, get func(context.Context, string) (string, error)) error {
	if err := poll.Pause(ctx, settle); err != nil {
		return err
	}
	used, err := watchProcesses(ctx, window, pid)
	if err != nil {
		return err
	}
	h.rest = used[0]
	h.after, err = heapOf(ctx, get)
	return err
}

// profileJobsInStart is how many Jobs Winnow takes in a second at its start, at the most.
const profileJobsInStart = 25_000

// profileStart writes where the CPU time goes while Winnow takes in the Jobs, of which there must be enough.
func (f *field) profileStart(ctx context.Context, o options) error {
	seconds := f.jobs / profileJobsInStart
	if seconds == 0 {
		return nil
	}
	return f.profileAs(ctx, o, "start", "profile?seconds="+strconv.Itoa(seconds))
}

// profile writes one of the profiles below /debug/pprof.
func (f *field) profile(ctx context.Context, o options, path string) error {
	name, _, _ := strings.Cut(path, "?")
	return f.profileAs(ctx, o, name, path)
}

func (f *field) profileAs(ctx context.Context, o options, name, path string) error {
	return f.world.profile(ctx, path, filepath.Join(o.out, fmt.Sprintf("scale-%d-%s.pprof", f.jobs, name)))
}

// anew measures Winnow; see anewOf.
func (f *field) anew(ctx context.Context, name string, do func() error) (anew, error) {
	return anewOf(ctx, f.replica().Process.Pid(), name, do)
}

// anewOf measures a process from before something until it has nothing more to do.
func anewOf(ctx context.Context, pid int, name string, do func() error) (a anew, err error) {
	if err := quiet(ctx, pid); err != nil {
		return a, err
	}
	// Since Linux 4.0 this sets the peak to what is resident now (proc_pid_clear_refs(5)).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return a, err
	}
	before, err := cpuTime(pid)
	if err != nil {
		return a, err
	}
	if a.before, err = residentBytes(pid); err != nil {
		return a, err
	}
	begin := time.Now()
	if err := do(); err != nil {
		return a, err
	}
	a.name, a.seconds = name, time.Since(begin).Seconds()
	if err := quiet(ctx, pid); err != nil {
		return a, err
	}
	after, err := cpuTime(pid)
	if err != nil {
		return a, err
	}
	a.cpu = after - before
	a.peak, err = memoryBytes(pid, "VmHWM:")
	return a, err
}

// quiet waits until a process has nothing to do, a second at least.
func quiet(ctx context.Context, pid int) error {
	return eventually(ctx, time.Millisecond, func(ctx context.Context) error {
		before, err := cpuTime(pid)
		if err != nil {
			return err
		}
		if err := poll.Pause(ctx, quietWindow); err != nil {
			return err
		}
		after, err := cpuTime(pid)
		if share := (after - before) / quietWindow.Seconds(); err == nil && share > quietShare {
			err = fmt.Errorf("the process still uses %.0f %% of a core", 100*share)
		}
		return err
	})
}

// change makes changes that touch the Jobs of all namespaces that are bound. Each costs Winnow as well what a write of a policy
// does: the forecast that answers it, and statuses.
func (f *field) change(ctx context.Context, _ options, s *scaleFigures) (any, error) {
	bind := func(more int64, maxTTL v1alpha1.TTL) func() error {
		return func() error { return f.bind(ctx, f.bound()+more, maxTTL) }
	}
	for _, change := range []struct {
		name string
		make func() error
	}{
		{"each policy limits", func() error { return f.limit(ctx) }},
		{"a ceiling is set", bind(0, "60d")}, {"the ceiling moves", bind(1, "60d")}, {"maxTTL moves", bind(1, "61d")},
	} {
		took, err := f.anew(ctx, change.name, change.make)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", change.name, err)
		}
		s.changes = append(s.changes, took)
	}
	return s.changes, nil
}

func (f *field) lagAtRest(ctx context.Context, _ options, s *scaleFigures) (_ any, err error) {
	s.rest, err = f.probes.during(ctx, lagWindow)
	return s.rest.String(), err
}

// lagUnderChanges probes while one change follows the other, so that Winnow decides for Jobs anew all the time. Those that a change touches
// are not deleted meanwhile; untouched ones tell how long an event waits for its turn.
func (f *field) lagUnderChanges(ctx context.Context, o options, s *scaleFigures) (_ any, err error) {
	changing, stop := context.WithCancel(ctx)
	changed, profiled := make(chan error, 1), make(chan error, 1)
	go func() { changed <- f.keepChanging(changing) }()
	go func() { profiled <- f.profile(ctx, o, "profile?seconds="+strconv.Itoa(int(lagWindow.Seconds()))) }()
	s.changing, err = f.probes.during(ctx, lagWindow)
	stop()
	return s.changing.String(), errors.Join(err, <-changed, <-profiled)
}

func (f *field) keepChanging(ctx context.Context) error {
	for i := 0; ; i++ {
		err := f.bind(ctx, f.bound()+1, v1alpha1.TTL(fmt.Sprintf("%dd", 62+i%2)))
		if ctx.Err() != nil {
			return nil // It was cut off.
		}
		if err != nil {
			return err
		}
	}
}

// events changes many Jobs in a way that means nothing, until a probe after them is through.
func (f *field) events(ctx context.Context, _ options, s *scaleFigures) (_ any, err error) {
	s.events, err = f.anew(ctx, "events", func() error {
		for i := range manyEvents {
			f.front.Modify(i%(f.jobs/2), map[string]string{"example.com/seen": strconv.Itoa(i)})
		}
		_, err := f.probes.wait(ctx, f.probes.make(true))
		return err
	})
	return s.events, err
}

// relist ends the watches so that all Jobs are listed again, until a probe after that is through.
func (f *field) relist(ctx context.Context, _ options, s *scaleFigures) (_ any, err error) {
	s.relist, err = f.anew(ctx, "relist", func() error {
		f.front.Expire()
		_, err := f.probes.wait(ctx, f.probes.make(true))
		return err
	})
	return s.relist, err
}
