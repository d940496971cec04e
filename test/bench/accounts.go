// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// accountsManifest lets Winnow act as ServiceAccounts.
const accountsManifest = "artifacts/optional/accounts.yaml"

// accountsRacer is Winnow with policies that name an account.
func accountsRacer() racer {
	r := winnowRacer()
	r.name, r.account = "winnow, as accounts", gc.RoleCleaner
	return r
}

// measureAccounts compares deletions as the ServiceAccounts of policies with deletions as Winnow itself: as one account, and as one in
// each of many namespaces.
func measureAccounts(ctx context.Context, o options, r *report) (err error) {
	t, err := newTrack(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	if _, _, err := t.cluster.Kubectl(ctx, "apply", "-f", accountsManifest); err != nil {
		return err
	}
	for _, n := range o.throughput {
		for _, namespaces := range []int{1, min(manyNamespaces, n)} {
			b := burst{jobs: n, namespaces: namespaces}
			if err := t.race(ctx, r, b, o.rounds, accountsRacer(), winnowRacer()); err != nil {
				return err
			}
		}
	}
	return r.writeCSV("accounts", t.lines)
}

// newAccount creates a ServiceAccount that may delete what is finished in its namespace, and a policy that names it.
func (w *world) newAccount(ctx context.Context, ns, account string, ttl v1alpha1.TTL) error {
	_, err := w.kube.CoreV1().ServiceAccounts(ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}},
		metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = w.kube.RbacV1().RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: gc.RoleCleaner},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: account}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return w.newPolicy(ctx, ns, v1alpha1.CleanupPolicySpec{TTLAfterFinished: &ttl, ServiceAccountName: account})
}
