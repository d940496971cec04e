// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/term"
)

// On a terminal there is one line of progress, written over every second, elsewhere a new one every half minute.
const (
	onTerminal, elsewhere = time.Second, 30 * time.Second
	clearLine             = "\r\x1b[K"
)

// report says what happens, and how far it is.
type report struct {
	out            io.Writer
	terminal       bool
	progress       func() string
	begin          time.Time
	done, finished chan struct{}

	lock  sync.Mutex
	drawn bool // a line of progress stands on the terminal
}

// follow begins to write lines of progress now and then, with the time that has passed. An empty one is left out.
func follow(out io.Writer, progress func() string) *report {
	file, ok := out.(interface{ Fd() uintptr })
	return start(out, ok && term.IsTerminal(int(file.Fd())), progress)
}

func start(out io.Writer, terminal bool, progress func() string) *report {
	r := &report{
		out: out, terminal: terminal, progress: progress, begin: time.Now(), done: make(chan struct{}), finished: make(chan struct{}),
	}
	interval := elsewhere
	if terminal {
		interval = onTerminal
	}
	go func() {
		defer close(r.finished)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-r.done:
				return
			case <-ticker.C:
				r.say(r.progress())
			}
		}
	}()
	return r
}

// say writes a line of progress.
func (r *report) say(progress string) {
	if progress == "" {
		return
	}
	line := fmt.Sprintf("%s: %s", time.Since(r.begin).Round(time.Second), progress)
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.terminal {
		_, _ = fmt.Fprint(r.out, clearLine+line)
		r.drawn = true
		return
	}
	_, _ = fmt.Fprintln(r.out, line)
}

// note writes a line that stays.
func (r *report) note(format string, args ...any) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.drawn {
		_, _ = fmt.Fprint(r.out, clearLine)
		r.drawn = false
	}
	_, _ = fmt.Fprintf(r.out, format+"\n", args...)
}

// stop ends it, and says how far it was and how long it took.
func (r *report) stop() {
	close(r.done)
	<-r.finished
	r.say(r.progress())
	if r.drawn {
		_, _ = fmt.Fprintln(r.out)
	}
}
