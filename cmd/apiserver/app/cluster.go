// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	mutatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/logonce"
	"github.com/winnow-dev/winnow/pkg/version"
)

// clusterConfig loads --kubeconfig. Delegated authentication and authorization use it too, unless they have their own flags.
func (o *Options) clusterConfig() (*rest.Config, error) {
	for _, own := range []*string{&o.Recommended.Authentication.RemoteKubeConfigFile, &o.Recommended.Authorization.RemoteKubeConfigFile} {
		if *own == "" {
			*own = o.Kubeconfig
		}
	}
	return loadConfig("--kubeconfig", o.Kubeconfig)
}

// loadConfig returns a client configuration without a client-side rate limit, because Priority and Fairness of the cluster limits requests.
func loadConfig(flag, path string) (*rest.Config, error) {
	load := func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", path) }
	if path == "" {
		load = rest.InClusterConfig
	}
	config, err := load()
	switch {
	case errors.Is(err, rest.ErrNotInCluster):
		return nil, fmt.Errorf("%s is missing, and this is no Pod whose ServiceAccount could be used instead", flag)
	case err != nil && path == "":
		return nil, fmt.Errorf("%s is missing, and the ServiceAccount of this Pod cannot be used: %w", flag, err)
	case err != nil:
		return nil, fmt.Errorf("cannot read %s=%s: %w", flag, path, err)
	}
	config.UserAgent = version.UserAgent()
	config.QPS = -1
	return config, nil
}

var (
	admissionGroup   = schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	flowControlGroup = schema.GroupVersion{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}
)

// policyPlugins are the admission plugins that watch resources which older clusters do not serve, with these resources. Without the
// resources, the server would never become ready.
var policyPlugins = map[string][]string{
	mutatingadmissionpolicy.PluginName:   {"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"},
	validatingadmissionpolicy.PluginName: {"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
}

// adaptTo disables what needs resources that the cluster does not serve, and says so in one line of the log. It returns an error if
// permissions for the rest are missing.
func (o *Options) adaptTo(ctx context.Context, client kubernetes.Interface) error {
	admission, err := served(ctx, client.Discovery(), admissionGroup)
	if err != nil {
		return err
	}
	var without []string
	for plugin, resources := range policyPlugins {
		if !hasAll(admission, resources) {
			without = append(without, plugin+" in "+admissionGroup.String())
			o.Recommended.Admission.DisablePlugins = append(o.Recommended.Admission.DisablePlugins, plugin)
		}
	}
	flowControl, err := served(ctx, client.Discovery(), flowControlGroup)
	if err != nil {
		return err
	}
	if !hasAll(flowControl, flowControlResources) {
		without = append(without, "Priority and Fairness in "+flowControlGroup.String())
		o.Recommended.Features.EnablePriorityAndFairness = false
	}
	if len(without) > 0 {
		slices.Sort(without)
		klog.FromContext(ctx).Info("The cluster does not serve everything that Winnow can use; Winnow works without it", "missing", without)
	}
	return checkRights(ctx, client, o.neededRights())
}

// served returns the resources of a group and version; none if the cluster does not serve it.
func served(ctx context.Context, client discovery.DiscoveryInterface, gv schema.GroupVersion) (map[string]bool, error) {
	list, err := patiently(ctx, func() (*metav1.APIResourceList, error) { return client.ServerResourcesForGroupVersion(gv.String()) })
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot ask the cluster which resources of %s it serves: %w", gv, err)
	}
	names := make(map[string]bool, len(list.APIResources))
	for _, r := range list.APIResources {
		names[r.Name] = true
	}
	return names, nil
}

// patiently repeats a request while the API server is unavailable, or fails, until ctx ends. Otherwise a replica that starts during a short
// outage would end, and Kubernetes would wait for up to five minutes before it starts the replica again.
func patiently[T any](ctx context.Context, request func() (T, error)) (out T, err error) {
	var errs logonce.Errors
	ended := wait.PollUntilContextCancel(ctx, storagePoll, true, func(ctx context.Context) (bool, error) {
		out, err = request()
		if !mayPass(err) {
			return true, nil
		}
		errs.Log(ctx, err, "The API server does not answer as it should, trying again")
		return false, nil
	})
	if err == nil {
		err = ended
	}
	return out, err
}

// mayPass reports whether the same request may succeed later.
func mayPass(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	return err != nil
}

func hasAll(served map[string]bool, names []string) bool {
	for _, name := range names {
		if !served[name] {
			return false
		}
	}
	return true
}
