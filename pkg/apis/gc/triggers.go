// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import "slices"

// After is the event from which on a rule may delete an object, and from which its TTL is counted.
type After string

const (
	// AfterFinished counts from when the object finished.
	AfterFinished After = "Finished"
	// AfterCreated counts from when the object was created.
	AfterCreated After = "Created"
	// AfterMatched counts from when the selector and the match conditions of the rule began to hold for the object.
	AfterMatched After = "Matched"
	// AfterUnused counts from when nothing referred to the object any more.
	AfterUnused After = "Unused"
)

// Trigger says what a rule with one value of After may say, and how to name the event to people.
//
// +k8s:deepcopy-gen=false
type Trigger struct {
	After After
	// Event completes "after their", and Since begins a line with the time of the event.
	Event, Since string
	// Risk is set if the rule deletes objects that have not finished: why it must say clearly which.
	Risk string
	// Resources are the only ones that the rule can name, because only these OnlyThese; empty is no such limit.
	Resources []string
	OnlyThese string
	// Unreferenced is set if the rule deletes only what nothing refers to, so that what may refer must be observed.
	Unreferenced bool
}

// Triggers are all triggers. The first is the default.
var Triggers = []*Trigger{
	{After: AfterFinished, Event: "finish", Since: "Finished"},
	{
		After: AfterCreated, Event: "creation", Since: "Created",
		Risk: "a rule with after: Created deletes objects whether they were ever used or not",
	},
	{
		After: AfterMatched, Event: "match", Since: "Matched since",
		Risk: "a rule with after: Matched deletes objects whether they were ever used or not",
	},
	{
		After: AfterUnused, Event: "last use", Since: "Unused since",
		Risk:         "a rule with after: Unused deletes objects that something may use without a reference",
		Resources:    []string{ResourceConfigMaps, ResourceSecrets},
		OnlyThese:    "can be unused",
		Unreferenced: true,
	},
}

// Afters returns the values of all triggers.
func Afters() []After {
	var out []After
	for _, t := range Triggers {
		out = append(out, t.After)
	}
	return out
}

// TriggerOf returns the trigger of a value, or the one of AfterFinished if the value is empty or unknown.
func TriggerOf(after After) *Trigger {
	return Triggers[max(0, slices.IndexFunc(Triggers, func(t *Trigger) bool { return t.After == after }))]
}

// CanName reports whether a rule may name a resource, if policies can name it at all.
func (t *Trigger) CanName(resource string) bool {
	if resource == ResourceEvents && t.After != AfterCreated { // They never finish, and there are too many to note when each began to match.
		return false
	}
	return len(t.Resources) == 0 || slices.Contains(t.Resources, resource)
}

// NeedsFinish reports whether the rule deletes only what has finished.
func (t *Trigger) NeedsFinish() bool { return t.Risk == "" }

// CanTakeUnfinished reports whether the rule may delete what can finish and has not.
func (t *Trigger) CanTakeUnfinished() bool { return t.After == AfterCreated || t.After == AfterMatched }

var unused = TriggerOf(AfterUnused)

// CanBeUnused reports whether rules can delete a resource because nothing refers to it.
func CanBeUnused(resource string) bool { return unused.CanName(resource) }
