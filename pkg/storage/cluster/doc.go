// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster implements storage.Interface of k8s.io/apiserver on the cluster's own API, so that an
// aggregated API server needs no etcd of its own.
//
// Each served resource has a host resource, a custom resource of group internal.gc.winnow.dev. Each
// object is one host object of the same namespace and name, whose payload is the object as encoded,
// metadata included; only the resourceVersion is the host's. The cluster therefore gives consistent
// reads, paging, optimistic concurrency, watches and their history, and backs the objects up with
// everything else. Label selectors are left to it, since labels are copied to the host object; other
// selectors are applied here. Any number of servers may serve the same objects: the only state here is a
// memory of the last writes of this process. An update that follows one of them is a single request, and
// is refused by the cluster if somebody else has written since; see lastWrites.
//
// Host objects carry neither the finalizers nor the owners of the objects that they hold. A namespace
// that is deleted therefore takes its objects along, past their finalizers: what is stored here should
// refuse them.
//
// A payload that cannot be decoded is served by the metadata of its host object, and marked, so that it
// stands in nobody's way and nobody takes it for whole. Without a mark it fails every list that it is in,
// with its name in the message, as it does with etcd.
//
// Each host resource also has a Barrier, a host object that holds no object and that no request shows. Whoever writes it and then sees this
// write on a watch knows that the watch is up to date.
//
// # Conformance
//
// The tests run the entries of k8s.io/apiserver/pkg/storage/testing against a real kube-apiserver. Values
// are transformed by the test's codec. These nine entries of sixty cannot apply:
//
//   - RunTestCreateWithTTL, RunTestGuaranteedUpdateWithTTL: the cluster's API has no time to live, and
//     nothing that is served here asks for one.
//   - RunTestKeySchema: it stores objects at "/pods/", "/pods/name" and "/pods/namespace/name" side by
//     side. A host resource is namespaced or not, and has no object without a name. TestLocate covers
//     the keys that are refused.
//   - RunTestGetListWithErrorAggregation: it tests a wrapper inside of package etcd3.
//   - RunTestGetListWithoutErrorAggregation: it expects the text of an error of a value transformer by
//     key. There are none here, encryption at rest is the cluster's. TestUndecodable covers the rest.
//   - RunTestCompactRevision: compaction is the cluster's business and cannot be observed through its API.
//   - RunTestWatchFromZero: it expects a watch from before a compaction to fail, but the cluster goes on
//     to serve it from its watch cache. TestWatchFromZero covers the rest.
//   - RunOptionalTestProgressNotify, RunTestOptionalWatchBookmarksWithCorrectResourceVersion: both want a
//     bookmark within seconds. Bookmarks are passed on when the cluster sends them, about once a minute.
package cluster
