// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package demo tests "make run": what is to be seen is seen, and nothing is left, however it ends.
package demo

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
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
		const module = "github.com/winnow-dev/winnow"
		build := exec.Command(
			"go", "build", "-tags", "grpcnotrace", "-o", dir, module+"/hack/demo", module+"/cmd/apiserver", module+"/cmd/kubectl-winnow",
		)
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
	output := d.readUntil(t, "job/report is Kept")
	d.tryHints(t, output)
	rest, err := io.ReadAll(d.lines)
	if err != nil {
		t.Fatal(err)
	}
	d.endedWell(t)
	output += string(rest)
	t.Logf("%s", output)
	for _, want := range []string{
		`\nBoth are ready after \d+\.\d s\.\n\nWinnow deletes finished Jobs: see which ones, when, and why\. Ctrl-C ends this\.\n`,
		`\ndefaults     Jobs that succeeded are deleted after 10s\.\n`,
		`\nfailures     Jobs that failed are deleted after 1h\.\n`,
		`\nguardrails   Changes that would delete over 2 Jobs at once wait for approval\.\n`,
		`job/report is Kept \(annotation gc.winnow.dev/ttl: never\)\n`,
		`job/lint-1 is Waiting until [0-9:]{8} \(policy defaults: 10s after it succeeded\)\n`,
		`job/train-1 is Waiting until [0-9:]{8} \(policy failures: 1h after it failed\)\n`,
		`Somebody sets the TTL of policy failures to 10s\.\n`,
		`job/train-3 is Held \(policy failures: waits for approval\)\n`,
		`Somebody's change of policy failures to 10s would delete 3 Jobs at once\. It waits until you or ` +
			`this demo approve it: kubectl winnow approve failures\n`,
		`The change is approved, so Winnow deletes the Jobs\.\n`,
		`job/train-2 is Deleted \(policy failures: the change was approved\)\n`,
		`SEEN deleted when due: 3 Jobs, at most \d+ ms late\n`,
		`SEEN kept by its annotation: report, annotation gc.winnow.dev/ttl: never\n`,
		`SEEN kept by another policy: train-\d+, policy failures: 1h after it failed\n`,
		`SEEN held, then approved: 3 Jobs, none before hold [0-9a-f]{12} was approved\n`,
		`job/train-4 is Waiting until [0-9:]{8} \(policy failures: 1h after it failed\)\n`,
		`SEEN the next round: train-[456], policy failures: 1h after it failed\n`,
		`\nNothing is left running.\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(output) {
			t.Errorf("the output has no %s", want)
		}
	}
	for _, name := range []string{"lint-1", "backup-2", "convert-3"} {
		line := regexp.MustCompile("job/" + name + ` is Deleted \d+ ms after it was due \(policy defaults: 10s after it succeeded\)\n`)
		if n := len(line.FindAllString(output, -1)); n != 1 {
			t.Errorf("%s: %d lines say that it was deleted, want one", name, n)
		}
	}
	if kept := regexp.MustCompile(`job/(report|train-[456]) is Deleted`).FindString(output); kept != "" {
		t.Errorf("%s, and should be kept", kept)
	}
	if strings.Contains(output, "\x1b") {
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
		"interrupted while it starts":     {"Starting a Kubernetes cluster", interrupt},
		"interrupted while Winnow starts": {"Starting Winnow", interrupt},
		"interrupted in the middle":       {" is Waiting", interrupt},
		"nobody reads its output":         {" is Waiting", func(d *demo) error { return d.stdout.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t)
			d.readUntil(t, c.after)
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
	lines  *bufio.Reader // of stdout
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
	d.lines = bufio.NewReader(d.stdout)
	return d
}

// readUntil reads lines until one contains text, and returns them.
func (d *demo) readUntil(t *testing.T, text string) string {
	t.Helper()
	var all string
	for {
		line, err := d.lines.ReadString('\n')
		all += line
		if err != nil {
			t.Fatalf("the output ends before %q: %v\n%s\n%s", text, err, all, &d.stderr)
		}
		if strings.Contains(line, text) {
			return all
		}
	}
}

// tryHints does what the output says that one can do.
func (d *demo) tryHints(t *testing.T, output string) {
	t.Helper()
	hints := regexp.MustCompile(`In a second terminal: +(source \S+)\n +(kubectl winnow .+)\nIn a browser: +(http://127\.0\.0\.1:.+)\n`).
		FindStringSubmatch(output)
	if hints == nil {
		t.Fatalf("the output says nothing about a second terminal and a browser:\n%s", output)
	}
	explained, err := exec.CommandContext(t.Context(), "bash", "-c", hints[1]+" && "+hints[2]).CombinedOutput()
	if err != nil || !bytes.Contains(explained, []byte("jobs.batch/report in namespace demo: Kept")) {
		t.Errorf("%s: %v\n%s", hints[2], err, explained)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hints[3], nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Errorf("the page answers %s", response.Status)
	}
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
