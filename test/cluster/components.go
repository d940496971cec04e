// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/x509/pkix"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/util/keyutil"

	"github.com/winnow-dev/winnow/test/programs"
)

// The programs of a cluster. All but Kubectl are components, which keep running.
const (
	Etcd              = programs.Etcd
	APIServer         = programs.APIServer
	ControllerManager = programs.ControllerManager
	Scheduler         = programs.Scheduler
	Kwok              = programs.Kwok
	Kubectl           = programs.Kubectl

	// OwnEtcd is a component of a cluster with Options.OwnEtcd.
	OwnEtcd = "own-etcd"
)

// AllComponents are the components of a whole cluster in the order in which they start.
var AllComponents = []string{Etcd, APIServer, ControllerManager, Scheduler, Kwok}

// The common name that the API server's proxy client certificate carries and that aggregated servers learn to
// trust from the ConfigMap kube-system/extension-apiserver-authentication.
const frontProxyName = "front-proxy-client"

//go:embed audit-policy.yaml
var auditPolicy []byte

//go:embed kwok.yaml
var kwokConfig []byte

// prepare chooses ports and writes certificates, kubeconfigs and configuration into the cluster's folder; from
// then on every component can be started.
func (c *Cluster) prepare() (err error) {
	if c.options.Dir == "" {
		c.Dir, err = os.MkdirTemp("", "winnow-cluster-")
	} else {
		c.Dir, err = filepath.Abs(c.options.Dir)
	}
	if err != nil {
		return err
	}
	for _, dir := range []string{c.pkiDir(), c.Logs(), c.kubeconfigDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if c.ca, err = loadAuthority(c.pkiDir(), "ca"); err != nil {
		return err
	}
	if c.frontProxyCA, err = loadAuthority(c.pkiDir(), "front-proxy-ca"); err != nil {
		return err
	}
	if c.port, err = FreePort(); err != nil {
		return err
	}
	if c.kubeconfig, err = c.writeKubeconfig(filepath.Join(c.Dir, "kubeconfig"), "admin", "system:masters"); err != nil {
		return err
	}
	if c.config, err = c.loadConfig(c.kubeconfig); err != nil {
		return err
	}
	return c.prepareFlags()
}

func (c *Cluster) prepareFlags() error {
	etcd, etcdClient, err := c.etcdFlags(Etcd)
	if err != nil {
		return fmt.Errorf("preparing etcd: %w", err)
	}
	c.flags = map[string][]string{Etcd: etcd}
	if c.options.OwnEtcd {
		if c.flags[OwnEtcd], c.ownEtcdFlags, err = c.etcdFlags(OwnEtcd); err != nil {
			return fmt.Errorf("preparing the second etcd: %w", err)
		}
	}
	for name, flags := range map[string]func() ([]string, error){
		APIServer:         func() ([]string, error) { return c.apiServerFlags(etcdClient) },
		ControllerManager: c.controllerManagerFlags,
		Scheduler:         c.schedulerFlags,
		Kwok:              c.kwokFlags,
	} {
		if c.flags[name], err = flags(); err != nil {
			return fmt.Errorf("preparing %s: %w", name, err)
		}
	}
	for name, more := range c.options.Flags {
		c.flags[name] = append(c.flags[name], more...)
	}
	return nil
}

// OwnEtcdFlags are the flags by which an API server reaches the second etcd, with a client certificate. There are none without it.
func (c *Cluster) OwnEtcdFlags() []string { return c.ownEtcdFlags }

// etcdFlags returns the flags of an etcd, and those by which an API server reaches it. Its CA is its own: who has a
// certificate of the cluster must not read the store.
func (c *Cluster) etcdFlags(name string) (server, client []string, err error) {
	ca, err := loadAuthority(c.pkiDir(), name+"-ca")
	if err != nil {
		return nil, nil, err
	}
	certFile, keyFile, err := ca.issueFiles(c.pkiDir(), name, pkix.Name{CommonName: name})
	if err != nil {
		return nil, nil, err
	}
	clientPort, err := FreePort()
	if err != nil {
		return nil, nil, err
	}
	peerPort, err := FreePort()
	if err != nil {
		return nil, nil, err
	}
	clientURL, peerURL := loopbackURL(clientPort), loopbackURL(peerPort)
	server = []string{
		"--name=etcd", "--data-dir=" + c.etcdDir(name),
		"--listen-client-urls=" + clientURL, "--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL, "--initial-cluster=etcd=" + peerURL,
		"--trusted-ca-file=" + ca.certFile, "--cert-file=" + certFile, "--key-file=" + keyFile, "--client-cert-auth",
		"--peer-trusted-ca-file=" + ca.certFile, "--peer-cert-file=" + certFile, "--peer-key-file=" + keyFile, "--peer-client-cert-auth",
		"--unsafe-no-fsync", // survives every end of a process; only a crash of the machine loses data
		"--quota-backend-bytes=8589934592", "--log-level=warn",
	}
	client = []string{
		"--etcd-servers=" + clientURL, "--etcd-cafile=" + ca.certFile,
		"--etcd-certfile=" + certFile, "--etcd-keyfile=" + keyFile,
	}
	return server, client, nil
}

func (c *Cluster) apiServerFlags(etcdClient []string) ([]string, error) {
	certFile, keyFile, err := c.ca.issueFiles(c.pkiDir(), "kube-apiserver", pkix.Name{CommonName: "kube-apiserver"},
		"kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return nil, err
	}
	proxyCert, proxyKey, err := c.FrontProxyCert(frontProxyName)
	if err != nil {
		return nil, err
	}
	if _, _, err := keyutil.LoadOrGenerateKeyFile(c.serviceAccountKey()); err != nil {
		return nil, err
	}
	auditPolicyFile := filepath.Join(c.Dir, "audit-policy.yaml")
	if err := os.WriteFile(auditPolicyFile, auditPolicy, 0o644); err != nil {
		return nil, err
	}
	return append(etcdClient,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+strconv.Itoa(c.port),
		"--endpoint-reconciler-type=none", // it refuses endpoints on loopback
		"--service-cluster-ip-range=10.96.0.0/16",
		"--tls-cert-file="+certFile, "--tls-private-key-file="+keyFile, "--client-ca-file="+c.ca.certFile,
		"--requestheader-client-ca-file="+c.frontProxyCA.certFile, "--requestheader-allowed-names="+frontProxyName,
		"--requestheader-username-headers=X-Remote-User", "--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+proxyCert, "--proxy-client-key-file="+proxyKey,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.serviceAccountKey(), "--service-account-signing-key-file="+c.serviceAccountKey(),
		"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount", "--allow-privileged",
		"--audit-policy-file="+auditPolicyFile, "--audit-log-path="+c.AuditLog(), "--audit-log-format=json",
		"--audit-log-mode=blocking", "--audit-log-maxsize=100000", // The whole run in one file: 0 would mean 100 MB.
	), nil
}

func (c *Cluster) controllerManagerFlags() ([]string, error) {
	kubeconfig, err := c.KubeconfigFor("system:kube-controller-manager")
	if err != nil {
		return nil, err
	}
	return []string{
		"--kubeconfig=" + kubeconfig, "--secure-port=0", "--leader-elect=false",
		"--use-service-account-credentials=true", // each controller has its RBAC role alone, as in a real cluster
		"--service-account-private-key-file=" + c.serviceAccountKey(), "--root-ca-file=" + c.ca.certFile,
		"--kube-api-qps=1000", "--kube-api-burst=2000", "--concurrent-job-syncs=20",
	}, nil
}

func (c *Cluster) schedulerFlags() ([]string, error) {
	kubeconfig, err := c.KubeconfigFor("system:kube-scheduler")
	return []string{
		"--kubeconfig=" + kubeconfig, "--secure-port=0", "--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=2000",
	}, err
}

func (c *Cluster) kwokFlags() ([]string, error) {
	kubeconfig, err := c.KubeconfigFor("kwok", "system:masters")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(c.Dir, "kwok.yaml")
	return []string{"--kubeconfig=" + kubeconfig, "--config=" + config, "--node-ip=127.0.0.1"}, os.WriteFile(config, kwokConfig, 0o644)
}

func loopbackURL(port int) string { return "https://127.0.0.1:" + strconv.Itoa(port) }
