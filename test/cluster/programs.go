// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// Programs maps the name of a program to the path of its executable.
type Programs map[string]string

// pin is a module below test/programs whose go.mod fixes the version of some programs.
type pin struct {
	name     string // its folder, and the first part of the cache folder
	module   string // the module that it pins
	packages map[string]string
	ldflags  func(gitVersion string) (string, error)
}

var pins = []pin{{
	name:     "etcd",
	module:   "go.etcd.io/etcd/server/v3",
	packages: map[string]string{Etcd: "go.etcd.io/etcd/server/v3"},
	ldflags:  func(string) (string, error) { return "-s -w", nil },
}, {
	name:   "kubernetes",
	module: "k8s.io/kubernetes",
	packages: map[string]string{
		APIServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
		ControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
		Scheduler:         "k8s.io/kubernetes/cmd/kube-scheduler",
		Kubectl:           "k8s.io/kubernetes/cmd/kubectl",
	},
	ldflags: kubernetesLdflags,
}, {
	name:     "kwok",
	module:   "sigs.k8s.io/kwok",
	packages: map[string]string{Kwok: "sigs.k8s.io/kwok/cmd/kwok"},
	ldflags:  func(string) (string, error) { return "-s -w", nil },
}}

// allPrograms are the programs of a whole cluster in the order in which they are built.
var allPrograms = []string{Etcd, APIServer, Kubectl, ControllerManager, Scheduler, Kwok}

// kubernetesLdflags stamps the version as Kubernetes' own build does (hack/lib/version.sh): without it a server
// evaluates its feature gates at v0.0.0.
func kubernetesLdflags(gitVersion string) (string, error) {
	v, err := version.ParseSemantic(gitVersion)
	if err != nil {
		return "", fmt.Errorf("version of k8s.io/kubernetes: %w", err)
	}
	flags := "-s -w"
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]d -X %[1]s.gitMinor=%[4]d",
			pkg, gitVersion, v.Major(), v.Minor())
	}
	return flags, nil
}

// build is one program that is still to be built.
type build struct {
	program, target string
	pin             pin
	pinDir, version string
}

// Build returns the named programs, all of the cluster's when no name is given, and first builds those that are
// missing: each once for each version, into $WINNOW_CACHE/programs or winnow/programs below the user's cache
// folder. It says on progress what it builds. Several processes may call it at once.
func Build(ctx context.Context, progress io.Writer, names ...string) (Programs, error) {
	if len(names) == 0 {
		names = allPrograms
	}
	builds, err := plan(ctx, names)
	if err != nil {
		return nil, err
	}
	programs := Programs{}
	var missing []build
	for _, b := range builds {
		programs[b.program] = b.target
		if !exists(b.target) {
			missing = append(missing, b)
		}
	}
	for i, b := range missing {
		if err := b.run(ctx, progress, fmt.Sprintf("%d of %d", i+1, len(missing))); err != nil {
			return nil, err
		}
	}
	return programs, nil
}

// plan tells for each program where its executable belongs.
func plan(ctx context.Context, names []string) ([]build, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	root, err := checkout(ctx)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	var builds []build
	for _, name := range names {
		i := slices.IndexFunc(pins, func(p pin) bool { return p.packages[name] != "" })
		if i < 0 {
			return nil, fmt.Errorf("unknown program %q: choose from %s", name, strings.Join(allPrograms, ", "))
		}
		p := pins[i]
		dir := filepath.Join(root, "test", "programs", p.name)
		if versions[p.name] == "" {
			if versions[p.name], err = goCommand(ctx, dir, "list", "-m", "-f", "{{.Version}}", p.module); err != nil {
				return nil, err
			}
		}
		target := filepath.Join(cache, "programs", p.name+"-"+versions[p.name], name)
		builds = append(builds, build{program: name, target: target, pin: p, pinDir: dir, version: versions[p.name]})
	}
	return builds, nil
}

// run builds the program unless another process has done so in the meantime.
func (b build) run(ctx context.Context, progress io.Writer, position string) error {
	if err := os.MkdirAll(filepath.Dir(b.target), 0o755); err != nil {
		return err
	}
	what := fmt.Sprintf("%s %s (%s)", b.program, b.version, position)
	stop := report(progress, "building "+what)
	defer stop()
	unlock, err := lock(ctx, filepath.Join(filepath.Dir(b.target), ".lock"))
	if err != nil {
		return fmt.Errorf("waiting for another build of %s: %w", what, err)
	}
	defer unlock()
	if exists(b.target) {
		return nil
	}
	ldflags, err := b.pin.ldflags(b.version)
	if err != nil {
		return err
	}
	unfinished := b.target + ".tmp"
	if _, err := goCommand(ctx, b.pinDir, "build", "-trimpath", "-ldflags", ldflags, "-o", unfinished, b.pin.packages[b.program]); err != nil {
		return fmt.Errorf("building %s: %w", what, err)
	}
	return os.Rename(unfinished, b.target)
}

// report writes what is going on at once and every ten seconds until the returned function is called.
func report(progress io.Writer, what string) (stop func()) {
	begin := time.Now()
	_, _ = fmt.Fprintf(progress, "%s; all programs take about five minutes the first time\n", what)
	done, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		ticker := time.NewTicker(10 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				_, _ = fmt.Fprintf(progress, "%s: %d s so far\n", what, int(time.Since(begin).Seconds()))
			}
		}
	}()
	return func() { close(done); <-finished }
}

// checkout is the folder of the module that this package belongs to, wherever the process runs.
func checkout(ctx context.Context) (string, error) {
	// Not with -trimpath, which leaves no absolute path in the executable.
	if _, file, _, ok := runtime.Caller(0); ok && exists(file) {
		return filepath.Dir(filepath.Dir(filepath.Dir(file))), nil
	}
	dir, err := goCommand(ctx, "", "list", "-m", "-f", "{{.Dir}}", "github.com/winnow-dev/winnow")
	if err != nil {
		return "", fmt.Errorf("cannot find test/programs; run inside a checkout of Winnow: %w", err)
	}
	return dir, nil
}

// GoCommand is the go command. The end of ctx interrupts it, so that it removes what it has written so far.
func GoCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// goCommand runs the go command in dir and returns what it prints on standard output.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := GoCommand(ctx, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := run(cmd); err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, lastLines(stderr.String(), 20))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// cacheDir is the folder that keeps built programs and port reservations: $WINNOW_CACHE, or winnow below the
// user's cache folder.
func cacheDir() (string, error) {
	if dir := os.Getenv("WINNOW_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder to keep programs in, set WINNOW_CACHE: %w", err)
	}
	return filepath.Join(dir, "winnow"), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
