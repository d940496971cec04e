// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

var flowControlResources = []string{"flowschemas", "prioritylevelconfigurations"}

// neededRights returns the permissions without which the server would never become ready, and would not log why.
func (o *Options) neededRights() []authorizationv1.ResourceAttributes {
	rights := watching("", "namespaces")
	rights = append(rights, watching(admissionGroup.Group, "mutatingwebhookconfigurations", "validatingwebhookconfigurations")...)
	for plugin, resources := range policyPlugins {
		if !slices.Contains(o.Recommended.Admission.DisablePlugins, plugin) {
			rights = append(rights, watching(admissionGroup.Group, resources...)...)
		}
	}
	if o.Recommended.Features.EnablePriorityAndFairness {
		rights = append(rights, watching(flowControlGroup.Group, flowControlResources...)...)
	}
	return append(rights, o.registrationRights()...)
}

func watching(group string, resources ...string) []authorizationv1.ResourceAttributes {
	var rights []authorizationv1.ResourceAttributes
	for _, resource := range resources {
		for _, verb := range []string{"list", "watch"} {
			rights = append(rights, authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource})
		}
	}
	return rights
}

// checkRights checks all permissions concurrently. Its error names the missing ones as lines for a shell.
func checkRights(ctx context.Context, client kubernetes.Interface, rights []authorizationv1.ResourceAttributes) error {
	missing := make([]string, len(rights))
	group, ctx := errgroup.WithContext(ctx)
	for i := range rights {
		group.Go(func() error {
			review := &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &rights[i]},
			}
			answer, err := patiently(ctx, func() (*authorizationv1.SelfSubjectAccessReview, error) {
				return client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			})
			if err != nil {
				return fmt.Errorf("cannot ask the cluster what Winnow may do: %w", err)
			}
			if !answer.Status.Allowed {
				missing[i] = canI(&rights[i])
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	missing = slices.DeleteFunc(missing, func(s string) bool { return s == "" })
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("rights are missing in the cluster; grant Winnow's user what answers no here:\n  %s", strings.Join(missing, "\n  "))
}

// canI returns the command that asks for the permission.
func canI(r *authorizationv1.ResourceAttributes) string {
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Name != "" {
		resource += "/" + r.Name
	}
	if r.Namespace != "" {
		resource += " --namespace " + r.Namespace
	}
	return fmt.Sprintf("kubectl auth can-i %s %s", r.Verb, resource)
}
