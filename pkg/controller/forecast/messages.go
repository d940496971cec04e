// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// fewMost is how many namespaces, policies or holds a message names.
const fewMost = 3

// account is the result of a forecast.
type account struct {
	gc.PolicyChange
	// lifecycle is nil if a policy changes. Otherwise the policies before and after the change are nil.
	lifecycle *lifecycleChange
	// review is nil unless the change is a draft that is reviewed.
	review *review
	// kinds are the kinds after the change.
	kinds *kinds.Table
	fresh []*view.Due
	// still are objects that wait for the same approval as before the change.
	still []*view.Due
	// counted is how many objects were evaluated; cut says that there are more.
	counted    int
	incomplete bool
	errs       []error
	// report is the report on the policy after the change; empty if the change deletes it.
	report report.Report
	// holds are the holds before the change approves any.
	holds []gc.PolicyHold
	// complete is set if this replica knows of no other holds.
	complete bool
	// leading is set if this replica is the leader.
	leading bool
	// controlled is set if objects of other resources than the lifecycle's become due.
	controlled bool
}

// propose prepares the change for the tracker.
func (a *account) propose() trial.Proposal {
	if a.lifecycle != nil {
		return trial.ProposeKind(a.lifecycle.kind)
	}
	if a.review != nil {
		return a.review.proposal
	}
	return trial.Propose(a.PolicyChange)
}

// lines describes the forecast, with one line for each of: deleted, held, due and waiting for something, still waiting for approval,
// shown by Preview, and due by other policies.
func (a *account) lines() []string {
	var gone, held, waiting, shown, others, deadlines []*view.Due
	for _, due := range a.fresh {
		switch {
		case due.Hold == "" && isDeadline(due.Reason):
			deadlines = append(deadlines, due)
		case due.Waits && a.isOwn(due):
			waiting = append(waiting, due)
		case due.Preview:
			shown = append(shown, due)
		case !a.isOwn(due):
			others = append(others, due)
		case due.Hold != "":
			held = append(held, due)
		default:
			gone = append(gone, due)
		}
	}
	return a.always(slices.Concat(
		a.gone(gone), a.held(held), a.waiting(waiting), a.stillWaiting(), a.shown(shown), a.others(others), a.deadlines(deadlines),
		a.ofOtherResources(),
	))
}

// always adds to the lines about due objects what is said in any case, and what is said if there are none.
func (a *account) always(lines []string) []string {
	if len(lines) == 0 {
		lines = a.approved()
	}
	if len(lines) == 0 {
		lines = a.outOfTime()
	}
	lines = append(lines, a.withoutEffect()...)
	for _, err := range a.errs {
		lines = append(lines, "more objects may be due than were counted: "+err.Error())
	}
	return lines
}

// isOwn reports whether an object is due by the changed policy.
func (a *account) isOwn(due *view.Due) bool {
	return a.lifecycle == nil && due.Policy == nameOf(a.Policy())
}

// outOfTime says that no object was found due before the time was over. If an error was the reason, a separate line says so.
func (a *account) outOfTime() []string {
	if !a.incomplete || len(a.errs) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("nothing is due among the first %s; there was no time to check the rest", number(a.counted, "object"))}
}

// excluded describes a namespace in which nothing is deleted.
var excluded = map[policy.Reason]string{
	policy.ReasonNamespaceProtected: "protected", policy.ReasonNamespaceTerminating: "being deleted",
}

// withoutEffect describes the parts of the policy that have no effect in its namespace.
func (a *account) withoutEffect() []string {
	if a.Before != nil && a.After != nil && a.Before.GetGeneration() == a.After.GetGeneration() {
		return nil
	}
	var lines []string
	if is := excluded[a.report.Excluded]; is != "" {
		lines = append(lines, fmt.Sprintf("namespace %q is %s: this policy deletes nothing in it", a.report.Namespace, is))
	}
	for _, count := range a.report.WithoutQuota {
		if !a.incomplete {
			lines = append(
				lines,
				fmt.Sprintf("no ResourceQuota in namespace %q limits %s, so percentOfQuota has no effect there", a.report.Namespace, count),
			)
		}
	}
	return lines
}

