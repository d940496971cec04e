// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// rememberedMost and rememberedBytes bound the memory that the last writes take: the number of objects, and the payload of each.
	// The controller writes ten statuses a second, so rememberedMost covers rememberedFor.
	rememberedMost  = 1024
	rememberedBytes = 16 << 10
	// rememberedFor is how long the last write of an object is remembered. A resourceVersion identifies a state for as long as the cluster
	// exists, but not across a restore of its etcd, which takes longer than this.
	rememberedFor = time.Minute
)

// lastWrites remembers what this process wrote last, by key. An update starts from there instead of reading the object first, as an
// update in kube-apiserver starts from its watch cache. It is only a suggestion: the update carries the resourceVersion of that write,
// so the cluster refuses it if anybody has written since, and then the object is read.
type lastWrites struct {
	cache *cache.LRUExpireCache
}

func newLastWrites() lastWrites { return lastWrites{cache.NewLRUExpireCache(rememberedMost)} }

// add remembers a write that the cluster has answered with this metadata.
func (l lastWrites) add(key, payload string, answer *metav1.ObjectMeta) {
	if len(payload) > rememberedBytes {
		l.remove(key)
		return
	}
	l.cache.Add(key, &storedObject{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: answer.Namespace, Name: answer.Name, ResourceVersion: answer.ResourceVersion,
		},
		Payload: payload,
	}, rememberedFor)
}

func (l lastWrites) remove(key string) { l.cache.Remove(key) }

// get returns nil when nothing is remembered.
func (l lastWrites) get(key string) *storedObject {
	if last, ok := l.cache.Get(key); ok {
		return last.(*storedObject)
	}
	return nil
}
