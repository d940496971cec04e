// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/apiserver"
)

// defaultSecurePort can be bound without privileges.
const defaultSecurePort = 8443

// defaultMaxPoliciesPerNamespace leaves room for a policy for each application of a team.
const defaultMaxPoliciesPerNamespace = 50

// mostVerbose is the verbosity above which client-go logs the bodies of requests.
const mostVerbose = 7

// Options are the flags.
type Options struct {
	ServerRun   *genericoptions.ServerRunOptions
	Recommended *genericoptions.RecommendedOptions
	Controller  *ControllerOptions
	Logs        *logsapi.LoggingConfiguration
	Service     *ServiceOptions
	// Kubeconfig is the path of the cluster's kubeconfig; empty for the ServiceAccount of the Pod.
	Kubeconfig string
	// ManageStorage is set if Winnow installs and updates its storage in the cluster itself.
	ManageStorage bool
	// MaxPoliciesPerNamespace limits the number of CleanupPolicies in a namespace; -1 for no limit.
	MaxPoliciesPerNamespace int
}

// NewOptions returns the options with their defaults.
func NewOptions() *Options {
	recommended := genericoptions.NewRecommendedOptions("/registry/winnow", storageCodec)
	recommended.Etcd.StorageConfig.EncodeVersioner = storageVersioner
	recommended.SecureServing.BindPort = defaultSecurePort
	// Without a certificate, a self-signed one is created in memory, because the root file system may be read-only.
	recommended.SecureServing.ServerCert.CertDirectory = ""
	recommended.SecureServing.ServerCert.PairName = ""
	// With HTTP/2, a replica that ends cannot tell the one connection that kube-apiserver has to it in time that it closes: what is written at
	// that moment is lost. With HTTP/1.1, each answer says whether another request may follow.
	recommended.SecureServing.DisableHTTP2Serving = true
	recommended.CoreAPI = nil // see clusterConfig
	recommended.EgressSelector = nil
	recommended.Traces = nil

	run := genericoptions.NewServerRunOptions()
	// kube-apiserver keeps connections that it does not use for 90 seconds. If a replica closed one at the moment at which kube-apiserver uses
	// it again, a write would be lost. So it answers until they have all been used, and closed by that, or given up.
	run.ShutdownDelayDuration = 95 * time.Second
	run.ShutdownWatchTerminationGracePeriod = 5 * time.Second

	return &Options{
		ServerRun:   run,
		Recommended: recommended,
		Controller:  newControllerOptions(),
		Service:     newServiceOptions(),
		Logs:        logs.NewOptions(),

		ManageStorage:           true,
		MaxPoliciesPerNamespace: defaultMaxPoliciesPerNamespace,
	}
}

// Policies are stored in this version, as JSON.
var (
	storageCodec     = apiserver.StorageCodec()
	storageVersioner = runtime.NewMultiGroupVersioner(v1alpha1.SchemeGroupVersion, schema.GroupKind{Group: gc.GroupName})
)

// Flags returns the flags in the groups that --help shows.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var fss cliflag.NamedFlagSets
	cluster := fss.FlagSet("cluster")
	cluster.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"Path to the kubeconfig of the cluster that Winnow serves and cleans. If unset, Winnow uses the ServiceAccount of its Pod.")
	cluster.BoolVar(&o.ManageStorage, "manage-storage", o.ManageStorage,
		"Install and update the custom resources and the admission policy that store policies, if Winnow has permission. If false, an "+
			"administrator applies artifacts/storage, and Winnow is not ready before that.")
	fss.FlagSet("policies").IntVar(&o.MaxPoliciesPerNamespace, "max-policies-per-namespace", o.MaxPoliciesPerNamespace,
		"How many cleanup policies a namespace can have. Winnow checks each of them for every object in the namespace. It refuses one more, and "+
			"keeps existing ones. -1 means no limit.")
	o.Controller.AddFlags(fss.FlagSet("controller"), fss.FlagSet("leader election"))
	o.Controller.Notify.AddFlags(fss.FlagSet("notifications"))
	o.Service.AddFlags(fss.FlagSet("registration"), fss.FlagSet("secure serving"))
	addFlags(fss.FlagSet("secure serving"), o.Recommended.SecureServing.AddFlags, "cert-dir")
	o.Recommended.Authentication.AddFlags(fss.FlagSet("authentication"))
	o.Recommended.Authorization.AddFlags(fss.FlagSet("authorization"))
	o.Recommended.Admission.AddFlags(fss.FlagSet("admission"))
	o.Recommended.Audit.AddFlags(fss.FlagSet("audit"))
	o.Recommended.Features.AddFlags(fss.FlagSet("features"))
	o.ServerRun.AddUniversalFlags(fss.FlagSet("server"))
	addFlags(fss.FlagSet("etcd (instead of the cluster's own API)"), o.Recommended.Etcd.AddFlags,
		"storage-media-type", "storage-backend", "etcd-servers-overrides", "enable-garbage-collector", "default-watch-cache-size",
		"watch-cache", "watch-cache-sizes")
	logsapi.AddFlags(o.Logs, fss.FlagSet("logs"))
	return fss
}

// addFlags adds stock flags without those that would have no effect.
func addFlags(fs *pflag.FlagSet, add func(*pflag.FlagSet), without ...string) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(all)
	all.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(without, f.Name) {
			fs.AddFlag(f)
		}
	})
}

// usesEtcd reports whether policies are stored in an etcd.
func (o *Options) usesEtcd() bool {
	return len(o.Recommended.Etcd.StorageConfig.Transport.ServerList) > 0
}

// Complete sets what flags leave open. The Lease is in Winnow's namespace unless a flag says otherwise.
func (o *Options) Complete() {
	if lease := &o.Controller.LeaderElection.ResourceNamespace; *lease == "" {
		*lease = o.Service.Namespace
	}
}

// Validate returns all errors in the flags at once.
func (o *Options) Validate() error {
	recommended := *o.Recommended
	if !o.usesEtcd() {
		recommended.Etcd = nil
	}
	errs := append(o.ServerRun.Validate(), recommended.Validate()...)
	errs = append(errs, o.Controller.Validate()...)
	if n := o.MaxPoliciesPerNamespace; n < -1 {
		errs = append(errs, fmt.Errorf("--max-policies-per-namespace is %d, it must be -1 for any number, or at least 0", n))
	}
	serving := o.Recommended.SecureServing
	if serving.BindPort == 0 {
		errs = append(errs, errors.New("--secure-port must not be 0: Winnow is reached by HTTPS alone"))
	}
	pair := serving.ServerCert.CertKey
	if (pair.CertFile == "") != (pair.KeyFile == "") {
		errs = append(
			errs,
			fmt.Errorf("--tls-cert-file (%q) and --tls-private-key-file (%q) must be given together", pair.CertFile, pair.KeyFile),
		)
	}
	errs = append(errs, o.Service.Validate(pair.CertFile != "")...)
	if o.Logs.Verbosity > mostVerbose && o.Service.makesCertificates() {
		errs = append(errs, fmt.Errorf("-v is %d: above %d, the keys of Winnow's certificates would be in the log; "+
			"lower it, or use certificates from files", o.Logs.Verbosity, mostVerbose))
	}
	return utilerrors.NewAggregate(errs)
}

// serverName is the name for which kube-apiserver verifies Winnow's certificate.
func (o *Options) serverName() string { return fmt.Sprintf("%s.%s.svc", ownName, o.Service.Namespace) }
