// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/permission"
)

// author checks that users neither write policies that delete what these users may not delete themselves, nor delete policies that keep it.
// Otherwise everybody who may write a policy could use the permissions of Winnow.
type author struct {
	permission.Checker
	kind string
	// reach and status are as in Kind; old is nil for a new policy. freed returns the resources of which objects may be deleted because the
	// policy is gone. deadlines returns the resources that either policy gives deadlines.
	reach     func(p, old Policy) (sets.Set[string], error)
	freed     func(Policy) (sets.Set[string], error)
	deadlines func(p, old Policy) sets.Set[string]
	status    func(p Policy) *gc.CleanupPolicyStatus
	// named returns the resources that the policy itself can delete.
	named func(Policy) sets.Set[string]
	// account returns the ServiceAccount that the policy names; empty if it names none, or cannot be read.
	account func(Policy) string
}

// check requires the permissions to list and delete everything that the policy reaches, if the spec changes, to patch what it gives a
// deadline, to use the account that it names, and to approve the holds that it releases. A Preview policy needs them too, because it
// shows how many objects there are.
func (a author) check(ctx context.Context, object, before runtime.Object) error {
	p := object.(Policy)
	old, _ := before.(Policy)
	needed := sets.New[permission.Permission]()
	if old == nil || p.GetGeneration() != old.GetGeneration() {
		reached, err := a.reach(p, old)
		if err != nil {
			return apierrors.NewServiceUnavailable(err.Error())
		}
		account := a.account(p)
		if account != "" && (old == nil || a.account(old) != account || len(reached) > 0) {
			needed.Insert(permission.ToUse(account, p.GetNamespace()))
		}
		if old != nil && !a.named(p).Has(gc.ResourceAll) {
			account = a.account(old) // If all resources are reached, the old policy named them.
		}
		reached, use := withoutAll(reached, p.GetNamespace(), account)
		needed = needed.Union(use).Union(permission.ToDelete(reached, p.GetNamespace()))
		for resource := range reached.Intersection(a.deadlines(p, old)) {
			needed.Insert(permission.Permission{Verb: "patch", Resource: resource, Namespace: p.GetNamespace()})
		}
	}
	return a.demand(ctx, p, needed.Union(a.rightsToApprove(p, old)))
}

// checkDelete requires the permissions to list and delete everything that the policy keeps, as a change to an empty spec does: what it
// keeps, suspends or guards may be deleted once it is gone.
func (a author) checkDelete(ctx context.Context, object runtime.Object) error {
	p, ok := object.(Policy)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("cannot tell what the deletion of %T makes due", object))
	}
	freed, err := a.freed(p)
	if err != nil {
		return apierrors.NewServiceUnavailable(err.Error())
	}
	freed, needed := withoutAll(freed, p.GetNamespace(), a.account(p))
	needed = needed.Union(permission.ToDelete(freed, p.GetNamespace()))
	return a.Require(ctx, permission.Delete, p.GetName(), needed, func(who string, _ []string) string {
		return fmt.Sprintf("without it, objects may be deleted that %q cannot list and delete", who)
	})
}

// withoutAll returns the resources without "*" if the policy that names it has an account, and the permission to use that account instead.
// Which resources "*" names changes with what is installed, so nobody can ask for each. The API server asks whether the account may delete
// them.
func withoutAll(resources sets.Set[string], namespace, account string) (rest sets.Set[string], use sets.Set[permission.Permission]) {
	if account == "" || namespace == "" || !resources.Has(gc.ResourceAll) {
		return resources, nil
	}
	return resources.Difference(sets.New(gc.ResourceAll)), sets.New(permission.ToUse(account, namespace))
}

// demand refuses a write whose user lacks any of these permissions.
func (a author) demand(ctx context.Context, p Policy, needed sets.Set[permission.Permission]) error {
	return a.Require(ctx, permission.Write, p.GetName(), needed, func(who string, missing []string) string {
		only := func(verb string) bool {
			return !slices.ContainsFunc(missing, func(line string) bool { return !strings.HasPrefix(line, "kubectl auth can-i "+verb+" ") })
		}
		switch {
		case only(permission.VerbUse):
			return fmt.Sprintf("a policy that acts as a ServiceAccount takes the verb %q on that account", permission.VerbUse)
		case only(verbApprove):
			return fmt.Sprintf("approving a hold needs the verb %q", verbApprove)
		case only("patch"):
			return fmt.Sprintf("it would set the activeDeadlineSeconds of objects that %q cannot patch", who)
		case onlyGuards(p):
			return fmt.Sprintf("it can change which objects are deleted, and %q cannot list and delete all of them", who)
		}
		return fmt.Sprintf("it would delete objects that %q cannot list and delete", who)
	})
}

// onlyGuards reports whether a policy has guardrails, and deletes nothing itself.
func onlyGuards(p Policy) bool {
	c, ok := p.(*gc.ClusterCleanupPolicy)
	return ok && c.Spec.Guardrails != nil && len(c.Spec.Guardrails.Ceilings) == 0 && len(Reach(c.Spec.Defaults())) == 0
}
