// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command docs-commands runs the commands of the documentation on real clusters. It compares what they print with what the pages show, or
// writes it into the pages. README.md says how to write pages for it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

const usage = `Runs the commands of the documentation on real clusters, one for each page, and fails if one prints something else than the
page shows.

Usage: make verify-docs, make update-docs, or
  go run ./hack/docs-commands [-update] [PAGE ...]

It needs bin/winnow-apiserver and bin/kubectl-winnow of "make build".

`

// mostNotRun is how many blocks of commands may be marked as not run. Whoever raises it has found that a reader's command cannot run here.
const mostNotRun = 20

// atOnce is how many pages run at the same time. Most of their time they wait.
const atOnce = 2

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "docs-commands:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	update := flag.Bool("update", false, "write what the commands print into the pages")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	paths := flag.Args()
	if len(paths) == 0 {
		var err error
		if paths, err = allPages(); err != nil {
			return err
		}
	}
	var pages []*page
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		p, err := parse(path, string(content))
		if err != nil {
			return err
		}
		pages = append(pages, p)
	}
	if err := sayNotRun(pages); err != nil {
		return err
	}
	return runAll(ctx, append(pages, prosePage(pages)), *update)
}

// allPages returns the pages that users read.
func allPages() ([]string, error) {
	paths := []string{"README.md"}
	err := filepath.WalkDir("docs", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" && filepath.Dir(path) != filepath.Join("docs", "decisions") {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

// sayNotRun lists the blocks that do not run, with the reasons.
func sayNotRun(pages []*page) error {
	n := 0
	for _, p := range pages {
		for _, b := range p.blocks() {
			if b.marks.notRun != "" {
				n++
				fmt.Printf("%s:%d: not run: %s\n", p.path, b.line, b.marks.notRun)
			}
		}
	}
	if n > mostNotRun {
		return fmt.Errorf("%d blocks are marked as not run, and at most %d may be", n, mostNotRun)
	}
	return nil
}

// runAll runs pages, several at once.
func runAll(ctx context.Context, pages []*page, update bool) error {
	free := make(chan struct{}, atOnce)
	errs := make([]error, len(pages))
	var group sync.WaitGroup
	for i, p := range pages {
		if !p.runs() {
			continue
		}
		group.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			r := &runner{page: p, update: update, ids: ids{}}
			if errs[i] = r.run(ctx); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", p.path, errs[i])
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// blocks returns the blocks of commands.
func (p *page) blocks() (out []*block) {
	for _, one := range p.parts {
		if one.block != nil {
			out = append(out, one.block)
		}
	}
	return out
}

// runs reports whether there is anything to run.
func (p *page) runs() bool {
	for _, b := range p.blocks() {
		if b.marks.notRun == "" {
			return true
		}
	}
	return false
}

// indent puts text below a line that introduces it.
func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
