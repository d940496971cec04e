// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// write appends the example: the manifests, a table of what happens to which object and why, and what follows from all of it.
func (e *example) write(out *strings.Builder) {
	fmt.Fprintf(out, "\n**Example: %s**\n", e.Name)
	if e.Text != "" {
		fmt.Fprintf(out, "\n%s\n", strings.TrimSpace(e.Text))
	}
	language := "yaml"
	if e.Refused { // Nobody should take it for a manifest to apply.
		language = ""
	}
	if e.Before != "" {
		fmt.Fprintf(out, "\nBefore:\n\n```%s\n%s```\n\nAfter:\n", language, e.Before)
	}
	fmt.Fprintf(out, "\n```%s\n%s```\n\n", language, e.Given)
	for _, name := range sorted(e.CronJobs) {
		active := "no Job"
		if len(e.CronJobs[name]) > 0 {
			active = code(e.CronJobs[name]...)
		}
		fmt.Fprintf(out, "The CronJob `%s` lists %s as active", name, active)
		if last := e.LastScheduled[name]; last != "" {
			fmt.Fprintf(out, ", and its `lastScheduleTime` is %s", last)
		}
		fmt.Fprint(out, ".\n\n")
	}
	if len(e.Unobserved) > 0 {
		fmt.Fprintf(out, "Winnow has not seen the namespace %s yet.\n\n", code(e.Unobserved...))
	}
	fmt.Fprint(out, "| object | what happens | why |\n| --- | --- | --- |\n")
	for _, o := range e.Objects {
		fmt.Fprintf(out, "| %s | %s | %s |\n", o.describe(), o.happens(), o.Why)
	}
	for _, namespace := range sorted(e.Order) {
		fmt.Fprintf(out, "\nWinnow deletes the objects in `%s` in this order: %s.\n", namespace, code(e.Order[namespace]...))
	}
	for _, key := range sorted(e.MakesDue) {
		policy, namespace, _ := strings.Cut(key, " in ")
		fmt.Fprintf(out, "\nThe change makes %d objects due by `%s` in `%s`.\n", e.MakesDue[key], policy, namespace)
	}
}

func (o *object) describe() string {
	words := []string{o.name()}
	add := func(ok bool, format string, args ...any) {
		if ok {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(o.Namespace != "", "in `%s`", o.Namespace)
	add(o.Created != "", "created %s", o.Created)
	if o.ConfigMap == "" {
		o.describeRun(add)
	} else {
		add(strings.HasSuffix(o.Answer, "InUse"), "in use") // For other rules it does not matter.
		add(o.Unused != "", "unused since %s", o.Unused)
		add(o.ReferrersUnknown, "not known whether in use")
	}
	add(o.Matched != "", "matched since %s", o.Matched)
	add(o.Outcome != "", "`%s`", o.Outcome)
	for _, key := range sorted(o.Labels) {
		add(true, "label `%s=%s`", key, o.Labels[key])
	}
	for _, key := range sorted(o.Annotations) {
		add(true, "annotation `%s: %s`", key, o.Annotations[key])
	}
	if o.ActiveDeadlineSeconds != nil {
		add(true, "`activeDeadlineSeconds: %d`", *o.ActiveDeadlineSeconds)
	}
	if o.TTLSecondsAfterFinished != nil {
		add(true, "`ttlSecondsAfterFinished: %d`", *o.TTLSecondsAfterFinished)
	}
	add(o.Controller != "", "controlled by `%s`", o.Controller)
	add(o.PodFailurePolicy != "", "`podFailurePolicy` with action `%s`", o.PodFailurePolicy)
	add(o.ManagedBy != "", "`managedBy: %s`", o.ManagedBy)
	add(o.Scheduled != "", "scheduled for %s", o.Scheduled)
	add(len(o.Finalizers) > 0, "finalizer %s", code(o.Finalizers...))
	add(o.Applied != "", "applied by %s", o.Applied)
	add(o.Announced != "", "given notice %s, which names the time %s", o.Announced, o.Named)
	add(o.Acknowledged != "", "acknowledged by the receiver of notifications %s", o.Acknowledged)
	add(o.Recreated, "back for the third time")
	add(o.Terminating, "being deleted")
	return strings.Join(words, ", ")
}

func (o *object) describeRun(add func(ok bool, format string, args ...any)) {
	switch o.Finished {
	case "":
		add(o.Started == "", "runs")
		add(o.Started != "", "started %s", o.Started)
		add(o.Suspended, "suspended")
	default:
		seen, unknown := strings.CutPrefix(o.Finished, "first seen ")
		add(!unknown, "finished %s", o.Finished)
		add(unknown, "first seen finished %s, and does not say when", seen)
	}
}

func (o *object) name() string {
	kind, name := "Job", o.Job
	switch {
	case o.Pod != "":
		kind, name = "Pod", o.Pod
	case o.ConfigMap != "":
		kind, name = "ConfigMap", o.ConfigMap
	}
	if o.Count == 0 {
		return kind + " " + code(name)
	}
	return kind + "s " + code(name+"-1") + " to " + code(name+"-"+strconv.Itoa(o.Count))
}

func (o *object) happens() string {
	out := o.answer.String()
	if o.Propagation != "" {
		out += ", with propagation " + code(o.Propagation)
	}
	for _, policy := range sorted(o.Previews) {
		out += fmt.Sprintf("; preview of `%s`: %s", policy, o.Previews[policy])
	}
	return out
}

// String is such as "**Delete** `Expired`, due 1h ago, by `team-a/ci default`".
func (a answer) String() string {
	action, reason, _ := strings.Cut(a.Answer, " ")
	out := "**" + action + "** " + code(reason)
	switch {
	case a.Due == "":
	case strings.HasSuffix(action, "Deadline"):
		out += ", ends " + a.Due
	default:
		out += ", due " + a.Due
	}
	if a.By != "" {
		out += ", by " + code(a.By)
	}
	return out
}

func code(words ...string) string { return "`" + strings.Join(words, "`, `") + "`" }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
