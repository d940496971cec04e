// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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
	// UIDAnnotation mirrors metadata.uid of the payload on the host object, which has one of its own.
	UIDAnnotation = "internal.gc.winnow.dev/uid"
	// GenerationAnnotation mirrors metadata.generation of the payload on the host object.
	GenerationAnnotation = "internal.gc.winnow.dev/generation"
	// HostGenerationAnnotation holds metadata.generation of the host object itself as this write makes it. Where the two differ,
	// somebody else has written the payload, and the other annotations may say what was before.
	HostGenerationAnnotation = "internal.gc.winnow.dev/host-generation"
	// DigestAnnotation holds the Digest of the payload. A write of the status alone leaves it as it is,
	// while the host's resourceVersion moves.
	DigestAnnotation = "internal.gc.winnow.dev/digest"

	// maxStoredBytes caps a host object as it is sent. etcd takes 1.5 MiB at its defaults, and the
	// cluster adds managed fields to what it is sent.
	maxStoredBytes = 1 << 20
)

// Digest returns 32 hexadecimal digits that change when spec or metadata.annotations of the object
// do, and with nothing else. Encoded is the object in its served version as JSON; the order of fields
// and white space do not count, so that any party that holds the object gets the same answer.
// Of anything but JSON every byte counts.
func Digest(encoded []byte) string {
	decided := encoded
	if canonical, err := canonicalDecision(encoded); err == nil {
		decided = canonical
	}
	sum := sha256.Sum256(decided)
	return hex.EncodeToString(sum[:16])
}

// canonicalDecision is what users decide in an object: encoding/json sorts the keys of maps.
func canonicalDecision(encoded []byte) ([]byte, error) {
	var object struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec any `json:"spec"`
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	return json.Marshal([]any{object.Metadata.Annotations, object.Spec})
}

// encode returns the payload of object. It clears resourceVersion and selfLink, which are the host's.
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
	generation := "" // of what a caller suggests to replace it is not known
	if current.ResourceVersion == "" || current.Generation > 0 {
		generation = strconv.FormatInt(current.Generation+1, 10)
	}
	body, err := json.Marshal(&storedObject{
		TypeMeta: metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: s.table.kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       at.namespace,
			Name:            at.name,
			ResourceVersion: current.ResourceVersion,
			Labels:          accessor.GetLabels(),
			Annotations: map[string]string{
				UIDAnnotation:            string(accessor.GetUID()),
				GenerationAnnotation:     strconv.FormatInt(accessor.GetGeneration(), 10),
				HostGenerationAnnotation: generation,
				DigestAnnotation:         Digest([]byte(payload)),
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
	err = s.decodePayload(stored, revision, out)
	switch {
	case err == nil:
		return nil
	case s.mark != nil:
		return s.decodeMetadata(stored, out, err)
	}
	return storage.NewInternalError(&undecodableError{
		message: fmt.Sprintf("stored %s %q cannot be decoded, delete it and write it anew: %v", s.groupResource, namespacedName(stored), err),
		err:     storage.NewCorruptObjError(key, err),
	})
}

// decodePayload refuses a payload that was written for another place: whoever copied it there may have no rights where it
// says that it belongs.
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

// decodeMetadata fills out with what the host object itself says.
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
	accessor.SetUID(types.UID(stored.Annotations[UIDAnnotation]))
	if generation, err := strconv.ParseInt(stored.Annotations[GenerationAnnotation], 10, 64); err == nil {
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

// undecodableError reads as a plain sentence, and is a corrupt object to storage.IsCorruptObject.
type undecodableError struct {
	message string
	err     error
}

func (e *undecodableError) Error() string { return e.message }
func (e *undecodableError) Unwrap() error { return e.err }
