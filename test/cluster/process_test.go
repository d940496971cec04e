// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func waitToBeKilled(dir string) error {
	c, err := Start(context.Background(), Options{Dir: dir, Components: storageOnly})
	if err != nil {
		return err
	}
	for _, p := range c.running() {
		fmt.Println(p.Pid())
	}
	fmt.Println("ready")
	select {}
}

func TestNothingIsLeftAfterStop(t *testing.T) {
	t.Parallel()
	c, err := Start(t.Context(), Options{Components: storageOnly})
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{c.Process(Etcd).Pid(), c.Process(APIServer).Pid()}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	noneLives(t, pids)
	if exists(c.Dir) {
		t.Errorf("the temporary folder %s is left", c.Dir)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("the second Stop: %v", err)
	}
}

func TestNothingIsLeftAfterTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c, err := Start(ctx, Options{Dir: t.TempDir(), Components: storageOnly})
	if err != nil {
		t.Fatal(err)
	}
	etcd, apiServer := c.Process(Etcd), c.Process(APIServer)
	cancel()
	<-etcd.Done()
	<-apiServer.Done()
	if err := c.StartComponent(t.Context(), Etcd); err == nil {
		t.Error("a component starts in a cluster that has ended")
	}
}

func TestFailedStartSaysWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{Dir: dir, Components: storageOnly, Flags: map[string][]string{APIServer: {"--no-such-flag"}}})
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver ended: exit status 1") ||
		!strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("got %v, want the name of the component and its last words", err)
	}
	noneUses(t, dir)
}

func TestNothingIsLeftAfterSIGKILLOfTheParent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), orphanDir+"="+dir)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for scanner := bufio.NewScanner(stdout); scanner.Scan() && scanner.Text() != "ready"; {
		pid, err := strconv.Atoi(scanner.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || len(pids) != len(storageOnly) {
		t.Errorf("the parent of %v: %v", pids, err)
	}
	noneLives(t, pids)
}

// noneLives waits, since the kernel takes a moment to end what it kills.
func noneLives(t *testing.T, pids []int) {
	t.Helper()
	eventually(t, "no child lives", func(context.Context) error {
		for _, pid := range pids {
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("process %d: %v", pid, err)
			}
		}
		return nil
	})
}

// noneUses checks that no process has the folder on its command line.
func noneUses(t *testing.T, dir string) {
	t.Helper()
	commandLines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range commandLines {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), dir) {
			t.Errorf("still running: %q", line)
		}
	}
}
