// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

func TestApplied(t *testing.T) {
	const (
		tracking     = "argocd.argoproj.io/tracking-id"
		kustomize    = "kustomize.toolkit.fluxcd.io/name"
		kustomizeNS  = "kustomize.toolkit.fluxcd.io/namespace"
		helmFlux     = "helm.toolkit.fluxcd.io/name"
		helmFluxNS   = "helm.toolkit.fluxcd.io/namespace"
		helmRelease  = "meta.helm.sh/release-name"
		helmReleaseN = "meta.helm.sh/release-namespace"
	)
	tracked := func(id string) *lifecycle.Fact { return testbuilders.Job("migrate").Annotation(tracking, id).Fact() }
	for name, c := range map[string]struct {
		fact *lifecycle.Fact
		want string
	}{
		"nobody":                         {testbuilders.Job("migrate").Label("app", "web").Annotation("example.com/x", "y").Fact(), ""},
		"an instance label says nothing": {testbuilders.Job("migrate").Label("app.kubernetes.io/instance", "web").Fact(), ""},
		"managed by Helm says nothing":   {testbuilders.Job("migrate").Label("app.kubernetes.io/managed-by", "Helm").Fact(), ""},

		"Argo CD, a Job": {tracked("web:batch/Job:team-a/migrate"), `Argo CD app "web"`},
		"Argo CD, a Pod": {testbuilders.Pod("p").Annotation(tracking, "web:/Pod:team-a/p").Fact(), `Argo CD app "web"`},
		"Argo CD, an app in a namespace of its own": {
			tracked("team-b_web:batch/Job:team-a/migrate"), `Argo CD app "team-b_web"`},
		"a tracking id copied from the CronJob": {tracked("web:batch/CronJob:team-a/migrate"), ""},
		"of another name":                       {tracked("web:batch/Job:team-a/migrate-2"), ""},
		"of a name that ends like this one":     {tracked("web:batch/Job:team-a/db/migrate"), ""},
		"of another namespace":                  {tracked("web:batch/Job:team-b/migrate"), ""},
		"of another group":                      {tracked("web:batch.volcano.sh/Job:team-a/migrate"), ""},
		"of no group":                           {tracked("web:/Job:team-a/migrate"), ""},
		"of another case":                       {tracked("web:batch/job:team-a/migrate"), ""},
		"of no app":                             {tracked(":batch/Job:team-a/migrate"), ""},
		"without an app":                        {tracked("batch/Job:team-a/migrate"), ""},
		"with one part too many":                {tracked("web:x:batch/Job:team-a/migrate"), ""},
		"with a version":                        {tracked("web:batch/v1/Job:team-a/migrate"), ""},
		"followed by something":                 {tracked("web:batch/Job:team-a/migrate "), ""},
		"an app alone":                          {tracked("web"), ""},
		"empty":                                 {tracked(""), ""},
		"a Pod marked as the Job of its name": {
			testbuilders.Pod("migrate").Annotation(tracking, "web:batch/Job:team-a/migrate").Fact(), ""},
		"an app too long to be one is cut": {
			tracked(strings.Repeat("a", 1<<17) + ":batch/Job:team-a/migrate"), `Argo CD app "` + strings.Repeat("a", 64) + `..."`},

		"a hook of Argo CD":        {testbuilders.Job("migrate").Annotation("argocd.argoproj.io/hook", "PreSync").Fact(), `Argo CD hook "PreSync"`},
		"a hook that says no more": {testbuilders.Pod("p").Annotation("argocd.argoproj.io/hook", "").Fact(), `Argo CD hook ""`},

		"Flux":                {testbuilders.Job("migrate").Label(kustomize, "apps").Label(kustomizeNS, "flux-system").Fact(), `Flux Kustomization "flux-system/apps"`},
		"Flux, half a mark":   {testbuilders.Job("migrate").Label(kustomize, "apps").Fact(), ""},
		"Flux, no name":       {testbuilders.Job("migrate").Label(kustomize, "").Label(kustomizeNS, "flux-system").Fact(), ""},
		"Flux, as annotation": {testbuilders.Job("migrate").Annotation(kustomize, "apps").Annotation(kustomizeNS, "flux-system").Fact(), ""},
		"Flux with Helm":      {testbuilders.Pod("p").Label(helmFlux, "web").Label(helmFluxNS, "team-a").Fact(), `Flux HelmRelease "team-a/web"`},
		"two halves are no whole": {
			testbuilders.Pod("p").Label(helmFlux, "web").Label(kustomizeNS, "flux-system").Annotation(helmRelease, "web").Fact(), ""},

		"Helm":              {testbuilders.Job("migrate").Annotation(helmRelease, "web").Annotation(helmReleaseN, "team-a").Fact(), `Helm release "team-a/web"`},
		"Helm, half a mark": {testbuilders.Job("migrate").Annotation(helmReleaseN, "team-a").Fact(), ""},
		"Helm, as label":    {testbuilders.Job("migrate").Label(helmRelease, "web").Label(helmReleaseN, "team-a").Fact(), ""},
		"a wrong mark does not hide a right one": {
			testbuilders.Job("migrate").Annotation(tracking, "web:batch/Job:team-a/x").Annotation(helmRelease, "web").Annotation(helmReleaseN, "team-a").Fact(),
			`Helm release "team-a/web"`},

		"an object with a controller": {
			testbuilders.Job("migrate").Annotation(tracking, "web:batch/Job:team-a/migrate").ControlledBy("batch/v1", "CronJob", "c").Fact(), ""},
		"an owner that does not control changes nothing": {
			testbuilders.Job("migrate").Annotation(tracking, "web:batch/Job:team-a/migrate").OwnedBy("v1", "ConfigMap", "c").Fact(), `Argo CD app "web"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.fact.Applied; got != c.want {
				t.Errorf("applied by %q, want %q", got, c.want)
			}
		})
	}
}
