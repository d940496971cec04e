// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// job is one go command that builds some executables. Those of one module are built together: they share most packages,
// and while one is linked, others are compiled.
type job struct {
	dir    string
	args   []string // flags and packages
	output string
	lane   lane
	// finish puts the executables where they belong.
	finish func() error
}

// lane is what a job waits for before it compiles. There is one job at a time in each, so that memory is enough.
type lane int

// What takes longest has a lane of its own: it begins at once, and there is something to do while it is linked.
const (
	shortLane lane = iota
	longLane
	lanes
)

// builder builds jobs, and knows how far it is.
type builder struct {
	// command runs the go command in a folder, and returns its standard output.
	command         func(ctx context.Context, dir string, stderr io.Writer, args ...string) (string, error)
	lanes           [lanes]sync.Mutex
	started, listed atomic.Int64 // jobs
	total, compiled atomic.Int64 // packages of the listed jobs that are not in the build cache
}

// run builds jobs at the same time, as far as lanes allow. Their source is downloaded meanwhile.
func (b *builder) run(ctx context.Context, jobs []job) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, j := range jobs {
		b.started.Add(1)
		group.Go(func() error { return b.build(ctx, j) })
	}
	return group.Wait()
}

func (b *builder) build(ctx context.Context, j job) error {
	stale, err := b.command(
		ctx,
		j.dir,
		io.Discard,
		append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, j.args...)...)
	if err != nil {
		return err
	}
	packages := int64(len(strings.Fields(stale)))
	b.total.Add(packages)
	b.listed.Add(1)

	b.lanes[j.lane].Lock()
	defer b.lanes[j.lane].Unlock()
	counter := &packageCounter{}
	counter.count = func() { b.compiled.Add(1); packages-- }
	if _, err := b.command(ctx, j.dir, counter, append([]string{"build", "-v", "-o", j.output}, j.args...)...); err != nil {
		return err
	}
	b.compiled.Add(packages) // what another job, or another process, has compiled
	return j.finish()
}

// progress of all jobs, for the line that follow writes.
func (b *builder) progress() []string {
	var parts []string
	started, total, compiled := b.started.Load(), b.total.Load(), b.compiled.Load()
	listed := b.listed.Load()
	if listed < started {
		parts = append(parts, "downloading Go modules")
	}
	if total > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d packages compiled", compiled, total))
	}
	return parts
}

// packageCounter counts the lines that "go build -v" writes, one for each package that it begins to compile.
type packageCounter struct {
	rest  []byte
	count func()
}

func (c *packageCounter) Write(b []byte) (int, error) {
	c.rest = append(c.rest, b...)
	for {
		line, rest, whole := bytes.Cut(c.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		c.rest = rest
		// Others say what is wrong, or what is downloaded.
		if len(line) > 0 && !bytes.ContainsAny(line, " \t#") {
			c.count()
		}
	}
}

// buildJobs are those that build the missing programs.
func buildJobs(missing []program) ([]job, error) {
	var jobs []job
	for _, pin := range pins {
		programs := slices.DeleteFunc(slices.Clone(missing), func(p program) bool { return p.pin != pin })
		if len(programs) == 0 {
			continue
		}
		j, err := buildJob(pin, programs)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// buildJob builds programs of one pin.
func buildJob(pin *pin, programs []program) (job, error) {
	ldflags, err := pin.ldflags(programs[0].version)
	if err != nil {
		return job{}, err
	}
	folder := filepath.Join(filepath.Dir(programs[0].target), "build.tmp")
	j := job{
		dir: programs[0].pinDir,
		// Nobody debugs them, and without DWARF the compiler needs a sixth less time.
		args: []string{"-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", ldflags},
		// With a folder as output, go build gives each executable the name of its package.
		output: folder + string(filepath.Separator), lane: pin.lane,
	}
	for _, p := range programs {
		j.args = append(j.args, pin.packages[p.name])
	}
	j.finish = func() error {
		for _, p := range programs {
			if err := os.Rename(filepath.Join(folder, executable(pin.packages[p.name])), p.target); err != nil {
				return err
			}
		}
		return os.RemoveAll(folder)
	}
	return j, nil
}

// executable is the name that go build gives to the executable of a package: the last element of its path that is no
// major version.
func executable(pkg string) string {
	if base := path.Base(pkg); !majorVersion.MatchString(base) {
		return base
	}
	return path.Base(path.Dir(pkg))
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// GoCommand is the go command. The end of ctx interrupts it, so that it removes what it has written so far.
func GoCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// goOutput runs the go command in dir and returns what it prints on standard output.
func goOutput(ctx context.Context, dir string, stderr io.Writer, args ...string) (string, error) {
	cmd := GoCommand(ctx, args...)
	if cmd.Dir = dir; dir != "" { // the module of a pin: no executable that depends on what else is installed
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	}
	var stdout, message bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, io.MultiWriter(&message, stderr)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, lastLines(message.String(), 20))
	}
	return strings.TrimSpace(stdout.String()), nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
