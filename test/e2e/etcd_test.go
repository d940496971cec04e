// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
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

// needsEtcd skips a test that is about an etcd of Winnow's own if policies are in the cluster's API.
func needsEtcd(t *testing.T) {
	t.Helper()
	if !*inEtcd {
		t.Skip("policies are in the cluster's API; -etcd runs this test")
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

// keyOf is the key of a policy, or of a cluster policy if ns is empty.
func keyOf(ns, name string) string {
	const prefix = "/registry/winnow/gc.winnow.dev/"
	if ns == "" {
		return prefix + "clustercleanuppolicies/" + name
	}
	return prefix + "cleanuppolicies/" + ns + "/" + name
}

// storedInEtcd is stored if policies are in an etcd.
func storedInEtcd(t *testing.T, ns, name string) (payload string, replace func(payload string) error) {
	t.Helper()
	client, key := etcdClient(t, suite), keyOf(ns, name)
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

// TestGarbageInEtcd: while the etcd has a value that is no object at all, policies cannot be listed, and nothing is deleted.
func TestGarbageInEtcd(t *testing.T) {
	needsEtcd(t)
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	finish(t, createJob(t, ns, job("before", unmanaged)), time.Now())
	expectDeletions(t, ns, "jobs/before p/default")
	client := etcdClient(t, suite)
	_, err := client.Put(t.Context(), keyOf(ns, "garbage"), "garbage")
	must(t, err)
	t.Cleanup(func() {
		_, err := client.Delete(whole, keyOf(ns, "garbage"))
		must(t, err)
	})
	expireReadings(t)
	finish(t, createJob(t, ns, job("after", unmanaged)), time.Now())
	moreReadings(t, leader(t), "failed", 3)
	expectDeletions(t, ns, "jobs/before p/default")
	_, err = client.Delete(t.Context(), keyOf(ns, "garbage"))
	must(t, err)
	expectDeletions(t, ns, "jobs/before p/default", "jobs/after p/default")
}
