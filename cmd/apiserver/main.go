// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command winnow-apiserver serves the cleanup API behind the aggregator of a Kubernetes cluster, and deletes objects as its policies say.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json

	"github.com/winnow-dev/winnow/cmd/apiserver/app"
)

func main() {
	command := app.NewCommand(genericapiserver.SetupSignalContext())
	os.Exit(cli.Run(command))
}
