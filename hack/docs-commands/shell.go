// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// done is the first word of the line that follows the output of a command. Its exit status is the second.
const done = "docs-commands-done"

// shell is a bash that keeps its variables between the commands of a page.
type shell struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startShell starts a bash in a folder.
func startShell(ctx context.Context, dir string, env []string) (*shell, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, write, write
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // and what runs in the background
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(cmd.Start(), write.Close()); err != nil { // The output ends when the shell does.
		return nil, err
	}
	return &shell{cmd: cmd, in: in, out: bufio.NewReader(read)}, nil
}

// run runs a command, and returns its output and its exit status.
func (s *shell) run(command string) (output string, status int, err error) {
	if _, err := fmt.Fprintf(s.in, "{ %s\n} </dev/null\nprintf '\\n%s %%s\\n' $?\n", strings.TrimSpace(command), done); err != nil {
		return "", 0, err
	}
	var out strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			return out.String(), 0, err
		}
		if code, ok := strings.CutPrefix(line, done+" "); ok {
			status, err := strconv.Atoi(strings.TrimSpace(code))
			return strings.TrimSuffix(out.String(), "\n"), status, err
		}
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

// script runs commands, and returns the last status that is not 0. It does not set errexit, which would end the shell at the first failure:
// later blocks need the variables.
func (s *shell) script(commands string) (output string, status int, err error) {
	return s.run("failed=0; trap 'failed=$?' ERR\n" + strings.TrimSpace(commands) + "\ntrap - ERR; (exit $failed)")
}

// stop ends the shell and what it runs in the background.
func (s *shell) stop() error {
	_, _, err := s.run("kill $(jobs -p) 2>/dev/null; wait")
	return errors.Join(err, s.in.Close(), s.cmd.Wait())
}