// uncounted returns a forecast that contains only the approvals, and why nothing else is known.
func (a *account) uncounted(why string) gc.PolicyForecast {
	return gc.PolicyForecast{
		Lines:    append(a.approved(), "cannot tell what this change deletes: "+why),
		Holds:    a.holds,
		Complete: a.complete,
		Leading:  a.leading,
	}
}

// gone describes the objects that the changed policy deletes.
func (a *account) gone(all []*view.Due) []string {
	if len(all) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s %s and %s be deleted now%s", a.count(all), past(all), a.will(), most(all))}
}

// held describes the objects that the changed policy would delete if there were not too many.
func (a *account) held(all []*view.Due) []string {
	switch {
	case len(all) == 0:
		return nil
	case a.DryRun && a.Before == nil: // The policy will have another UID, and so the hold another ID.
		return []string{fmt.Sprintf("%s would wait for approval, %s%s", a.count(all), because(all), most(all))}
	case a.DryRun:
		return []string{fmt.Sprintf("%s would wait for approval, %s%s. %s", a.count(all), because(all), most(all), commands(all))}
	}
	return []string{fmt.Sprintf("%s %s for approval, %s%s. %s", a.count(all), waits(all), because(all), most(all), commands(all))}
}

// waiting describes the objects that the changed policy deletes once they have what its rules wait for.
func (a *account) waiting(all []*view.Due) []string {
	var archives, notices []*view.Due
	windows := map[string][]*view.Due{} // by what they wait for
	for _, due := range all {
		switch due.Reason { //nolint:exhaustive // All others wait to be archived.
		case policy.ReasonNoticePending, policy.ReasonNotified:
			notices = append(notices, due)
		case policy.ReasonOutsideWindow:
			what := fmt.Sprintf("a window opens (%s)", due.Why)
			windows[what] = append(windows[what], due)
		case policy.ReasonWindowNeverOpens:
			what := "the windows are changed, because " + due.Why
			windows[what] = append(windows[what], due)
		default:
			archives = append(archives, due)
		}
	}
	var out []string
	if len(archives) > 0 {
		out = append(out, a.until(archives, "waitFor is true"))
	}
	if len(notices) > 0 {
		out = append(out, a.until(notices, "notice of the deletion was out for long enough"))
	}
	for _, what := range slices.Sorted(maps.Keys(windows)) {
		out = append(out, a.until(windows[what], what))
	}
	return out
}

// until says for what due objects of one policy wait, or would.
func (a *account) until(all []*view.Due, what string) string {
	wait, with := waits(all), ""
	if a.DryRun {
		wait = "would wait"
	}
	if all[0].Preview { // All are due by the same policy.
		wait, with = "would wait", fmt.Sprintf(" with mode: %s", gc.ModeEnforce)
	}
	return fmt.Sprintf("%s %s due, and %s until %s%s%s", a.count(all), are(all), wait, what, with, most(all))
}

// stillWaiting describes objects that an earlier change made due, and that this edit of the policy does not release.
func (a *account) stillWaiting() []string {
	if len(a.still) == 0 || a.Before == nil || a.After == nil || a.Before.GetGeneration() == a.After.GetGeneration() {
		return nil
	}
	return []string{
		fmt.Sprintf(
			"%s still %s for approval, %s%s. %s",
			a.count(a.still),
			waits(a.still),
			because(a.still),
			most(a.still),
			commands(a.still),
		),
	}
}

func waits(all []*view.Due) string {
	if len(all) == 1 {
		return "waits"
	}
	return "wait"
}

// because names the changes that made the objects due, usually one.
func because(all []*view.Due) string {
	whys := map[string]bool{}
	for _, due := range all {
		whys[due.Why] = true
	}
	return "because " + strings.Join(slices.Sorted(maps.Keys(whys)), ", and because ")
}

