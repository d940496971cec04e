// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// clusterServing is a cluster that serves these resources, and denies what a line of "verb resource.group" names.
func clusterServing(denied []string, served map[string][]string) *fake.Clientset {
	client := fake.NewClientset()
	for gv, resources := range served {
		list := &metav1.APIResourceList{GroupVersion: gv}
		for _, r := range resources {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: r})
		}
		discovery := client.Discovery().(*discoveryfake.FakeDiscovery)
		discovery.Resources = append(discovery.Resources, list)
	}
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		line := strings.TrimPrefix(canI(review.Spec.ResourceAttributes), "kubectl auth can-i ")
		review.Status.Allowed = !slices.Contains(denied, line)
		return true, review, nil
	})
	return client
}

var (
	policyKinds = []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}
	newKinds    = []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}
)

func TestAdaptToCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		served   map[string][]string
		disabled []string
		fairness bool
		log      string // what the one line says is missing
	}{
		"a new one": {
			served:   map[string][]string{"admissionregistration.k8s.io/v1": slices.Concat(policyKinds, newKinds), "flowcontrol.apiserver.k8s.io/v1": flowControlResources},
			fairness: true,
		},
		"one without mutating policies": {
			served:   map[string][]string{"admissionregistration.k8s.io/v1": policyKinds, "flowcontrol.apiserver.k8s.io/v1": flowControlResources},
			disabled: []string{"MutatingAdmissionPolicy"}, fairness: true,
			log: `["MutatingAdmissionPolicy in admissionregistration.k8s.io/v1"]`,
		},
		"one without bindings of them": {
			served:   map[string][]string{"admissionregistration.k8s.io/v1": append(newKinds[:1:1], policyKinds...), "flowcontrol.apiserver.k8s.io/v1": flowControlResources},
			disabled: []string{"MutatingAdmissionPolicy"}, fairness: true,
			log: `["MutatingAdmissionPolicy in admissionregistration.k8s.io/v1"]`,
		},
		"an old one": {
			served:   map[string][]string{"admissionregistration.k8s.io/v1": {"validatingwebhookconfigurations"}},
			disabled: []string{"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"},
			log: `["MutatingAdmissionPolicy in admissionregistration.k8s.io/v1",` +
				`"Priority and Fairness in flowcontrol.apiserver.k8s.io/v1",` +
				`"ValidatingAdmissionPolicy in admissionregistration.k8s.io/v1"]`,
		},
	} {
		o := NewOptions()
		var log strings.Builder
		ctx := klog.NewContext(context.Background(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
		if err := o.adaptTo(ctx, clusterServing(nil, tc.served)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if lines := strings.Count(log.String(), "\n"); lines > 1 || (lines == 1) != (tc.log != "") || !strings.Contains(log.String(), tc.log) {
			t.Errorf("%s: logged %q, want one line with %q", name, &log, tc.log)
		}
		slices.Sort(o.Recommended.Admission.DisablePlugins)
		if got := o.Recommended.Admission.DisablePlugins; !slices.Equal(got, tc.disabled) {
			t.Errorf("%s: disabled %v, want %v", name, got, tc.disabled)
		}
		if got := o.Recommended.Features.EnablePriorityAndFairness; got != tc.fairness {
			t.Errorf("%s: Priority and Fairness %v, want %v", name, got, tc.fairness)
		}
		if err := o.Validate(); err != nil {
			t.Errorf("%s: the options are wrong now: %v", name, err)
		}
	}
}

// TestMissingRights names all of them at once, and asks for none that only a disabled plugin needs.
func TestMissingRights(t *testing.T) {
	denied := []string{
		"watch namespaces", "list flowschemas.flowcontrol.apiserver.k8s.io",
		"list mutatingadmissionpolicies.admissionregistration.k8s.io",
	}
	served := map[string][]string{"admissionregistration.k8s.io/v1": policyKinds, "flowcontrol.apiserver.k8s.io/v1": flowControlResources}
	err := NewOptions().adaptTo(context.Background(), clusterServing(denied, served))
	const want = "\n  kubectl auth can-i list flowschemas.flowcontrol.apiserver.k8s.io\n  kubectl auth can-i watch namespaces"
	if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "mutatingadmission") {
		t.Errorf("got %v, want an error that ends with%s", err, want)
	}
}

// TestOutageAtStart: a replica that starts while the API server fails waits for it, as long as it may take to start.
func TestOutageAtStart(t *testing.T) {
	busy, down := apierrors.NewTooManyRequestsError("later"), apierrors.NewServiceUnavailable("down")
	cut, forbidden := errors.New("connection reset"), apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	for name, tc := range map[string]struct {
		answers []error // of the first requests; the others succeed
		want    error
	}{
		"none":                   {nil, nil},
		"a short one":            {[]error{busy, down, cut}, nil},
		"a refusal":              {[]error{forbidden}, forbidden},
		"one that does not end":  {slices.Repeat([]error{down}, 1000), down},
		"a refusal after an end": {[]error{down, forbidden}, forbidden},
	} {
		for _, resource := range []string{"resource", "selfsubjectaccessreviews"} { // Discovery is the former.
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), setupTimeout)
				defer cancel()
				client, answers := clusterServing(nil, nil), tc.answers
				var lock sync.Mutex
				client.PrependReactor("*", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					lock.Lock()
					defer lock.Unlock()
					if len(answers) == 0 {
						return false, nil, nil
					}
					next := answers[0]
					answers = answers[1:]
					return true, nil, next
				})
				if err := NewOptions().adaptTo(ctx, client); !errors.Is(err, tc.want) {
					t.Errorf("%s of %s: got %v, want %v", name, resource, err, tc.want)
				}
			})
		}
	}
}

func TestKubeconfig(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for path, want := range map[string]string{
		"":         "--kubeconfig is missing, and this is no Pod",
		"/nowhere": "cannot read --kubeconfig=/nowhere",
	} {
		o := NewOptions()
		o.Kubeconfig = path
		if _, err := o.clusterConfig(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--kubeconfig=%q: got %v, want %q", path, err, want)
		}
		if got := o.Recommended.Authentication.RemoteKubeConfigFile; got != path {
			t.Errorf("--authentication-kubeconfig is %q, want the path of --kubeconfig, %q", got, path)
		}
	}
}
