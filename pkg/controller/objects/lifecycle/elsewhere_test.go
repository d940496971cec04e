// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
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
		"Argo CD, an app in a separate namespace": {
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
		"a hook that says no more": {testbuilders.Pod("p").Annotation("argocd.argoproj.io/hook", "").Fact(), `Argo CD hook`},

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

		"a name, and a controller": {
			testbuilders.Job("migrate").Annotation(tracking, "web:batch/Job:team-a/migrate").ControlledBy("batch/v1", "CronJob", "c").Fact(), `Argo CD app "web"`},
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

// TestMarks: for each mark, whether it counts if it was copied, with a trace of its tool, without any field managers, and on an object with
// a controller.
func TestMarks(t *testing.T) {
	type job = *testbuilders.JobBuilder
	const prefix = "toolkit.fluxcd.io/name"
	owned := func(apiVersion, kind string) func(job) job {
		return func(j job) job { return j.OwnedBy(apiVersion, kind, "w") }
	}
	annotated := func(pairs ...string) func(job) job {
		return func(j job) job {
			for i := 0; i < len(pairs); i += 2 {
				j = j.Annotation(pairs[i], pairs[i+1])
			}
			return j
		}
	}
	labelled := func(pairs ...string) func(job) job {
		return func(j job) job {
			for i := 0; i < len(pairs); i += 2 {
				j = j.Label(pairs[i], pairs[i+1])
			}
			return j
		}
	}
	const (
		always    = "proven"   // whatever else the object has
		hub       = "hub"      // unless the object has a controller
		withTrace = "managers" // with a trace of the tool, unless the object has a controller
		never     = "never"
	)
	for name, c := range map[string]struct {
		mark    func(job) job
		counts  string
		manager string
		want    string
	}{
		"Argo CD":                 {annotated("argocd.argoproj.io/tracking-id", "web:batch/Job:team-a/a"), always, "", `Argo CD app "web"`},
		"Argo CD, another object": {annotated("argocd.argoproj.io/tracking-id", "web:batch/Job:team-a/b"), never, "argocd-controller", ""},
		"Argo CD, hook":           {annotated("argocd.argoproj.io/hook", "PostSync"), withTrace, "argocd-controller", `Argo CD hook "PostSync"`},
		"Argo CD, hook, old name": {annotated("argocd.argoproj.io/hook", "PostSync"), withTrace, "argocd-application-controller", `Argo CD hook "PostSync"`},
		"Flux":                    {labelled("kustomize."+prefix, "a", "kustomize."+prefix+"space", "b"), withTrace, "kustomize-controller", `Flux Kustomization "b/a"`},
		"Flux with Helm":          {labelled("helm."+prefix, "a", "helm."+prefix+"space", "b"), withTrace, "helm-controller", `Flux HelmRelease "b/a"`},
		"Helm":                    {annotated("meta.helm.sh/release-name", "a", "meta.helm.sh/release-namespace", "b"), withTrace, "helm", `Helm release "b/a"`},
		"Helm 2 to 3":             {annotated("meta.helm.sh/release-name", "a", "meta.helm.sh/release-namespace", "b"), withTrace, "Helm", `Helm release "b/a"`},
		"Helm in Rancher":         {annotated("meta.helm.sh/release-name", "a", "meta.helm.sh/release-namespace", "b"), withTrace, "fleetagent", `Helm release "b/a"`},
		"Helm in Terraform":       {annotated("meta.helm.sh/release-name", "a", "meta.helm.sh/release-namespace", "b"), withTrace, "terraform-provider-helm_v2.12.1_x5", `Helm release "b/a"`},
		"kapp":                    {annotated("kapp.k14s.io/identity", "v1;team-a/batch/Job/a;batch/v1"), always, "", `kapp app`},
		"kapp, with its app": {func(j job) job {
			return j.Label("kapp.k14s.io/app", "15").Annotation("kapp.k14s.io/identity", "v1;team-a/batch/Job/a;batch/v1")
		}, always, "", `kapp app "15"`},
		"kapp, another object":           {annotated("kapp.k14s.io/identity", "v1;team-a/batch/Job/b;batch/v1"), never, "kapp", ""},
		"kapp, label alone":              {labelled("kapp.k14s.io/app", "15"), withTrace, "kapp", `kapp app "15"`},
		"Config Sync":                    {annotated("configsync.gke.io/resource-id", "batch_job_team-a_a", "configmanagement.gke.io/managed", "enabled"), always, "", `Config Sync`},
		"Config Sync, not any more":      {annotated("configsync.gke.io/resource-id", "batch_job_team-a_a", "configmanagement.gke.io/managed", "disabled"), never, "configsync", ""},
		"Config Sync, another object":    {annotated("configsync.gke.io/resource-id", "batch_job_team-a_b", "configmanagement.gke.io/managed", "enabled"), withTrace, "configsync", `Config Sync`},
		"Config Sync, without an object": {annotated("configmanagement.gke.io/managed", "enabled"), withTrace, "configsync", `Config Sync`},
		"kpt":                            {annotated("config.k8s.io/owning-inventory", "i"), withTrace, "kubectl", `kpt inventory "i"`},
		"kpt, old key":                   {annotated("config.kubernetes.io/owning-inventory", "i"), withTrace, "kpt", `kpt inventory "i"`},
		"ApplySet":                       {labelled("applyset.kubernetes.io/part-of", "applyset-x-v1"), withTrace, "kubectl-client-side-apply", `ApplySet "applyset-x-v1"`},
		"ApplySet of kro":                {labelled("applyset.kubernetes.io/part-of", "applyset-x-v1"), withTrace, "kro.run/applyset", `ApplySet "applyset-x-v1"`},

		"MultiKueue": {labelled("kueue.x-k8s.io/multikueue-origin", "multikueue"), hub, "", `MultiKueue of "multikueue"`},
		"Karmada":    {labelled("karmada.io/managed", "true"), hub, "", `Karmada`},
		"Karmada, with its work": {func(j job) job {
			return annotated("work.karmada.io/name", "a", "work.karmada.io/namespace", "karmada-es-m")(j.Label("karmada.io/managed", "true"))
		}, hub, "", `Karmada "karmada-es-m/a"`},
		"Karmada, old labels":                   {labelled("work.karmada.io/name", "a", "work.karmada.io/namespace", "karmada-es-m"), hub, "", `Karmada "karmada-es-m/a"`},
		"Open Cluster Management":               {owned("work.open-cluster-management.io/v1", "AppliedManifestWork"), always, "", `Open Cluster Management work "w"`},
		"Open Cluster Management, older":        {owned("work.open-cluster-management.io/v1alpha1", "AppliedManifestWork"), always, "", `Open Cluster Management work "w"`},
		"KubeFleet":                             {owned("placement.kubernetes-fleet.io/v1beta1", "AppliedWork"), always, "", `KubeFleet work "w"`},
		"an owner of that kind, another group":  {owned("example.com/v1", "AppliedManifestWork"), never, "work-agent", ""},
		"an owner of that group, another kind":  {owned("work.open-cluster-management.io/v1", "Work"), never, "work-agent", ""},
		"a group that begins like that":         {owned("work.open-cluster-management.io.example/v1", "AppliedManifestWork"), never, "work-agent", ""},
		"a Job of Kueue without another origin": {labelled("kueue.x-k8s.io/queue-name", "q"), never, "kueue", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.manager == "" {
				c.manager = "anything"
			}
			build := func() job { return c.mark(testbuilders.Job("a")) }
			for state, one := range map[string]struct {
				job    job
				counts bool
			}{
				"with the manager":       {build().Managers("kube-controller-manager", c.manager), c.counts != never},
				"with other managers":    {build().Managers("kube-controller-manager", "tekton"), c.counts == always || c.counts == hub},
				"without managers":       {build(), c.counts != never},
				"manager and controller": {build().Managers(c.manager).ControlledBy("example.com/v1", "Run", "r"), c.counts == always},
			} {
				want := ""
				if one.counts {
					want = c.want
				}
				if got := one.job.Fact().Applied; got != want {
					t.Errorf("%s: %q, want %q", state, got, want)
				}
			}
			j := build().Obj()
			if got := lifecycle.MarkedBy(schema.GroupKind{Group: "batch", Kind: "Job"}, &j.ObjectMeta); got != c.want {
				t.Errorf("marked by %q, want %q", got, c.want)
			}
			encoded, err := json.Marshal(j.ObjectMeta)
			if err != nil {
				t.Fatal(err)
			}
			if c.counts == withTrace && !lifecycle.NeedsManagers(encoded) {
				t.Errorf("its managers would not be read")
			}
		})
	}
}
