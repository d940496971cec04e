// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"flag"
	"testing"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/winnow-dev/winnow/test/cluster"
)

var inEtcd = flag.Bool("etcd", false, "run the suite with policies in an etcd of Winnow's own (--etcd-servers)")

// needsBuiltinStorage skips a test that is about the storage in the cluster's API if policies are in an etcd.
func needsBuiltinStorage(t *testing.T, why string) {
	t.Helper()
	if *inEtcd {
		t.Skipf("policies are in an etcd, and %s", why)
	}
}

// etcdClient reaches the etcd of Winnow in a cluster as Winnow does.
func etcdClient(t *testing.T, c *cluster.Cluster) *clientv3.Client {
	t.Helper()
	var tls transport.TLSInfo
	flags := pflag.NewFlagSet("etcd", pflag.ContinueOnError)
	servers := flags.StringSlice("etcd-servers", nil, "")
	flags.StringVar(&tls.TrustedCAFile, "etcd-cafile", "", "")
	flags.StringVar(&tls.CertFile, "etcd-certfile", "", "")
	flags.StringVar(&tls.KeyFile, "etcd-keyfile", "", "")
	must(t, flags.Parse(c.OwnEtcdFlags()))
	config, err := tls.ClientConfig()
	must(t, err)
	client, err := clientv3.New(clientv3.Config{Endpoints: *servers, TLS: config})
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

// storedInEtcd is stored if policies are in an etcd.
func storedInEtcd(t *testing.T, ns, name string) (payload string, replace func(payload string) error) {
	t.Helper()
	client, key := etcdClient(t, suite), "/registry/winnow/gc.winnow.dev/cleanuppolicies/"+ns+"/"+name
	if ns == "" {
		key = "/registry/winnow/gc.winnow.dev/clustercleanuppolicies/" + name
	}
	found, err := client.Get(t.Context(), key)
	must(t, err)
	if len(found.Kvs) == 0 {
		t.Fatalf("there is no %s", key)
	}
	return string(found.Kvs[0].Value), func(payload string) error {
		unchanged := clientv3.Compare(clientv3.ModRevision(key), "=", found.Kvs[0].ModRevision)
		done, err := client.Txn(t.Context()).If(unchanged).Then(clientv3.OpPut(key, payload)).Commit()
		if err == nil && !done.Succeeded {
			err = errors.New(key + " was written meanwhile")
		}
		return err
	}
}
