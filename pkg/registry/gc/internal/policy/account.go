// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/permission"
)

// accountWarnings returns a line for each right that the ServiceAccount of a policy lacks, if the user may use the account. Without an
// account, or for a cluster policy, whose accounts have the same name in many namespaces, there are none.
func (a author) accountWarnings(ctx context.Context, p Policy, reached, deadlines sets.Set[string]) []string {
	account, namespace := a.account(p), p.GetNamespace()
	if account == "" || namespace == "" {
		return nil
	}
	who, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return nil
	}
	switch missing, err := a.Missing(ctx, who, []permission.Permission{permission.ToUse(account, namespace)}); {
	case err != nil:
		return nil
	case len(missing) > 0: // Only a review comes as far as this.
		return []string{fmt.Sprintf("spec.serviceAccountName: to write the policy, you need the verb %q on ServiceAccount %q: %s",
			permission.VerbUse, account, missing[0])}
	}
	var out []string
	warn := func(verb string, resources sets.Set[string]) {
		for _, resource := range sets.List(resources.Difference(sets.New(gc.ResourceAll))) {
			right := permission.Permission{Verb: verb, Resource: resource, Namespace: namespace}
			missing, err := a.Missing(ctx, accountUser(namespace, account), []permission.Permission{right})
			if err == nil && len(missing) > 0 {
				out = append(out, fmt.Sprintf(
					"spec.serviceAccountName: ServiceAccount %q may not %s %s, so they will be held as Unauthorized; %s --as=%s; to grant it: %s",
					account, verb, resource, missing[0],
					serviceaccount.MakeUsername(namespace, account), gc.GrantAccountAdvice(resource, namespace, account)))
			}
		}
	}
	warn("delete", reached)
	warn("patch", reached.Intersection(deadlines))
	return out
}

// accountUser returns who a ServiceAccount is to the authorizer.
func accountUser(namespace, account string) user.Info {
	return &user.DefaultInfo{
		Name:   serviceaccount.MakeUsername(namespace, account),
		Groups: append(serviceaccount.MakeGroupNames(namespace), user.AllAuthenticated),
	}
}
