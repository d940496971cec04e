// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage"
)

const (
	// uidAnnotation mirrors metadata.uid of the payload on the host object, which has another UID.
	uidAnnotation = "internal.gc.winnow.dev/uid"
	// generationAnnotation mirrors metadata.generation of the payload on the host object.
	generationAnnotation = "internal.gc.winnow.dev/generation"

	// maxStoredBytes caps a host object as it is sent. etcd takes 1.5 MiB at its defaults, and the
	// cluster adds managed fields to what it is sent.
	maxStoredBytes = 1 << 20

	// payloadsInMean is of about how many payloads payloadBytes is the mean.
	payloadsInMean = 16
)

// encode returns the payload of object, without resourceVersion and selfLink, which the host sets.
func (s *store) encode(object runtime.Object) (string, error) {
	if err := s.versioner.PrepareObjectForStorage(object); err != nil {
		return "", fmt.Errorf("cannot prepare the object for storage: %w", err)
	}
	data, err := runtime.Encode(s.codec, object)
	return string(bytes.TrimSuffix(data, []byte("\n"))), err
}

// wrap returns the host object, encoded, that carries payload at this place. Current is what it replaces,
// without resourceVersion if there is none.
func (s *store) wrap(at target, current *storedObject, payload string, object runtime.Object) ([]byte, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(&storedObject{
		TypeMeta: metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: s.table.kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       at.namespace,
			Name:            at.name,
			ResourceVersion: current.ResourceVersion,
			Labels:          accessor.GetLabels(),
			Annotations: map[string]string{
				uidAnnotation:        string(accessor.GetUID()),
				generationAnnotation: strconv.FormatInt(accessor.GetGeneration(), 10),
			},
		},
		Payload: payload,
	})
	if err == nil && len(body) > maxStoredBytes {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"%s %q takes %d bytes when stored, at most %d are allowed: shorten it",
			s.groupResource, at.name, len(body), maxStoredBytes))
	}
	return body, err
}

// decode fills out from a host object.
func (s *store) decode(stored *storedObject, key string, out runtime.Object) error {
	revision, err := s.versioner.ParseResourceVersion(stored.ResourceVersion)
	if err != nil {
		return storage.NewInternalError(err)
	}
	about := cmp.Or(s.payloadBytes.Load(), int64(len(stored.Payload)))
	s.payloadBytes.Store(about + (int64(len(stored.Payload))-about)/payloadsInMean)
	err = s.decodePayload(stored, revision, out)
	switch {
	case err == nil:
		return nil
	case s.mark != nil:
		return s.decodeMetadata(stored, out, err)
	}
	return storage.NewInternalError(&undecodableError{
		message: fmt.Sprintf("stored %s %q cannot be decoded, delete it and create it again: %v", s.groupResource, namespacedName(stored), err),
		err:     storage.NewCorruptObjError(key, err),
	})
}

// decodePayload refuses a payload whose metadata names another namespace or name. Somebody may have copied it who has no permissions there.
func (s *store) decodePayload(stored *storedObject, revision uint64, out runtime.Object) error {
	if _, _, err := s.codec.Decode([]byte(stored.Payload), nil, out); err != nil {
		return err
	}
	accessor, err := meta.Accessor(out)
	if err != nil {
		return err
	}
	if s.checksPlace && (accessor.GetName() != stored.Name || accessor.GetNamespace() != stored.Namespace) {
		return fmt.Errorf("it says that it is %s", namespacedName(accessor))
	}
	return s.versioner.UpdateObject(out, revision)
}

// decodeMetadata fills out from the metadata of the host object.
func (s *store) decodeMetadata(stored *storedObject, out runtime.Object, why error) error {
	if err := runtime.SetZeroValue(out); err != nil {
		return err
	}
	accessor, err := meta.Accessor(out)
	if err != nil {
		return err
	}
	accessor.SetNamespace(stored.Namespace)
	accessor.SetName(stored.Name)
	accessor.SetLabels(stored.Labels)
	accessor.SetResourceVersion(stored.ResourceVersion)
	accessor.SetCreationTimestamp(stored.CreationTimestamp)
	accessor.SetUID(types.UID(stored.Annotations[uidAnnotation]))
	if generation, err := strconv.ParseInt(stored.Annotations[generationAnnotation], 10, 64); err == nil {
		accessor.SetGeneration(generation)
	}
	s.mark(out, why)
	return nil
}

func namespacedName(object metav1.Object) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}

// undecodableError has a readable message, and is a corrupt object for storage.IsCorruptObject.
type undecodableError struct {
	message string
	err     error
}

func (e *undecodableError) Error() string { return e.message }
func (e *undecodableError) Unwrap() error { return e.err }
