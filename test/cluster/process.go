// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a process may take to end by itself after SIGTERM.
const stopGrace = 2 * time.Minute

// Process is a child in a separate process group, so that a Ctrl-C in the terminal reaches only the parent. The kernel kills it together
// with its parent.
type Process struct {
	Name    string
	LogFile string // standard output and error; several runs of one name append

	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid once done is closed
}

// startProcess starts path with args, and env on top of the environment of this process. It is killed when ctx ends.
func startProcess(ctx context.Context, name, logFile, path string, args, env []string) (*Process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &Process{Name: name, LogFile: logFile, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Pid is the process ID, which is the ID of its group too.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the process: nil for exit status 0.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends a signal to the process and its children. One that has ended is no error.
func (p *Process) Signal(signal syscall.Signal) error {
	if p.ended() {
		return nil // its ID may be another's by now
	}
	if err := signalGroup(p.cmd, signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", signal, p.Name, err)
	}
	return nil
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Stop asks the process to end with SIGTERM, kills it when it takes more than two minutes, and returns how it ended.
func (p *Process) Stop() error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(stopGrace):
		return errors.Join(fmt.Errorf("%s did not end within %s of SIGTERM", p.Name, stopGrace), p.Kill())
	}
}

// ended reports whether the process is gone.
func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// describeEnd says how a process that should be running ended, with the last lines of its log.
func (p *Process) describeEnd() error {
	state := "exit status 0"
	if p.err != nil {
		state = p.err.Error()
	}
	log, err := os.ReadFile(p.LogFile)
	if err != nil {
		return fmt.Errorf("%s ended: %s; its log: %w", p.Name, state, err)
	}
	return fmt.Errorf("%s ended: %s; last lines of %s:\n%s", p.Name, state, p.LogFile, lastLines(string(log), 20))
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// spawner runs functions on one thread that lives as long as this process. The kernel kills a child when the
// thread that created it ends, not when the process does (PR_SET_PDEATHSIG in prctl(2)), and Go ends threads.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// start starts cmd so that it does not outlive this process.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttributes()
	if cmd.Cancel != nil { // it has a context
		cmd.Cancel = func() error { return signalGroup(cmd, syscall.SIGKILL) }
	}
	result := make(chan error)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}

// run starts cmd and waits for its end.
func run(cmd *exec.Cmd) error {
	if err := start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// signalGroup reaches what the command has started too.
func signalGroup(cmd *exec.Cmd, signal syscall.Signal) error {
	err := syscall.Kill(-cmd.Process.Pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
