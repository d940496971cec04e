// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Rule has the permissions that Winnow needs for resources of a group.
func Rule(group string, plurals ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: plurals, Verbs: []string{"get", "list", "watch", "delete"}}
}

// Grant gives a service account the permissions of Rule. Unlike the label of ClusterRoles that users
// set, it needs no controller manager.
func Grant(ctx context.Context, client kubernetes.Interface, namespace, account, group string, plurals ...string) error {
	name := "winnow:" + group
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{Rule(group, plurals...)}}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}
	_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	return err
}
