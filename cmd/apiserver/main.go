// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command winnow-apiserver serves the cleanup API behind the aggregator of a Kubernetes cluster, and deletes objects as its policies say.
package main

import (
	"os"
	"runtime/debug"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json

	"github.com/winnow-dev/winnow/cmd/apiserver/app"
)

// garbage is the default of GOGC. Most of the heap is facts, which live long and hardly change, so collecting more often costs little CPU
// and saves much memory.
const garbage = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	command := app.NewCommand(genericapiserver.SetupSignalContext())
	os.Exit(cli.Run(command))
}
