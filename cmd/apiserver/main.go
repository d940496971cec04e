// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command winnow-apiserver serves the cleanup API behind the aggregator of a Kubernetes cluster, and deletes what the
// policies in it say.
package main

import (
	"os"
	"runtime/debug"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json

	"github.com/winnow-dev/winnow/cmd/apiserver/app"
)

// garbage is how much of it there may be beside what lives, in percent, unless GOGC says. What waits for its time lives long and hardly
// changes, so that it costs little to look more often, and much to keep room for as much again.
const garbage = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	command := app.NewCommand(genericapiserver.SetupSignalContext())
	os.Exit(cli.Run(command))
}
