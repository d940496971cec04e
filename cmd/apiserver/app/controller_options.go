// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfig "k8s.io/component-base/config"
	leaderelectionflags "k8s.io/component-base/config/options"
)

const (
	defaultConcurrentDeletions = 64
	maxConcurrentDeletions     = 1024
	defaultHoldAbove           = 1000
	defaultHoldAboveTotal      = 5000
	defaultRecordRetention     = 30 * 24 * time.Hour
	minRecordRetention         = time.Minute
	defaultRecordsPerNamespace = 10_000
	maxRecordsPerNamespace     = 1_000_000
	defaultCopiesPerNamespace  = 1000
	maxCopiesPerNamespace      = 100_000
	// defaultCopyBytes lets 64 namespaces use all of their room. kube-apiserver keeps all copies in memory, so their total is an eighth of an
	// etcd of 2 GiB, which is its default.
	defaultCopyBytes, defaultCopyBytesTotal = 4 << 20, 256 << 20
)

// ControllerOptions are the flags of the controller.
type ControllerOptions struct {
	// ConcurrentDeletions is how many DELETE requests may be in flight at once.
	ConcurrentDeletions int
	// ProtectedNamespaces are added to the namespaces that are always protected.
	ProtectedNamespaces []string
	// HoldAbove is how many objects of a namespace one change may make due at once without approval; -1 for no limit.
	HoldAbove int
	// HoldAboveTotal is how many objects one change may make due at once in all namespaces that it reaches; -1 for no limit.
	HoldAboveTotal int
	// StartSuspended stops every deletion in namespaces that no enforcing cluster policy selects.
	StartSuspended bool
	// DefaultServiceAccount is the account in each namespace as which Winnow acts for policies that name none; empty for its own.
	DefaultServiceAccount string
	// RequireServiceAccount demands an account of every policy.
	RequireServiceAccount bool
	// Notify says where events about deletions and holds are sent.
	Notify *NotifyOptions
	// RecordRetention is how long the records of deleted objects are kept.
	RecordRetention time.Duration
	// RecordsPerNamespace is how many records of a namespace are kept; 0 for none.
	RecordsPerNamespace int
	// CopiesPerNamespace is how many copies of deleted objects are kept in a namespace, and CopyBytesPerNamespace how much room they take.
	// CopyBytesTotal is how much room the copies of all namespaces take.
	CopiesPerNamespace                    int
	CopyBytesPerNamespace, CopyBytesTotal int64
	// LeaderElection configures the leader election among the replicas.
	LeaderElection componentbaseconfig.LeaderElectionConfiguration
}

func newControllerOptions() *ControllerOptions {
	return &ControllerOptions{
		ConcurrentDeletions: defaultConcurrentDeletions,
		HoldAbove:           defaultHoldAbove,
		HoldAboveTotal:      defaultHoldAboveTotal,
		Notify:              &NotifyOptions{},
		RecordRetention:     defaultRecordRetention,
		RecordsPerNamespace: defaultRecordsPerNamespace,

		CopiesPerNamespace: defaultCopiesPerNamespace, CopyBytesPerNamespace: defaultCopyBytes, CopyBytesTotal: defaultCopyBytesTotal,
		LeaderElection: componentbaseconfig.LeaderElectionConfiguration{
			LeaderElect:   true,
			LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
			RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
			// Another replica leads up to 2.2 times as long after the last one has given the Lease back. The leader renews it less often.
			RetryPeriod:  metav1.Duration{Duration: 750 * time.Millisecond},
			ResourceLock: resourcelock.LeasesResourceLock,
			ResourceName: ownName,
		},
	}
}

