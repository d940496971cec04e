// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/programs"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	// pageTimeout is for all commands of a page.
	pageTimeout = 5 * time.Minute
	// settleTimeout is for the state that a command reads to become the one that the page shows. A status follows within five seconds.
	settleTimeout = 10 * time.Second
	settlePeriod  = 250 * time.Millisecond
)

// reads matches commands that change nothing, so that they can be repeated.
var reads = regexp.MustCompile(`^kubectl (-n \S+ )?(get|events|describe|winnow (report|preview|why|top))\b`)

// runner runs the commands of a page.
type runner struct {
	page    *page
	update  bool
	ids     ids
	shell   *shell
	folder  string
	changed []string // what the page shows, and what the commands print
}

// run starts a cluster, runs the page on it, and compares or writes the page.
func (r *runner) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	start := time.Now()
	c, err := cluster.Start(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if !r.page.bare {
		server, err := winnow.Start(ctx, c, winnow.Options{Binary: filepath.Join(root, "bin", "winnow-apiserver")})
		if err != nil {
			return err
		}
		defer func() { _ = server.Stop() }() // The cluster ends too.
	}
	if err := r.open(ctx, c, root); err != nil {
		return err
	}
	err = r.parts()
	err = errors.Join(err, r.shell.stop(), os.RemoveAll(r.folder))
	fmt.Printf("%s: %d outputs changed, in %.0f s\n", r.page.path, len(r.changed), time.Since(start).Seconds())
	if r.update && !r.page.made { // After an error too: what was printed until then may show the cause.
		return errors.Join(err, os.WriteFile(r.page.path, []byte(r.page.String()), 0o644))
	}
	if err != nil {
		return err
	}
	if len(r.changed) > 0 {
		return fmt.Errorf("the page shows something else than the commands print; run make update-docs\n%s", strings.Join(r.changed, "\n"))
	}
	return nil
}

// open starts a shell in a folder that has the artifacts of a clone, and nothing else.
func (r *runner) open(ctx context.Context, c *cluster.Cluster, root string) (err error) {
	if r.folder, err = os.MkdirTemp("", "winnow-docs-"); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(r.folder, "artifacts"), os.DirFS("artifacts")); err != nil {
		return err
	}
	helm, err := programs.Provide(ctx, os.Stderr, programs.Helm)
	if err != nil {
		return err
	}
	path := strings.Join([]string{
		filepath.Dir(c.KubectlPath()), filepath.Dir(helm[programs.Helm]), filepath.Join(root, "bin"), os.Getenv("PATH"),
	}, string(os.PathListSeparator))
	r.shell, err = startShell(ctx, r.folder, append(os.Environ(), "PATH="+path, "HOME="+r.folder, "TZ=UTC", "KUBECONFIG="+c.Kubeconfig(),
		"CLONE="+root))
	return err
}

// parts does what the parts of the page say. The commands of sentences do not depend on each other.
func (r *runner) parts() error {
	var failed []error
	for _, one := range r.page.parts {
		var err error
		switch {
		case one.file != nil:
			err = os.WriteFile(filepath.Join(r.folder, one.file.name), []byte(one.file.content), 0o600)
		case one.block != nil && one.block.marks.notRun == "":
			switch err = r.block(one.block); {
			case err != nil && r.page.made:
				failed, err = append(failed, fmt.Errorf("%s: %w", one.block.open, err)), nil
			case err != nil:
				err = fmt.Errorf("line %d: %w", one.block.line, err)
			}
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

func (r *runner) block(b *block) error {
	for i := range b.commands {
		c := &b.commands[i]
		if b.marks.background {
			// Without exec, the process would outlive the shell that is killed.
			if output, _, err := r.shell.run("exec " + strings.TrimSpace(c.input) + " >background.log 2>&1 &"); err != nil {
				return fmt.Errorf("%s: %w\n%s", c.input, err, output)
			}
			continue
		}
		output, err := r.command(b, *c)
		if err != nil {
			return err
		}
		if !b.prompted {
			continue
		}
		r.ids.learn(c.output, output)
		if output = r.ids.restore(output); !same(c.output, output) {
			r.changed = append(r.changed,
				fmt.Sprintf("  line %d: %s  shown:\n%s\n  printed:\n%s", b.line, c.input, indent(c.output), indent(output)))
			c.output = output
		}
	}
	return nil
}

// command runs a command. If it only reads, it is repeated until it prints what the page shows, for some seconds.
func (r *runner) command(b *block, c command) (output string, err error) {
	input := r.ids.translate(c.input)
	for until := time.Now().Add(settleTimeout); ; time.Sleep(settlePeriod) {
		output, status, err := r.send(b, input)
		if err != nil {
			return "", fmt.Errorf("%s: %w\n%s", input, err, output)
		}
		if output = strings.TrimRight(output, "\n"); output != "" {
			output += "\n"
		}
		asShown := (status == 0 || status == b.marks.exit) && (!b.prompted || same(c.output, output))
		if asShown || !reads.MatchString(input) || time.Now().After(until) {
			if status != 0 && status != b.marks.exit {
				return "", fmt.Errorf("%s ended with status %d:\n%s", strings.TrimSpace(input), status, output)
			}
			return output, nil
		}
	}
}

// send sends the shell a command that prints what the page shows, or a script.
func (r *runner) send(b *block, input string) (output string, status int, err error) {
	if b.prompted {
		return r.shell.run(input)
	}
	return r.shell.script(input)
}

func init() {
	klog.LogToStderr(false) // client-go says nothing that belongs to the result.
}
