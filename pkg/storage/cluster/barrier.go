// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// barrierName is the name of every Barrier. No served object can have this name, in any namespace.
	barrierName = "barrier.internal.gc.winnow.dev"
	// replacesAnnotation holds the resourceVersion that a write of a Barrier replaces. It makes each write differ from the one before:
	// the cluster does not write what is the same, and answers with the resourceVersion of before.
	replacesAnnotation    = "internal.gc.winnow.dev/replaces"
	descriptionAnnotation = "kubernetes.io/description"
	barrierDescription    = "This is not a policy. While objects are due, and when policies are listed, Winnow updates this object to check " +
		"that its watch of policies is up to date. Winnow creates it again when you delete it."

	// barrierAttempts bounds how often a write is repeated because somebody else wrote or deleted the Barrier in between.
	barrierAttempts = 3
)

// Barrier is a host object that holds no served object. The cluster orders all writes of a resource, and a watch of the whole resource
// reports them in this order. So whoever has seen the resourceVersion of a write of the Barrier on such a watch has seen every write that
// was acknowledged before the write of the Barrier began.
//
// Served requests never show a Barrier. In its place, a watch by this server itself, or by its watch cache, gets a bookmark at once; all
// others get only a bookmark from time to time, so that two writes a second do not wake every informer.
type Barrier struct {
	table table
	at    location

	lock sync.Mutex // held during a write
	// version is the resourceVersion of the last write, empty when it is not known or when there is no such object.
	version string
}

// Barrier returns the Barrier of a served resource, whose objects are of this kind. All who ask share it, so that they do not conflict.
func (h *Host) Barrier(served schema.GroupResource, kind string, namespaced bool) *Barrier {
	b, _ := h.shared.LoadOrStore(served, &Barrier{table: tableOf(h, served, kind), at: h.barrierOf(namespaced)})
	return b.(*Barrier)
}

// barrierOf returns the location of the Barrier of a resource.
func (h *Host) barrierOf(namespaced bool) location {
	at := location{name: barrierName}
	if namespaced {
		at.namespace = h.barriers
	}
	return at
}

// Write writes the Barrier, and creates it if need be. It returns the resourceVersion of this write.
func (b *Barrier) Write(ctx context.Context) (string, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	version, err := b.replace(ctx)
	for i := 1; i < barrierAttempts && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)); i++ {
		if err = b.read(ctx); err == nil {
			version, err = b.replace(ctx)
		}
	}
	if err != nil {
		return "", err
	}
	if version == b.version {
		return "", fmt.Errorf("%s %q is still at resourceVersion %s after a write", b.table.resource, barrierName, version)
	}
	b.version = version
	return version, nil
}

// replace replaces the last known version, or creates the Barrier.
func (b *Barrier) replace(ctx context.Context) (string, error) {
	body, err := json.Marshal(&storedObject{
		TypeMeta: metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: b.table.kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       b.at.namespace,
			Name:            b.at.name,
			ResourceVersion: b.version,
			Annotations:     map[string]string{descriptionAnnotation: barrierDescription, replacesAnnotation: b.version},
		},
	})
	if err != nil {
		return "", err
	}
	put := b.table.update
	if b.version == "" {
		put = b.table.create
	}
	answer, err := put(ctx, b.at, body)
	return answer.ResourceVersion, err
}

// read reads the version to be replaced.
func (b *Barrier) read(ctx context.Context) error {
	stored, err := b.table.get(ctx, b.at, "")
	b.version = stored.ResourceVersion
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// isBarrier reports whether a host object is a Barrier, which holds no served object.
func isBarrier(stored storedObject) bool { return stored.Name == barrierName }