// AddFlags adds the flags of the controller and of leader election.
func (o *ControllerOptions) AddFlags(controller, leaderElection *pflag.FlagSet) {
	controller.IntVar(&o.ConcurrentDeletions, "concurrent-deletions", o.ConcurrentDeletions, fmt.Sprintf(
		"Maximum number of DELETE requests in flight, from 1 to %d. If the API server throttles them, Winnow sends fewer for a while.",
		maxConcurrentDeletions))
	controller.StringSliceVar(&o.ProtectedNamespaces, "protected-namespaces", o.ProtectedNamespaces,
		"Comma-separated list of namespaces in which Winnow never deletes anything. These are always protected: kube-system, kube-public, "+
			"kube-node-lease, Winnow's own, and every namespace with the label gc.winnow.dev/protected, unless its value is \"false\".")
	controller.IntVar(
		&o.HoldAbove,
		"default-hold-above",
		o.HoldAbove,
		"How many objects one change can make due at once in one namespace. A change is a policy that is written or deleted, a label of the "+
			"namespace, or a quota. Above this number, the policy that would delete the objects waits for approval; see status.holds. "+
			"Applies to namespaces where no cluster policy sets guardrails.holdAbove.objects. -1 means no limit.",
	)
	controller.IntVar(
		&o.HoldAboveTotal,
		"default-hold-above-total",
		o.HoldAboveTotal,
		"How many objects one change of a cluster policy can make due at once in all namespaces that it affects. Above this number, the policy "+
			"waits for approval in all of them; see status.holds. Applies to namespaces where no cluster policy sets guardrails.holdAbove.total. "+
			"-1 means no limit.",
	)
	controller.BoolVar(
		&o.StartSuspended,
		"start-suspended",
		o.StartSuspended,
		"Delete nothing in a namespace until a ClusterCleanupPolicy with mode Enforce selects it. Until then, the policies of the namespace "+
			"have the condition Suspended.",
	)
	controller.StringVar(
		&o.DefaultServiceAccount,
		"default-service-account",
		o.DefaultServiceAccount,
		"Name of the ServiceAccount in each namespace as which Winnow deletes and changes objects for policies without "+
			"spec.serviceAccountName. If unset, Winnow acts as itself for them.",
	)
	controller.BoolVar(
		&o.RequireServiceAccount,
		"require-service-account",
		o.RequireServiceAccount,
		"Delete and change nothing for a policy that names no ServiceAccount, unless --default-service-account does. Set this if Winnow has "+
			"no right to delete.",
	)
	o.addKeptFlags(controller)
	leaderelectionflags.BindLeaderElectionFlags(&o.LeaderElection, leaderElection)
}

// addKeptFlags adds the flags of what is kept of deleted objects.
func (o *ControllerOptions) addKeptFlags(controller *pflag.FlagSet) {
	controller.DurationVar(
		&o.RecordRetention,
		"record-retention",
		o.RecordRetention,
		"How long Winnow keeps the record of an object that it deleted; see kubectl get cleanuprecords.",
	)
	controller.IntVar(
		&o.RecordsPerNamespace,
		"records-per-namespace",
		o.RecordsPerNamespace,
		fmt.Sprintf("How many records of deleted objects Winnow keeps for each namespace, up to %d. It removes the oldest. 0 means that Winnow "+
			"keeps no records.", maxRecordsPerNamespace),
	)
	controller.IntVar(
		&o.CopiesPerNamespace,
		"copies-per-namespace",
		o.CopiesPerNamespace,
		fmt.Sprintf("How many copies of deleted objects Winnow keeps in each namespace, up to %d; see keepCopy of a rule. If there are as many, "+
			"objects whose rule keeps copies are held (CopyQuotaExceeded). With 0, all of them are.", maxCopiesPerNamespace),
	)
	controller.Int64Var(
		&o.CopyBytesPerNamespace,
		"copy-bytes-per-namespace",
		o.CopyBytesPerNamespace,
		"How many bytes the copies of deleted objects may take in each namespace. They are compressed, and stored in the etcd of the cluster.",
	)
	controller.Int64Var(
		&o.CopyBytesTotal,
		"copy-bytes-total",
		o.CopyBytesTotal,
		"How many bytes the copies of deleted objects may take in all namespaces together. kube-apiserver also keeps them in memory.",
	)
}

