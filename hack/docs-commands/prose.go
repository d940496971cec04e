// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"
)

// before says how the commands run that stand in sentences and tables, not in blocks: all on one cluster, each on its own, and without an
// output to compare. Whatever TEAM and NAME stand for exists there, created by these commands.
var before = []string{
	"kubectl create namespace team-a",
	"kubectl create namespace team-x",
	"kubectl create job name -n team-a --image=busybox -- true",
	"kubectl create job build-7 -n team-a --image=busybox -- true",
	"kubectl create job name --image=busybox -- true",
	"kubectl wait job --all -n team-a --for=condition=Complete --timeout=1m",
	"kubectl create configmap name -n team-a",
	"kubectl apply -f policy.yaml",
	"kubectl apply -f policy.yaml -n team-a",
	`kubectl patch cup name -n team-a --type merge --patch '{"spec": {"suspend": true}}'`,
	"kubectl apply -f cluster.yaml",
}

const (
	prosePolicy = `
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: name}
spec: {ttlAfterFinished: 90d}
`
	proseClusterPolicy = `
apiVersion: gc.winnow.dev/v1alpha1
kind: ClusterCleanupPolicy
metadata: {name: name}
spec: {mode: Preview, namespaceSelector: {}}
`
)

var (
	inSentence = regexp.MustCompile("`((?:kubectl|make) [^`]+)`")
	// Not run: commands about a Deployment of Winnow, because it runs outside of test clusters, and what runs until Ctrl-C.
	elsewhere = regexp.MustCompile(`-n winnow-system .*deployment|^make (bench|soak|test-long)|^kubectl proxy`)
	// named are commands that a sentence only names. They must have a help.
	named = []string{
		"kubectl apply", "kubectl apply --dry-run=server", "kubectl apply -k", "kubectl auth can-i",
		"kubectl auth can-i update jobs/status -n team-a --as=alice", "kubectl create job --from", "kubectl delete",
		"kubectl delete --dry-run=server", "kubectl describe", "kubectl diff", "kubectl explain", "kubectl get", "kubectl get -o yaml",
		"kubectl rollout undo", "kubectl winnow", "kubectl winnow approve", "kubectl winnow keep", "kubectl winnow preview",
		"kubectl winnow report -f", "kubectl winnow restore", "kubectl winnow ui", "kubectl winnow ui --port 8002", "kubectl winnow why",
	}
	writes = regexp.MustCompile(`^kubectl (annotate|apply|create|delete|label|patch|scale)\b`)
	// placeholders are replaced by what prose creates.
	placeholders = strings.NewReplacer("TEAM", "team-a", "NAME", "name", "POLICY", "name", "FILE", "policy.yaml")
)

// prosePage returns a page of the commands that other pages have in their prose.
func prosePage(pages []*page) *page {
	out := &page{path: "commands in sentences", made: true, parts: []part{
		{file: &file{"policy.yaml", prosePolicy}}, {file: &file{"cluster.yaml", proseClusterPolicy}},
	}}
	add := func(page, input string) {
		out.parts = append(out.parts, part{block: &block{open: page, commands: []command{{input: input}}}})
	}
	for _, input := range before {
		add(out.path, input)
	}
	var seen []string
	for _, p := range pages {
		for _, text := range p.inSentences() {
			if input := asRun(text); input != "" && !slices.Contains(seen, input) {
				seen = append(seen, input)
				add(p.path, input)
			}
		}
	}
	return out
}

// inSentences returns the commands in the prose of a page.
func (p *page) inSentences() []string {
	var text strings.Builder
	for _, one := range p.parts {
		if !strings.HasPrefix(one.text, "```") && !strings.HasPrefix(one.text, "<!--") {
			text.WriteString(one.text)
		}
	}
	var out []string
	for _, match := range inSentence.FindAllStringSubmatch(text.String(), -1) {
		out = append(out, strings.Join(strings.Fields(match[1]), " "))
	}
	return out
}

// asRun returns how a command of a sentence runs; empty if it does not.
func asRun(command string) string {
	switch {
	case elsewhere.MatchString(command):
		return ""
	case strings.HasPrefix(command, "make "):
		return `make -C "${CLONE}" --dry-run ` + strings.TrimPrefix(command, "make ")
	case slices.Contains(named, command):
		command, _, _ = strings.Cut(command, " -")
		return command + " --help"
	case writes.MatchString(command) && !strings.Contains(command, "--dry-run"):
		command += " --dry-run=server"
	}
	return placeholders.Replace(command)
}
