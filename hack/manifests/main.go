// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manifests writes the manifests in artifacts that show the same objects as the chart: it renders the chart and takes away what
// only Helm needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/winnow-dev/winnow/test/programs"
)

const (
	chart     = "artifacts/chart/winnow"
	namespace = "winnow-system"
)

// everything are values that render all templates whose objects do not depend on other values.
var everything = []string{
	"--set=optional.priority=true,optional.moreResources=true,optional.referrers=true,optional.deadlines=true",
	"--set=optional.edit=true,optional.manageStorage=true,storage=false,accounts.enabled=true",
	"--set=monitoring.rbac.enabled=true,monitoring.serviceMonitor.enabled=true,monitoring.prometheusRule.enabled=true",
}

// manifest is a file below artifacts.
type manifest struct {
	path, template string
	values         []string
	// drop are labels and annotations that the manifest does without, in addition to the ones of Helm.
	drop []string
}

// Winnow embeds the storage, and knows it by its hash: its manifests have no more than they need.
var onlyInChart = []string{"app.kubernetes.io/name", "argocd.argoproj.io/sync-wave", "argocd.argoproj.io/sync-options"}

var manifests = []manifest{
	{path: "storage/crds.yaml", template: "storage/crds.yaml", drop: onlyInChart},
	{path: "storage/admission-policy.yaml", template: "storage/admission-policy.yaml", drop: onlyInChart},
	{path: "install/01-quota.yaml", template: "quota.yaml"},
	{path: "install/10-rights.yaml", template: "rights.yaml"},
	{path: "install/11-user-roles.yaml", template: "user-roles.yaml"},
	{path: "install/20-server.yaml", template: "server.yaml"},
	{path: "install/30-guard.yaml", template: "guard.yaml"},
	{path: "optional/accounts.yaml", template: "optional/accounts.yaml", values: everything},
	{
		path: "optional/accounts-before-1.36.yaml", template: "optional/accounts-before-1.36.yaml",
		values: []string{"--set=accounts.beforeKubernetes136=true"},
	},
	// A kustomization can name no single file of another folder.
	{path: "no-delete/accounts.yaml", template: "optional/accounts.yaml", values: everything},
	{path: "optional/deadlines.yaml", template: "optional/deadlines.yaml", values: everything},
	{path: "optional/edit.yaml", template: "optional/edit.yaml", values: everything},
	{path: "optional/manage-storage.yaml", template: "optional/manage-storage.yaml", values: everything},
	{path: "optional/more-resources.yaml", template: "optional/more-resources.yaml", values: everything},
	{path: "optional/network-policy.yaml", template: "network-policy.yaml", values: []string{"--set=networkPolicy.enabled=true"}},
	{path: "optional/priority.yaml", template: "optional/priority.yaml", values: everything},
	{path: "optional/referrers.yaml", template: "optional/referrers.yaml", values: everything},
	{
		path: "optional/trainjob-deadlines.yaml", template: "optional/trainjob-deadlines.yaml",
		values: []string{"--set=optional.trainJobDeadlineSeconds=604800"},
	},
	{path: "monitoring/rbac.yaml", template: "monitoring/rbac.yaml", values: everything},
	{path: "monitoring/rules.yaml", template: "monitoring/rules.yaml", values: everything},
	{path: "monitoring/servicemonitor.yaml", template: "monitoring/servicemonitor.yaml", values: everything},
	{
		path: "cert-manager/certificates.yaml", template: "cert-manager/certificates.yaml",
		values: []string{"--set=certificates.source=certManager"},
	},
}

func main() {
	output := flag.String("o", "artifacts", "folder that the manifests are written to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *output); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, output string) error {
	paths, err := programs.Provide(ctx, os.Stderr, programs.Helm)
	if err != nil {
		return err
	}
	h := helm{program: paths[programs.Helm]}
	for _, m := range manifests {
		if err := h.writeManifest(ctx, m, output); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	dashboard, err := os.ReadFile(filepath.Join(chart, "files/dashboard.json"))
	if err != nil {
		return err
	}
	return write(filepath.Join(output, "monitoring/dashboard.json"), dashboard)
}

type helm struct{ program string }

func (h helm) writeManifest(ctx context.Context, m manifest, output string) error {
	source, err := os.ReadFile(filepath.Join(chart, "templates", m.template))
	if err != nil {
		return err
	}
	rendered, err := h.render(ctx, m)
	if err != nil {
		return err
	}
	text, err := plain(rendered, string(source), m)
	if err != nil {
		return err
	}
	return write(filepath.Join(output, m.path), []byte(text))
}

// render returns what Helm makes of a template.
func (h helm) render(ctx context.Context, m manifest) (string, error) {
	args := append([]string{"template", "winnow", chart, "--namespace", namespace, "--show-only", "templates/" + m.template}, m.values...)
	out, err := exec.CommandContext(ctx, h.program, args...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("helm template: %w\n%s", err, failed.Stderr)
	}
	return string(out), err
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
