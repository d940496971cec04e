// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package demo tests "make run": what is to be seen is seen, and nothing is left, however it ends.
package demo

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "winnow-demo-")
	if err == nil {
		binary = filepath.Join(dir, "demo")
		build := exec.Command("go", "build", "-o", binary, "github.com/winnow-dev/winnow/hack/demo")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func TestShowsWhatIsToBeSeen(t *testing.T) {
	t.Parallel()
	d := start(t, "--exit-when-seen")
	output, err := io.ReadAll(d.stdout)
	if err != nil {
		t.Fatal(err)
	}
	d.endedWell(t)
	t.Logf("%s", output)
	for _, want := range []string{
		`\nThe cluster is ready after \d+\.\d s\. Its audit log is /\S+/audit\.log\.\n`,
		`\nWinnow is ready after \d+\.\d s\. Its log is /\S+\.log\.\n`,
		`export KUBECONFIG=/\S+\n +export PATH=/\S+:\$PATH\n +kubectl get cup --all-namespaces\n`,
		`kubectl apply: Warning: spec.ttlAfterFinished: 10s is under a minute`,
		`policy demo/defaults: Ready is True, Enforcing: `,
		`job/train failed; kept 59m: until [0-9:]{8} by demo/keep-failures, rule failures\n`,
		`job/upload is being deleted by demo/defaults, rule default, 10s after it finished, \d+ ms late, and waits for its finalizers\n`,
		`warning event on policy demo/defaults: .*jobs.batch/upload \(waits for finalizers \["demo.winnow.dev/hold"\]\)\n`,
		`job/report extended by this demo, \d+\.\d s before it was due: gc.winnow.dev/ttl=1h\n`,
		`SEEN kept by rule: job/train, `,
		`SEEN held by finalizer: job/upload, Terminating: waits for finalizers \["demo.winnow.dev/hold"\]\n`,
		`SEEN extended, kept: job/report, `,
		`SEEN rest gone: 7 objects deleted, at most \d+ ms late\n`,
		`job/scratch -n recent succeeded; waiting \ds: due at [0-9:]{8} by recent/keep-last, rule at-once\n`,
		`job/build-1 -n recent deleted by recent/keep-last, rule default, \d+s after it finished, \d+ ms late\n`,
		`kubectl apply: Warning: .*7 Jobs in backlog wait for approval, because generation 1 of cleanuppolicies.gc.winnow.dev/sweep made more objects due at once than \S+ of clustercleanuppolicies.gc.winnow.dev/guardrails allows \(\d+ in ten minutes\)`,
		`policy backlog/sweep: Ready is False, Held: In namespace backlog, 7 objects wait for approval, because .*: kubectl annotate .*\n`,
		`job/old-1 -n backlog deleted by backlog/sweep, rule default, \d+\.\d s after it was due\n`,
		`hold [0-9a-f]{12} of 7 objects approved by this demo: kubectl annotate --overwrite cleanuppolicies.gc.winnow.dev `,
		`job/build-6 -n recent succeeded; kept: until newer ones replace it, by recent/keep-last, rule default\n`,
		`SEEN last 3 kept: of 6, the 3 that finished last, from job/build-4 -n recent on\n`,
		`SEEN kept for minTTL: job/scratch -n recent, ttl 0s by recent/keep-last, deleted 5s after it finished\n`,
		`SEEN held, then approved: 7 Jobs by backlog/sweep, none before hold [0-9a-f]{12} was approved\n`,
		`SEEN all: `,
		`\nPOLICY +MODE +TTL +CANDIDATES +DUE +DELETED +NEXT +READY\n`,
		`\ndemo/keep-failures +Enforce +<none> +1 +0 +0 +in (59|60)m +True\n`,
		`\npreview/defaults +Preview +10s +2 +\d +0 +\S.* +True\n`,
		`\nrecent/keep-last +Enforce +<none> +3 +0 +4 +- +True\n`,
		`\nbacklog/sweep +Enforce +1s +0 +0 +7 +- +True\n`,
		`\nguardrails +Enforce +<none> +0 +0 +0 +- +True\n`,
		`\nNothing is left running.\n$`,
	} {
		if !regexp.MustCompile(want).Match(output) {
			t.Errorf("the output has no %s", want)
		}
	}
	for _, name := range []string{"job/convert", "job/lint", "job/backup", "job/migrate", "job/index", "job/import", "pod/shell"} {
		line := regexp.MustCompile(name + ` deleted by demo/defaults, rule default, 10s after it finished, \d+ ms late\n`)
		if n := len(line.FindAll(output, -1)); n != 1 {
			t.Errorf("%s: %d lines say that it was deleted, want one", name, n)
		}
	}
	for _, kept := range []string{"job/train", "job/report", "job/serve", "job/draft-1", "job/draft-2", "job/build-[456]"} {
		if regexp.MustCompile(kept + `.* (deleted|gone)`).Match(output) {
			t.Errorf("%s is gone", kept)
		}
	}
	if bytes.Contains(output, []byte("\x1b")) {
		t.Error("there are control sequences though the output is no terminal")
	}
}

func TestLeavesNothing(t *testing.T) {
	t.Parallel()
	interrupt := func(d *demo) error { return d.cmd.Process.Signal(syscall.SIGINT) }
	for name, c := range map[string]struct {
		after string // a line of the output
		do    func(*demo) error
	}{
		"interrupted while it starts":       {"Starting a Kubernetes cluster", interrupt},
		"interrupted while Winnow is built": {"The cluster is ready after", interrupt},
		"interrupted in the middle":         {" succeeded; ", interrupt},
		"nobody reads its output":           {" succeeded; ", func(d *demo) error { return d.stdout.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t)
			lines := bufio.NewScanner(d.stdout)
			for lines.Scan() && !strings.Contains(lines.Text(), c.after) {
			}
			if err := c.do(d); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, d.stdout); err != nil && !strings.Contains(err.Error(), os.ErrClosed.Error()) {
				t.Fatal(err)
			}
			d.endedWell(t)
		})
	}
}

// demo is one run of the program.
type demo struct {
	cmd    *exec.Cmd
	stdout io.ReadCloser
	stderr bytes.Buffer
	dir    string // for all temporary files
}

func start(t *testing.T, args ...string) *demo {
	t.Helper()
	d := &demo{cmd: exec.CommandContext(t.Context(), binary, args...), dir: t.TempDir()}
	d.cmd.Env = append(os.Environ(), "TMPDIR="+d.dir)
	d.cmd.Stderr = &d.stderr
	var err error
	if d.stdout, err = d.cmd.StdoutPipe(); err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// endedWell waits for the end, which must be one with status 0 that leaves nothing.
func (d *demo) endedWell(t *testing.T) {
	t.Helper()
	if err := d.cmd.Wait(); err != nil || d.stderr.Len() > 0 {
		t.Errorf("ended with %v and the message %q", err, d.stderr.String())
	}
	left, err := os.ReadDir(d.dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v %v", left, err)
	}
	running, err := commandLines()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range running {
		if strings.Contains(line, d.dir) {
			t.Errorf("still running: %s", line)
		}
	}
}
