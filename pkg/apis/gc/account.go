// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"fmt"
	"slices"
	"strings"
)

// RoleCleaner is the ClusterRole to bind to the ServiceAccounts of policies, for the resources that policies name by default.
const RoleCleaner = "winnow-cleaner"

// GrantAccountAdvice returns the commands that let a ServiceAccount delete the objects of a resource in its namespace.
func GrantAccountAdvice(resource, namespace, account string) string {
	bind := fmt.Sprintf("--serviceaccount=%s:%s -n %s", namespace, account, namespace)
	if slices.Contains(DefaultResources(), resource) {
		return fmt.Sprintf("kubectl create rolebinding %s-%s --clusterrole=%s %s", RoleCleaner, account, RoleCleaner, bind)
	}
	name, _, _ := strings.Cut(resource, ".")
	name = RoleCleaner + "-" + name
	return fmt.Sprintf("kubectl create role %s --verb=get,delete --resource=%s -n %s && kubectl create rolebinding %s-%s --role=%s %s",
		name, resource, namespace, name, account, name, bind)
}

// impersonateOn are the verbs of constrained impersonation (KEP-5284) that Winnow needs on a resource to delete as a ServiceAccount.
var impersonateOn = []string{"impersonate-on:serviceaccount:get", "impersonate-on:serviceaccount:delete"}

// These files let Winnow act as ServiceAccounts.
const accountsFile, olderAccountsFile = "artifacts/optional/accounts.yaml", "artifacts/optional/accounts-before-1.36.yaml"

// GrantNameAdvice says how to let Winnow act as ServiceAccounts of a name. kubectl create has no form for it.
func GrantNameAdvice(account string) string { return grantName(account, accountsFile) }

// GrantOlderAdvice is GrantNameAdvice for API servers without constrained impersonation.
func GrantOlderAdvice(account string) string { return grantName(account, olderAccountsFile) }

func grantName(account, file string) string {
	if account == RoleCleaner {
		return "kubectl apply -f " + file
	}
	return fmt.Sprintf("add %s to resourceNames in %s and apply it, or to accounts.names of the chart", account, file)
}

// GrantOnAdvice returns the commands that let Winnow act as ServiceAccounts on the objects of a resource.
func GrantOnAdvice(resource string) string {
	if slices.Contains(DefaultResources(), resource) {
		return "kubectl apply -f " + accountsFile
	}
	role := "winnow:accounts:" + resource
	return fmt.Sprintf("kubectl create clusterrole %s --verb=%s --resource=%s && kubectl label clusterrole %s %s=true (it takes effect once "+
		"artifacts/optional/more-resources.yaml is applied)", role, strings.Join(impersonateOn, ","), resource, role, LabelAggregate)
}
