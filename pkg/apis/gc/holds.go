// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ApprovedHolds returns the IDs in a value of AnnotationApprovedHold, which are separated by commas.
func ApprovedHolds(annotation string) []string {
	return strings.FieldsFunc(annotation, func(c rune) bool { return c == ',' || c == ' ' })
}

// NewlyApproved returns the IDs of holds that p approves and old did not; old is nil for a new policy.
func NewlyApproved(p, old metav1.Object) []string {
	ids := ApprovedHolds(p.GetAnnotations()[AnnotationApprovedHold])
	if old == nil {
		return ids
	}
	before := ApprovedHolds(old.GetAnnotations()[AnnotationApprovedHold])
	return slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(before, id) })
}

// +k8s:deepcopy-gen=false

// Approval is that a user approved holds of a policy. It is never served.
type Approval struct {
	Policy metav1.Object
	User   string
	// Holds have at least their IDs.
	Holds []PolicyHold
}

// String says who approved what.
func (a Approval) String() string {
	var what []string
	for i := range a.Holds {
		h := &a.Holds[i]
		text := h.ID
		if h.Objects > 0 {
			text += fmt.Sprintf(" (%d in %s)", h.Objects, cmp.Or(h.Namespace, "all namespaces"))
		}
		what = append(what, text)
	}
	return fmt.Sprintf("%q approved %s", a.User, strings.Join(what, ", "))
}

// ApproveCommand returns the command that approves a hold of a policy. Without a namespace, it is a cluster policy.
func ApproveCommand(namespace, name, id string) string {
	target := PolicyResource(namespace) + " " + name
	if namespace != "" {
		target += " -n " + namespace
	}
	return fmt.Sprintf("kubectl annotate --overwrite %s %s=%s", target, AnnotationApprovedHold, id)
}

// PolicyTitle names a policy as an argument of kubectl. Without a namespace, it is a cluster policy.
func PolicyTitle(namespace, name string) string { return PolicyResource(namespace) + "/" + name }

// PolicyName names a policy of a kind by its short name, as kubectl takes it.
func PolicyName(kind, name string) string {
	if kind == KindClusterCleanupPolicy {
		return "ccup/" + name
	}
	return "cup/" + name
}

// PolicyResource returns the resource of a policy. Without a namespace, it is a cluster policy.
func PolicyResource(namespace string) string {
	if namespace == "" {
		return "clustercleanuppolicies." + GroupName
	}
	return "cleanuppolicies." + GroupName
}

// ListCommand returns the command that lists the objects of a namespace, or of all namespaces. The objects that wait are among them.
func ListCommand(resources []string, namespace string) string {
	if len(resources) == 0 {
		resources = []string{ResourceJobs, ResourcePods}
	}
	where := "--all-namespaces"
	if namespace != "" {
		where = "-n " + namespace
	}
	return fmt.Sprintf("kubectl get %s %s", strings.Join(resources, ","), where)
}

// GrantCommand returns the commands that give Winnow the permissions to observe and delete a resource, if
// artifacts/optional/more-resources.yaml is installed.
func GrantCommand(resource string) string {
	role := "winnow:" + resource
	return fmt.Sprintf("kubectl create clusterrole %s --verb=get,list,watch,delete --resource=%s && kubectl label clusterrole %s %s=true",
		role, resource, role, LabelAggregate)
}

// GrantAdvice returns GrantCommand with what it needs, and its other form for those who give Winnow no right to delete.
func GrantAdvice(resource string) string {
	return GrantCommand(resource) + " (it takes effect once artifacts/optional/more-resources.yaml is applied; if policies delete as " +
		"ServiceAccounts, use " + strings.Join(impersonateOn, ",") + " instead of delete)"
}

// ReferrersAdvice returns GrantAdvice for everything that may refer to ConfigMaps and Secrets.
func ReferrersAdvice() string {
	return "kubectl apply -f artifacts/optional/referrers.yaml, for everything that may refer to ConfigMaps and Secrets (it takes effect " +
		"once artifacts/optional/more-resources.yaml is applied)"
}

// HoldsOf returns the holds in the status of a CleanupPolicy or ClusterCleanupPolicy; nil for anything else.
func HoldsOf(policy any) []PolicyHold {
	switch p := policy.(type) {
	case *CleanupPolicy:
		return p.Status.Holds
	case *ClusterCleanupPolicy:
		return p.Status.Holds
	}
	return nil
}

// ApproveCommand returns the command that approves a hold in the status of this policy, which may be a hold of another policy.
func (h *PolicyHold) ApproveCommand(namespace, name string) string {
	owner := h.Owner(types.NamespacedName{Namespace: namespace, Name: name})
	return ApproveCommand(owner.Namespace, owner.Name, h.ID)
}

// Owner returns the policy that must approve a hold in the status of this policy.
func (h *PolicyHold) Owner(of types.NamespacedName) types.NamespacedName {
	if h.Policy == "" {
		return of
	}
	namespace, name, namespaced := strings.Cut(h.Policy, "/")
	if !namespaced {
		return types.NamespacedName{Name: h.Policy}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// Protects reports whether the labels of a namespace protect everything in it.
func Protects(namespace map[string]string) bool {
	value, ok := namespace[LabelProtected]
	return ok && value != "false"
}
