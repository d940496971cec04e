// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"crypto/x509/pkix"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig is the path of a kubeconfig with all rights (group system:masters).
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// RESTConfig has all rights (group system:masters) and no client-side rate limit.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// KubeconfigFor writes a new kubeconfig with a client certificate for this user and returns its path.
func (c *Cluster) KubeconfigFor(user string, groups ...string) (string, error) {
	file, err := os.CreateTemp(c.kubeconfigDir(), strings.NewReplacer(":", "-", "/", "-").Replace(user)+"-*")
	if err != nil {
		return "", err
	}
	if err := file.Close(); err != nil {
		return "", err
	}
	return c.writeKubeconfig(file.Name(), user, groups...)
}

// UserConfig is KubeconfigFor as a client configuration without a client-side rate limit.
func (c *Cluster) UserConfig(user string, groups ...string) (*rest.Config, error) {
	path, err := c.KubeconfigFor(user, groups...)
	if err != nil {
		return nil, err
	}
	return c.loadConfig(path)
}

func (c *Cluster) loadConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

func (c *Cluster) writeKubeconfig(path, user string, groups ...string) (string, error) {
	certPEM, keyPEM, err := c.ca.issue(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return "", fmt.Errorf("kubeconfig for %s: %w", user, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: loopbackURL(c.port), CertificateAuthorityData: c.ca.certPEM}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: user}
	config.CurrentContext = "local"
	return path, clientcmd.WriteToFile(*config, path)
}

// Kubectl runs kubectl with all rights; "--kubeconfig", path among args makes it another user.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	return c.KubectlStdin(ctx, "", args...)
}

// KubectlStdin is Kubectl with something on standard input, for "-f -".
func (c *Cluster) KubectlStdin(ctx context.Context, stdin string, args ...string) (stdout, stderr string, err error) {
	defaults := []string{"--kubeconfig", c.kubeconfig, "--cache-dir", filepath.Join(c.Dir, "kubectl-cache")}
	cmd := exec.CommandContext(ctx, c.programs[Kubectl], append(defaults, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	if err = run(cmd); err != nil {
		err = fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, errOut.String())
	}
	return out.String(), errOut.String(), err
}

// KubectlPath is the executable that Kubectl runs.
func (c *Cluster) KubectlPath() string { return c.programs[Kubectl] }

// ClientCA is the path of the CA that signs users' client certificates and the API server's own.
func (c *Cluster) ClientCA() string { return c.ca.certFile }

// RequestHeaderCA is the path of the CA that signs the certificate of the aggregating proxy, and nothing else.
func (c *Cluster) RequestHeaderCA() string { return c.frontProxyCA.certFile }

// FrontProxyCert issues a client certificate of the request-header CA. Only "front-proxy-client" is a name that
// aggregated servers may believe.
func (c *Cluster) FrontProxyCert(commonName string) (certFile, keyFile string, err error) {
	return c.frontProxyCA.issueFiles(c.pkiDir(), "front-proxy-"+commonName, pkix.Name{CommonName: commonName})
}

// ServingCert issues a serving certificate for these names, localhost and 127.0.0.1; caPEM verifies it.
func (c *Cluster) ServingCert(dnsNames ...string) (certFile, keyFile string, caPEM []byte, err error) {
	if len(dnsNames) == 0 {
		dnsNames = []string{"localhost"}
	}
	certFile, keyFile, err = c.ca.issueFiles(c.pkiDir(), "serving-"+dnsNames[0], pkix.Name{CommonName: dnsNames[0]}, dnsNames...)
	return certFile, keyFile, c.ca.certPEM, err
}

// Logs is the folder of the log files, NAME.log for each component and each process of Run.
func (c *Cluster) Logs() string { return filepath.Join(c.Dir, "logs") }

// AuditLog is the path of the API server's audit log, one JSON event a line.
func (c *Cluster) AuditLog() string { return filepath.Join(c.Dir, "audit.log") }

func (c *Cluster) pkiDir() string            { return filepath.Join(c.Dir, "pki") }
func (c *Cluster) kubeconfigDir() string     { return filepath.Join(c.Dir, "kubeconfigs") }
func (c *Cluster) serviceAccountKey() string { return filepath.Join(c.pkiDir(), "service-account.key") }
