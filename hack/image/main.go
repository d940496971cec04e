// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command image packs winnow-apiserver into a container image without a container runtime, describes it, and pushes it. What it writes
// depends on its input alone: the same commit, version and Go release give the same digests on every machine.
//
//	image build -version V -commit C -time T -licence FILE -output DIR BINARY...
//	                                                             an OCI layout, its archive, SBOMs and provenance
//	image push -output DIR -repository NAME                      pushes what build wrote
//	image archive -time T OUTPUT BINARY [FILE...]                a .tar.gz of a program and other files
//	image release -output DIR -repository NAME -artifacts DIR    gathers all files of a release, with their checksums
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("the first argument must be build, push, archive or release")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	output := flags.String("output", "", "the folder of the image and of what is beside it")
	repository := flags.String("repository", "", "the repository of the image, for example registry.example.com/winnow")
	version := flags.String("version", "", "the version of the image, which is also its tag")
	commit := flags.String("commit", "", "the commit that was built, with the suffix -dirty if there were other changes")
	seconds := flags.Int64("time", 0, "the time of the commit, in seconds since 1970, for everything that is written")
	licence := flags.String("licence", "", "the file with the licence")
	builder := flags.String("builder", localBuilder, "the URI of the builder that the provenance names")
	artifacts := flags.String("artifacts", "", "the folder of the manifests and the chart")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	modified := time.Unix(*seconds, 0).UTC()
	switch args[0] {
	case "build":
		b := build{version: *version, commit: *commit, time: modified, builder: *builder, licence: *licence, output: *output}
		for _, path := range flags.Args() {
			binary, err := inspect(path)
			if err != nil {
				return err
			}
			b.binaries = append(b.binaries, binary)
		}
		return b.run()
	case "push":
		image, err := push(ctx, *output, *repository)
		if err == nil {
			fmt.Println(image)
		}
		return err
	case "archive":
		return archiveProgram(flags.Args(), modified)
	case "release":
		return release{output: *output, repository: *repository, artifacts: *artifacts}.run()
	default:
		return fmt.Errorf("%q is no command: use build, push, archive or release", args[0])
	}
}
