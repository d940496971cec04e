// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster implements storage.Interface of k8s.io/apiserver on the cluster's own API, so that an aggregated API server needs no
// separate etcd.
//
// Each served resource has a host resource, which is a custom resource of the group internal.gc.winnow.dev. Each object is stored in one
// host object of the same namespace and name. Its payload is the encoded object with all metadata, except that the resourceVersion is the
// host object's. So the cluster provides consistent reads, paging, optimistic concurrency, watches and their history, and a backup of the
// cluster contains the objects. The host applies label selectors, because labels are copied to the host object. This package applies other
// selectors. Any number of servers may serve the same objects: the only state of a server is a memory of its last writes. An update that
// follows one of these writes needs only one request, and the cluster refuses it if somebody else has written in the meantime; see
// lastWrites.
//
// Host objects have neither the finalizers nor the owners of the objects that they store. So when a namespace is deleted, its objects are
// deleted too, in spite of their finalizers. Objects that are stored here should not be allowed to have any.
//
// An object whose payload cannot be decoded is served with the metadata of its host object, and with a mark, so that it can be deleted and
// nobody mistakes it for complete. If the store has no mark, each list that contains the object fails, as it does with etcd. The message
// names the object.
//
// Each host resource also has a Barrier, a host object without a served object that no request shows. After a server has written it and
// seen this write on a watch, the watch has reported all earlier writes.
//
// Lists and watches by clients are answered from the watch cache of k8s.io/apiserver over such a store. Where it would ask an etcd for the
// progress of its watch, a Barrier is written. What Winnow decides by is read from the store itself; see cachedStore.
//
// When the cluster goes back in time, because its etcd was restored, all watches end and the watch cache is filled anew; see package
// cached.
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
//     key. There are none here, because encryption at rest is up to the cluster. TestUndecodable covers the rest.
//   - RunTestCompactRevision: compaction is up to the cluster, and cannot be observed through its API.
//   - RunTestWatchFromZero: it expects a watch from before a compaction to fail, but the cluster
//     continues to serve it from its watch cache. TestWatchFromZero covers the rest.
//   - RunOptionalTestProgressNotify, RunTestOptionalWatchBookmarksWithCorrectResourceVersion: both want a
//     bookmark within seconds. Bookmarks are passed on when the cluster sends them, about once a minute.
package cluster
