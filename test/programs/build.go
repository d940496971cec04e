// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
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
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// job is one go command that builds some executables. What is in one workspace is built together: it shares most
// packages, and while one executable is linked, others are compiled.
type job struct {
	place  place
	args   []string // flags and packages
	output string
	// finish puts the executables where they belong.
	finish func() error
}

// place is where a go command runs: in a folder and with a workspace. Zero is where this process runs.
type place struct{ dir, work string }

// workspace is the place of Winnow and all programs that have the versions of its modules. Its folder is the working
// directory, so that packages may have relative paths.
func workspace(root string) place { return place{work: filepath.Join(root, workspaceFile)} }

const workspaceFile = "programs.work"

// workspaceFolders are the folders beside the file of the workspace that it uses.
func workspaceFolders(root string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(root, workspaceFile))
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, found := range regexp.MustCompile(`(?m)^\t\./(\S+)$`).FindAllSubmatch(content, -1) {
		folders = append(folders, string(found[1]))
	}
	return folders, nil
}

// alone is the place of a module that does not share its versions.
func alone(dir string) place { return place{dir: dir, work: "off"} }

// builder builds jobs, and knows how far it is.
type builder struct {
	// command runs the go command in a place, and returns its standard output.
	command         func(ctx context.Context, at place, stderr io.Writer, args ...string) (string, error)
	shared          sync.Mutex   // of jobs in a workspace: the later one finds in the build cache what the earlier one has compiled
	started, listed atomic.Int64 // jobs
	total, compiled atomic.Int64 // packages of the listed jobs that are not in the build cache
}

// run builds jobs at the same time, except jobs of the workspace, which it builds one after the other. Their source is downloaded
// meanwhile.
func (b *builder) run(ctx context.Context, jobs []job) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, j := range jobs {
		b.started.Add(1)
		group.Go(func() error { return b.build(ctx, j) })
	}
	return group.Wait()
}

func (b *builder) build(ctx context.Context, j job) error {
	if j.place.dir == "" {
		b.shared.Lock()
		defer b.shared.Unlock()
	}
	stale, err := b.command(
		ctx,
		j.place,
		io.Discard,
		append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, j.args...)...)
	if err != nil {
		return err
	}
	packages := int64(len(strings.Fields(stale)))
	b.total.Add(packages)
	b.listed.Add(1)

	counter := &packageCounter{}
	counter.count = func() { b.compiled.Add(1); packages-- }
	if _, err := b.command(ctx, j.place, counter, append([]string{"build", "-v", "-o", j.output}, j.args...)...); err != nil {
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

// stripped are flags of the linker: without symbols it needs half as long.
const stripped = "-s -w"

// buildFlags are the same for all that is built: other flags would compile the packages that jobs share again. Nobody
// debugs them, and without DWARF the compiler needs a sixth less time.
var buildFlags = []string{"-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=" + stripped}

// buildJobs build the missing programs, one for each place. The job of the workspace also builds other packages.
func buildJobs(missing []program, root string, beside Build) ([]job, error) {
	byPlace := map[place][]program{}
	for _, p := range missing {
		byPlace[p.place] = append(byPlace[p.place], p)
	}
	shared := workspace(root)
	var jobs []job
	if len(beside.Packages) > 0 && byPlace[shared] == nil {
		jobs = append(jobs, job{
			place: shared, args: slices.Concat(buildFlags, beside.Packages),
			output: beside.Output + string(filepath.Separator), finish: func() error { return nil },
		})
	}
	for at, programs := range byPlace {
		others := Build{}
		if at == shared {
			others = beside
		}
		j, err := buildJob(programs, others)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// buildJob builds programs of one place, and other packages.
func buildJob(programs []program, beside Build) (job, error) {
	folder := filepath.Join(filepath.Dir(programs[0].target), "build.tmp")
	// With a folder as output, go build gives each executable the name of its package.
	j := job{place: programs[0].place, args: slices.Clone(buildFlags), output: folder + string(filepath.Separator)}
	targets := map[string]string{}
	for i, p := range programs {
		if stamps := p.pin.ldflags; stamps != nil && !slices.ContainsFunc(programs[:i], func(o program) bool { return o.pin == p.pin }) {
			flags, err := stamps(p.version)
			if err != nil {
				return job{}, err
			}
			j.args = append(j.args, "-ldflags="+flags)
		}
		targets[executable(p.pin.packages[p.name])] = p.target
	}
	for _, p := range programs {
		j.args = append(j.args, p.pin.packages[p.name])
	}
	for _, pkg := range beside.Packages {
		j.args = append(j.args, pkg)
		targets[executable(pkg)] = filepath.Join(beside.Output, executable(pkg))
	}
	j.finish = func() error {
		for name, target := range targets {
			if err := move(filepath.Join(folder, name), target); err != nil {
				return err
			}
		}
		return os.RemoveAll(folder)
	}
	return j, nil
}

// move puts an executable where it belongs, which may be another file system.
func move(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	err := os.Rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	content, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	if err := write(to+".tmp", content); err != nil {
		return err
	}
	return os.Rename(to+".tmp", to)
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

// goOutput runs the go command in a place and returns what it prints on standard output.
func goOutput(ctx context.Context, at place, stderr io.Writer, args ...string) (string, error) {
	cmd := GoCommand(ctx, args...)
	cmd.Dir = at.dir
	if at.work != "" { // no executable that depends on what else is installed
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK="+at.work)
	}
	var stdout, message bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, io.MultiWriter(&message, stderr)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), cmp.Or(at.dir, at.work), err, lastLines(message.String(), 20))
	}
	return strings.TrimSpace(stdout.String()), nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
