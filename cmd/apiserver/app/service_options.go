// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/winnow-dev/winnow/pkg/certificates"
)

const (
	ownName = "winnow"
	// defaultNamespace is the namespace in the manifests, for a Winnow that runs outside of a Pod.
	defaultNamespace = "winnow-system"
	// namespaceFile says which namespace a Pod is in.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

	day = 24 * time.Hour
	// Shorter lives would leave less than a minute for each step of a renewal.
	shortestLife = time.Minute
)

// ServiceOptions are the flags that say how kube-apiserver reaches Winnow, and by which certificates it knows it.
type ServiceOptions struct {
	// Namespace that Winnow is installed in.
	Namespace string
	// Register is set if Winnow keeps its APIService.
	Register bool
	// Port of the Service.
	Port int
	// CAFile has the authorities that have signed --tls-cert-file; empty without that flag.
	CAFile string
	// Lifetimes of certificates that Winnow makes itself.
	Lifetimes certificates.Lifetimes
}

func newServiceOptions() *ServiceOptions {
	return &ServiceOptions{
		Namespace: podNamespace(), Register: true, Port: 443,
		Lifetimes: certificates.Lifetimes{Authority: 365 * day, Serving: 7 * day},
	}
}

// podNamespace is the namespace of the Pod that this process runs in, or the default one outside of a Pod.
func podNamespace() string {
	if namespace, err := os.ReadFile(namespaceFile); err == nil {
		return strings.TrimSpace(string(namespace))
	}
	return defaultNamespace
}

// AddFlags adds the flags of registration, and adds the flags of certificates to the stock ones.
func (o *ServiceOptions) AddFlags(registration, serving *pflag.FlagSet) {
	registration.StringVar(&o.Namespace, "namespace", o.Namespace,
		"Namespace of Winnow: of its Service, its Lease and its certificates. The default is the Pod's namespace.")
	registration.BoolVar(&o.Register, "register", o.Register,
		"Create the APIService v1alpha1.gc.winnow.dev once this replica is ready, and keep it. If false, you apply it yourself, with a "+
			"caBundle for --tls-cert-file.")
	registration.IntVar(&o.Port, "service-port", o.Port, "Port of the Service "+ownName+", for the APIService.")
	serving.StringVar(&o.CAFile, "tls-ca-file", o.CAFile,
		"File with the certificate authorities by which kube-apiserver verifies --tls-cert-file. Winnow writes them into the APIService. "+
			"Without these files, Winnow makes its own authority and certificate, and renews them.")
	serving.DurationVar(&o.Lifetimes.Authority, "certificate-authority-lifetime", o.Lifetimes.Authority,
		"How long Winnow's own certificate authority is valid. It is renewed after two thirds of that.")
	serving.DurationVar(&o.Lifetimes.Serving, "certificate-lifetime", o.Lifetimes.Serving,
		"How long a serving certificate is valid that Winnow makes itself. It is renewed after two thirds of that.")
}

// makesCertificates reports whether Winnow makes its certificates itself.
func (o *ServiceOptions) makesCertificates() bool { return o.Register && o.CAFile == "" }

// Validate returns the errors in the flags. Files is set if --tls-cert-file is.
func (o *ServiceOptions) Validate(files bool) []error {
	var errs []error
	for _, why := range validation.IsDNS1123Label(o.Namespace) {
		errs = append(errs, fmt.Errorf("--namespace: %q is no name of a namespace: %s", o.Namespace, why))
	}
	for _, why := range validation.IsValidPortNum(o.Port) {
		errs = append(errs, fmt.Errorf("--service-port is %d: %s", o.Port, why))
	}
	if o.Register && files && o.CAFile == "" {
		errs = append(errs, errors.New("--tls-cert-file needs --tls-ca-file, with the certificate authority for the APIService, or "+
			"--register=false, if you apply the APIService yourself"))
	}
	if !files && o.CAFile != "" {
		errs = append(errs, errors.New("--tls-ca-file needs --tls-cert-file and --tls-private-key-file"))
	}
	for flag, life := range map[string]time.Duration{
		"--certificate-authority-lifetime": o.Lifetimes.Authority, "--certificate-lifetime": o.Lifetimes.Serving,
	} {
		if life < shortestLife {
			errs = append(errs, fmt.Errorf("%s is %s, it must be at least %s", flag, life, shortestLife))
		}
	}
	return errs
}
