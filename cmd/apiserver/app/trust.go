// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
)

// The ConfigMap from which delegated authentication takes the values of flags that are not set.
const (
	authenticationNamespace = "kube-system"
	authenticationConfigMap = "extension-apiserver-authentication"
)

// trust is how the server authenticates. A client certificate signed by clientCA authenticates its own name. One signed by requestHeaderCA,
// with one of the allowed names (all if there are none), authenticates the user in the X-Remote-* headers.
type trust struct {
	clientCA, requestHeaderCA []byte
	allowedNames              []string
}

// checkAuthentication returns an error if every client could impersonate any user.
func (o *Options) checkAuthentication(ctx context.Context) error {
	authentication := o.Recommended.Authentication
	configMap := &corev1.ConfigMap{}
	if !authentication.SkipInClusterLookup {
		config, err := loadConfig("--authentication-kubeconfig", authentication.RemoteKubeConfigFile)
		if err != nil {
			return err
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		configMap, err = patiently(ctx, func() (*corev1.ConfigMap, error) {
			return client.CoreV1().ConfigMaps(authenticationNamespace).Get(ctx, authenticationConfigMap, metav1.GetOptions{})
		})
		if err != nil {
			return fmt.Errorf("cannot read how the cluster authenticates its proxy: bind Winnow's user to the Role "+
				"extension-apiserver-authentication-reader in %s, or give --requestheader-client-ca-file and "+
				"--requestheader-allowed-names and --client-ca-file with --authentication-skip-lookup: %w", authenticationNamespace, err)
		}
	}
	t, err := effectiveTrust(authentication, configMap.Data)
	if err != nil {
		return err
	}
	return t.check()
}

// effectiveTrust prefers flags to the ConfigMap, as the stock options do.
func effectiveTrust(o *genericoptions.DelegatingAuthenticationOptions, data map[string]string) (*trust, error) {
	t := &trust{
		clientCA:        []byte(data["client-ca-file"]),
		requestHeaderCA: []byte(data["requestheader-client-ca-file"]),
	}
	if names := data["requestheader-allowed-names"]; names != "" {
		if err := json.Unmarshal([]byte(names), &t.allowedNames); err != nil {
			return nil, fmt.Errorf(
				"requestheader-allowed-names in ConfigMap %s/%s is no JSON list: %w",
				authenticationNamespace,
				authenticationConfigMap,
				err,
			)
		}
	}
	var err error
	if file := o.RequestHeader.ClientCAFile; file != "" {
		t.allowedNames = o.RequestHeader.AllowedNames
		if t.requestHeaderCA, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("cannot read --requestheader-client-ca-file: %w", err)
		}
	}
	if file := o.ClientCert.ClientCA; file != "" {
		if t.clientCA, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("cannot read --client-ca-file: %w", err)
		}
	}
	return t, nil
}

func (t *trust) check() error {
	proxies, err := cert.ParseCertsPEM(t.requestHeaderCA)
	if err != nil {
		return errors.New("the cluster has no request-header CA, so the proxy in front of Winnow cannot be told from anybody else: " +
			"start kube-apiserver with --requestheader-client-ca-file, or Winnow with the flag of the same name")
	}
	if len(t.allowedNames) > 0 || len(t.clientCA) == 0 {
		return nil
	}
	clients, err := cert.ParseCertsPEM(t.clientCA)
	if err != nil {
		return fmt.Errorf("the client CA cannot be read: %w", err)
	}
	shared := slices.ContainsFunc(proxies, func(p *x509.Certificate) bool {
		return slices.ContainsFunc(clients, func(c *x509.Certificate) bool { return bytes.Equal(c.Raw, p.Raw) })
	})
	if shared {
		return errors.New(
			"the request-header CA also signs client certificates and every name is allowed, so each of those clients could claim to be " +
				"anybody: start kube-apiserver with --requestheader-allowed-names, or with a separate CA for the proxy",
		)
	}
	return nil
}

// requestHeaderCALoaded is not ready until the request header CA is loaded, which the stock options do in the background. Until then, the
// server would not trust requests of the aggregator.
func requestHeaderCALoaded(config *authenticatorfactory.RequestHeaderConfig) healthz.HealthChecker {
	return healthz.NamedCheck("request-header-ca", func(*http.Request) error {
		if config == nil || len(config.CAContentProvider.CurrentCABundleContent()) == 0 {
			return errors.New("the CA of the proxy in front is not loaded yet")
		}
		return nil
	})
}