// commands returns the commands that list the waiting objects and approve them.
func commands(all []*view.Due) string {
	resources, namespaces := map[string]bool{}, map[string]bool{}
	for _, due := range all {
		resources[due.Resource], namespaces[due.Namespace] = true, true
	}
	namespace := ""
	if len(namespaces) == 1 {
		namespace = all[0].Namespace
	}
	return fmt.Sprintf("To look at them: %s; to approve: %s", gc.ListCommand(slices.Sorted(maps.Keys(resources)), namespace), approve(all))
}

// approved describes the holds that the change releases if no object becomes due by this, for example while everything is suspended.
func (a *account) approved() []string {
	if a.Before == nil || a.After == nil || a.Before.GetGeneration() != a.After.GetGeneration() {
		return nil
	}
	ids := gc.NewlyApproved(a.After, a.Before)
	var released []string
	for _, h := range gc.HoldsOf(a.Before) {
		if slices.Contains(ids, h.ID) {
			released = append(released, fmt.Sprintf("%s in %s", number(int(h.Objects), "object"), cmp.Or(h.Namespace, "all namespaces")))
		}
	}
	if len(released) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("this approval %s delete %s once nothing else holds them", a.will(), few(released))}
}

// shown describes objects that a Preview policy would delete if it were enforced.
func (a *account) shown(all []*view.Due) []string {
	if len(all) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s %s and would be deleted now with mode: %s%s", a.count(all), past(all), gc.ModeEnforce, most(all))}
}

// others describes objects that become due by other policies.
func (a *account) others(all []*view.Due) []string {
	if len(all) == 0 {
		return nil
	}
	line := fmt.Sprintf("%s, %s %s due%s", a.how(), policies(all), a.count(all), most(all))
	held, who := only(all, func(due *view.Due) bool { return due.Hold != "" }), "they"
	if len(held) == 0 {
		return []string{line}
	}
	if len(held) < len(all) {
		who = fmt.Sprintf("%d of these", len(held))
	}
	line += fmt.Sprintf("; %s %swait for approval, %s", who, a.would(), because(held))
	if created, _ := a.ends(); !a.DryRun || !created { // Otherwise the hold will have another ID.
		line += ". " + commands(held)
	}
	return []string{line}
}

// how says which of the states before and after the change makes objects due.
func (a *account) how() string {
	noun := "policy"
	if a.lifecycle != nil {
		noun = "lifecycle"
	}
	switch created, deleted := a.ends(); {
	case created:
		return "with this " + noun
	case deleted:
		return "without this " + noun
	}
	return "with this change"
}

// ends reports whether the change creates or deletes the policy or the lifecycle.
func (a *account) ends() (created, deleted bool) {
	if l := a.lifecycle; l != nil {
		return l.Before == nil, l.After == nil
	}
	return a.Before == nil, a.After == nil
}

// ofOtherResources says that a change of a lifecycle makes objects of other resources due, without details: its author may not be allowed
// to see them.
func (a *account) ofOtherResources() []string {
	if !a.controlled {
		return nil
	}
	return []string{fmt.Sprintf("%s, objects that are controlled by objects of %s become due", a.how(), a.lifecycle.Resource())}
}

func only(all []*view.Due, keep func(*view.Due) bool) []*view.Due {
	return slices.DeleteFunc(slices.Clone(all), func(due *view.Due) bool { return !keep(due) })
}

func (a *account) would() string {
	if a.DryRun {
		return "would "
	}
	return ""
}

func (a *account) will() string {
	if a.DryRun {
		return "would"
	}
	return "will"
}

// count returns the number of objects by kind, and their namespace or the number of namespaces.
func (a *account) count(all []*view.Due) string {
	resources, namespaces := map[string]int{}, map[string]int{}
	for _, due := range all {
		resources[due.Resource]++
		namespaces[due.Namespace]++
	}
	var parts []string
	for _, resource := range slices.Sorted(maps.Keys(resources)) {
		parts = append(parts, number(resources[resource], a.kindOf(resource)))
	}
	line := strings.Join(parts, " and ")
	if a.incomplete {
		line = "at least " + line
	}
	if len(namespaces) == 1 {
		return line + " in " + all[0].Namespace
	}
	return fmt.Sprintf("%s in %s", line, number(len(namespaces), "namespace"))
}

