// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/test/cluster"
)

// etcdVariable has the access to etcd, as JSON, in the environment of shells.
const etcdVariable = "DOCS_COMMANDS_ETCD"

// age moves the times of objects back in etcd. The API of Kubernetes sets the time of a creation itself, and an object cannot finish
// before.
func age(ctx context.Context, args []string) error {
	ttl := gc.TTL(args[0])
	by, _, err := ttl.Parse()
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "kubectl", append([]string{"get", "--output=json"}, args[1:]...)...).Output()
	if err != nil {
		return fmt.Errorf("kubectl get %s: %w", strings.Join(args[1:], " "), err)
	}
	store, err := openEtcd()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	found := &unstructured.Unstructured{}
	if err := found.UnmarshalJSON(out); err != nil {
		return err
	}
	move := func(o *unstructured.Unstructured) error {
		value, err := older(o, by)
		if err == nil {
			_, err = store.Put(ctx, etcdKey(o), string(value))
		}
		return err
	}
	if !found.IsList() {
		return move(found)
	}
	list, err := found.ToList()
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := move(&list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func openEtcd() (*clientv3.Client, error) {
	var access cluster.EtcdAccess
	if err := json.Unmarshal([]byte(os.Getenv(etcdVariable)), &access); err != nil {
		return nil, err
	}
	tls := transport.TLSInfo{CertFile: access.CertFile, KeyFile: access.KeyFile, TrustedCAFile: access.CAFile}
	config, err := tls.ClientConfig()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{Endpoints: []string{access.URL}, TLS: config, DialTimeout: 10 * time.Second})
}

// older returns an object as the API server stores it, with all times moved back.
func older(o *unstructured.Unstructured, by time.Duration) ([]byte, error) {
	o = o.DeepCopy()
	o.SetResourceVersion("")
	o.SetManagedFields(nil)
	for _, field := range []string{"metadata", "status"} {
		if value, ok := o.Object[field]; ok {
			o.Object[field] = moved(value, by)
		}
	}
	return json.Marshal(o.Object)
}

// moved returns a value whose times are moved back.
func moved(value any, by time.Duration) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = moved(v[key], by)
		}
	case []any:
		for i := range v {
			v[i] = moved(v[i], by)
		}
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return at.Add(-by).UTC().Format(time.RFC3339)
		}
	}
	return value
}

// etcdKey is where the API server keeps an object.
func etcdKey(o *unstructured.Unstructured) string {
	kind := o.GroupVersionKind()
	plural := strings.TrimSuffix(strings.ToLower(kind.Kind), "s") + "s"
	if custom(kind) {
		plural = kind.Group + "/" + plural
	}
	return "/registry/" + plural + "/" + o.GetNamespace() + "/" + o.GetName()
}

// custom reports whether a CustomResourceDefinition defines a kind.
func custom(kind schema.GroupVersionKind) bool { return strings.Contains(kind.Group, ".") }
