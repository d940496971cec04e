// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/registration"
)

// guardOptions are the flags of the guard.
type guardOptions struct {
	kubeconfig    string
	namespace     string
	withdrawAfter time.Duration
	logs          *logsapi.LoggingConfiguration
}

// newGuardCommand returns the command that withdraws the APIService when no replica answers.
func newGuardCommand() *cobra.Command {
	o := &guardOptions{namespace: podNamespace(), withdrawAfter: 10 * time.Minute, logs: logs.NewOptions()}
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Withdraw the APIService when no replica answers, so that namespaces can be deleted",
		Long: `While no replica of Winnow answers kube-apiserver, no namespace of the cluster can be deleted. The guard asks kube-apiserver every
ten seconds. Once there was no answer for --withdraw-after, it deletes the APIService v1alpha1.gc.winnow.dev. No policy is lost, and
a replica of Winnow creates the APIService again as soon as it is ready.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(o.logs, nil); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.kubeconfig, "kubeconfig", "",
		"Path to the kubeconfig of the cluster. If unset, the guard uses the ServiceAccount of its Pod.")
	cmd.Flags().StringVar(&o.namespace, "namespace", o.namespace,
		"Namespace that Winnow is installed in, for an Event. The default is the Pod's namespace.")
	cmd.Flags().DurationVar(&o.withdrawAfter, "withdraw-after", o.withdrawAfter,
		"How long kube-apiserver gets no answer from any replica before the APIService is withdrawn.")
	logsapi.AddFlags(o.logs, cmd.Flags())
	return cmd
}

func (o *guardOptions) run(ctx context.Context) error {
	if o.withdrawAfter <= 0 {
		return fmt.Errorf("--withdraw-after is %s, it must be longer than 0s; to never withdraw the APIService, run no guard", o.withdrawAfter)
	}
	config, err := loadConfig("--kubeconfig", o.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	services, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	guard := registration.Guard{
		APIServices: services.ApiregistrationV1().APIServices(),
		Ask:         func(ctx context.Context) error { return registration.Ask(ctx, client.Discovery()) },
		After:       o.withdrawAfter,
		Withdrawn: func(ctx context.Context, service *apiregistrationv1.APIService, why string) {
			if err := recordWithdrawal(ctx, client, o.namespace, service, why); err != nil {
				klog.FromContext(ctx).Error(err, "Cannot record an Event")
			}
		},
		Leaving: isBeingDeleted(client, o.namespace),
		Clock:   clock.RealClock{},
	}
	klog.FromContext(ctx).Info("Guarding the APIService", "name", registration.Name, "withdrawn after", o.withdrawAfter)
	guard.Run(ctx)
	return nil
}

// recordWithdrawal records an Event of Winnow's Deployment, which is where people look.
func recordWithdrawal(
	ctx context.Context, client kubernetes.Interface, namespace string, s *apiregistrationv1.APIService, why string,
) error {
	now := clock.RealClock{}.Now()
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{GenerateName: ownName + "-guard-", Namespace: namespace},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: "gc.winnow.dev/guard", ReportingInstance: ownName + "-guard",
		Type: corev1.EventTypeWarning, Reason: "APIServiceWithdrawn", Action: "Withdraw",
		Note:      fmt.Sprintf("APIService %s is withdrawn, so that namespaces can be deleted: %s", s.Name, why),
		Regarding: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: ownName},
		Related: &corev1.ObjectReference{
			APIVersion: apiregistrationv1.SchemeGroupVersion.String(), Kind: "APIService", Name: s.Name, UID: s.UID,
		},
	}
	_, err := client.EventsV1().Events(namespace).Create(ctx, event, metav1.CreateOptions{})
	return err
}