// kindOf returns the kind of a resource.
func (a *account) kindOf(resource string) string {
	k, err := a.kinds.For(resource)
	if err != nil {
		return resource
	}
	return k.GroupVersionKind.Kind
}

func number(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func are(all []*view.Due) string {
	if len(all) == 1 {
		return "is"
	}
	return "are"
}

// past returns why objects are due.
func past(all []*view.Due) string {
	reasons := map[policy.Reason]bool{}
	for _, due := range all {
		reasons[due.Reason] = true
	}
	var parts []string
	for _, r := range []struct {
		policy.Reason
		says string
	}{
		{policy.ReasonExpired, "past this TTL"},
		{policy.ReasonOverCapacity, "over this capacity"},
		{policy.ReasonOverCeiling, "over this ceiling"},
	} {
		if reasons[r.Reason] {
			parts = append(parts, r.says)
		}
	}
	return are(all) + " " + strings.Join(parts, " or ")
}

// most names the namespaces with the most objects, if there are several.
func most(all []*view.Due) string {
	names, in := byNumber(all)
	if len(names) < 2 {
		return ""
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, in[name])
	}
	return ": " + few(names)
}

// byNumber returns the namespaces of objects, the largest first, and the number of objects in each.
func byNumber(all []*view.Due) ([]string, map[string]int) {
	in := map[string]int{}
	for _, due := range all {
		in[due.Namespace]++
	}
	return slices.SortedFunc(maps.Keys(in), func(a, b string) int { return cmp.Or(cmp.Compare(in[b], in[a]), cmp.Compare(a, b)) }), in
}

// few joins all names, or the first few.
func few(names []string) string {
	if len(names) > fewMost {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:fewMost], ", "), len(names)-fewMost)
	}
	return strings.Join(names, ", ")
}

// policies names the policies by which objects are due, the policies with the most objects first.
func policies(all []*view.Due) string {
	by := map[types.NamespacedName]int{}
	for _, due := range all {
		by[due.Policy]++
	}
	names := slices.SortedFunc(maps.Keys(by), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a.String(), b.String()))
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, title(name))
	}
	if len(parts) == 1 {
		return parts[0] + " makes"
	}
	return few(parts) + " make"
}

func title(name types.NamespacedName) string {
	if name.Namespace == "" {
		return fmt.Sprintf("cluster policy %q", name.Name)
	}
	return fmt.Sprintf("policy %q", name.String())
}

// approve returns the commands that approve the holds, one for each policy, in the order of most.
func approve(all []*view.Due) string {
	names, _ := byNumber(all)
	turn := map[string]int{}
	for i, name := range names {
		turn[name] = i
	}
	type hold struct {
		of        types.NamespacedName
		id        string
		namespace string
	}
	holds := map[hold]bool{}
	for _, due := range all {
		holds[hold{due.HoldOwner, due.Hold, due.Namespace}] = true
	}
	var policies []types.NamespacedName
	ids := map[types.NamespacedName][]string{}
	for _, h := range slices.SortedFunc(maps.Keys(holds), func(a, b hold) int {
		return cmp.Or(cmp.Compare(turn[a.namespace], turn[b.namespace]), cmp.Compare(a.of.String(), b.of.String()), cmp.Compare(a.id, b.id))
	}) {
		if !slices.Contains(policies, h.of) {
			policies = append(policies, h.of)
		}
		if !slices.Contains(ids[h.of], h.id) { // A hold of all namespaces together occurs in each namespace.
			ids[h.of] = append(ids[h.of], h.id)
		}
	}
	var commands []string
	for _, p := range policies {
		if len(ids[p]) > fewMost {
			commands = append(commands, fmt.Sprintf("see the %d holds in status.holds of %s", len(ids[p]), title(p)))
			continue
		}
		commands = append(commands, gc.ApproveCommand(p.Namespace, p.Name, strings.Join(ids[p], ",")))
	}
	return strings.Join(commands, "; ")
}