// Validate returns the errors in the flags.
func (o *ControllerOptions) Validate() []error {
	var errs []error
	if o.ConcurrentDeletions < 1 || o.ConcurrentDeletions > maxConcurrentDeletions {
		errs = append(
			errs,
			fmt.Errorf("--concurrent-deletions is %d, it must be from 1 to %d", o.ConcurrentDeletions, maxConcurrentDeletions),
		)
	}
	for flag, n := range map[string]int{"--default-hold-above": o.HoldAbove, "--default-hold-above-total": o.HoldAboveTotal} {
		if n < -1 {
			errs = append(errs, fmt.Errorf("%s is %d, it must be -1 for any number, or at least 0", flag, n))
		}
	}
	errs = append(errs, o.validateRecords()...)
	for _, namespace := range o.ProtectedNamespaces {
		for _, why := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, fmt.Errorf("--protected-namespaces: %q is no name of a namespace: %s", namespace, why))
		}
	}
	if name := o.DefaultServiceAccount; name != "" {
		for _, why := range apivalidation.ValidateServiceAccountName(name, false) {
			errs = append(errs, fmt.Errorf("--default-service-account: %q is no name of a ServiceAccount: %s", name, why))
		}
	}
	errs = append(errs, o.Notify.Validate()...)
	if o.LeaderElection.LeaderElect {
		errs = append(errs, validateLeaderElection(&o.LeaderElection)...)
	}
	return errs
}

func (o *ControllerOptions) validateRecords() []error {
	var errs []error
	if o.RecordRetention < minRecordRetention {
		errs = append(errs, fmt.Errorf("--record-retention is %s, it must be at least %s; to keep no records, use --records-per-namespace=0",
			o.RecordRetention, minRecordRetention))
	}
	if n := o.RecordsPerNamespace; n < 0 || n > maxRecordsPerNamespace {
		errs = append(errs, fmt.Errorf("--records-per-namespace is %d, it must be from 0 to %d", n, maxRecordsPerNamespace))
	}
	if n := o.CopiesPerNamespace; n < 0 || n > maxCopiesPerNamespace {
		errs = append(errs, fmt.Errorf("--copies-per-namespace is %d, it must be from 0 to %d", n, maxCopiesPerNamespace))
	}
	if n := o.CopyBytesPerNamespace; n < 0 {
		errs = append(errs, fmt.Errorf("--copy-bytes-per-namespace is %d, it must be at least 0", n))
	}
	if n := o.CopyBytesTotal; n < 0 {
		errs = append(errs, fmt.Errorf("--copy-bytes-total is %d, it must be at least 0", n))
	}
	return errs
}

// validateLeaderElection refuses values with which the leader election of client-go cannot run.
func validateLeaderElection(c *componentbaseconfig.LeaderElectionConfiguration) []error {
	var errs []error
	lease, renew, retry := c.LeaseDuration.Duration, c.RenewDeadline.Duration, c.RetryPeriod.Duration
	if lease < time.Second {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration is %s, it must be at least 1s: a Lease counts whole seconds", lease))
	}
	if lease <= renew {
		errs = append(
			errs,
			fmt.Errorf("--leader-elect-lease-duration (%s) must be longer than --leader-elect-renew-deadline (%s)", lease, renew),
		)
	}
	if retry <= 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-retry-period is %s, it must be longer than 0s", retry))
	}
	if jittered := time.Duration(leaderelection.JitterFactor * float64(retry)); renew <= jittered {
		errs = append(errs, fmt.Errorf("--leader-elect-renew-deadline (%s) must be longer than %.1f times --leader-elect-retry-period (%s)",
			renew, leaderelection.JitterFactor, retry))
	}
	if c.ResourceLock != resourcelock.LeasesResourceLock {
		errs = append(
			errs,
			fmt.Errorf("--leader-elect-resource-lock is %q, it must be %q", c.ResourceLock, resourcelock.LeasesResourceLock),
		)
	}
	if c.ResourceName == "" {
		errs = append(errs, errors.New("--leader-elect-resource-name must not be empty"))
	}
	return errs
}
