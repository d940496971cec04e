// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// strictCodecs are Codecs that refuse unknown fields.
var strictCodecs = serializer.NewCodecFactory(Scheme, serializer.EnableStrict)

// StorageCodec encodes and decodes stored policies. A policy that a newer version wrote, or that somebody damaged, must not make a whole
// list fail, and its unknown fields must not be ignored. So it is decoded as far as possible and marked; see gc.MarkUnreadable. It must not
// be overwritten. Unknown fields of the status are dropped: the controller writes the status anew, and a rollback must not stop all
// deletions.
func StorageCodec() runtime.Codec {
	version := v1alpha1.SchemeGroupVersion
	return &storageCodec{Codec: strictCodecs.LegacyCodec(version), lenient: Codecs.LegacyCodec(version)}
}

type storageCodec struct {
	runtime.Codec
	lenient runtime.Decoder
}

// Decode implements runtime.Decoder.
func (c *storageCodec) Decode(
	data []byte,
	defaults *schema.GroupVersionKind,
	into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, failure := c.Codec.Decode(data, defaults, into)
	if failure == nil {
		return object, kind, nil
	}
	newerStatus := runtime.IsStrictDecodingError(failure) && c.understoodWithoutStatus(data, defaults)
	readable := data
	if !newerStatus {
		var err error
		if readable, err = c.readable(data, defaults); err != nil {
			return nil, kind, failure
		}
	}
	if into != nil {
		if err := runtime.SetZeroValue(into); err != nil {
			return nil, kind, err
		}
	}
	object, kind, err := c.lenient.Decode(readable, defaults, into)
	if err != nil {
		return nil, kind, failure
	}
	if !newerStatus {
		gc.MarkUnreadable(object, failure)
	}
	return object, kind, nil
}

// understoodWithoutStatus reports whether an encoded object has no unknown fields outside its status.
func (c *storageCodec) understoodWithoutStatus(data []byte, defaults *schema.GroupVersionKind) bool {
	var whole map[string]json.RawMessage
	if json.Unmarshal(data, &whole) != nil {
		return false
	}
	delete(whole, "status")
	rest, err := json.Marshal(whole)
	if err == nil {
		_, _, err = c.Codec.Decode(rest, defaults, nil)
	}
	return err == nil
}

// readable returns the part of an encoded object that can be decoded: its metadata, and each field of its spec and status that can be
// decoded by itself. If the version is unknown, it drops spec and status, because their fields may mean anything.
func (c *storageCodec) readable(data []byte, defaults *schema.GroupVersionKind) ([]byte, error) {
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, err
	}
	parts := map[string]any{"kind": whole["kind"], "apiVersion": whole["apiVersion"], "metadata": whole["metadata"]}
	decodes := func() bool {
		encoded, err := json.Marshal(parts)
		if err == nil {
			_, _, err = c.lenient.Decode(encoded, defaults, nil)
		}
		return err == nil
	}
	if !decodes() {
		parts["apiVersion"] = v1alpha1.SchemeGroupVersion.String()
		return json.Marshal(parts)
	}
	for _, section := range []string{"spec", "status"} {
		var fields map[string]json.RawMessage
		if json.Unmarshal(whole[section], &fields) != nil {
			continue
		}
		kept := map[string]json.RawMessage{}
		parts[section] = kept
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if kept[name] = fields[name]; !decodes() {
				delete(kept, name)
			}
		}
	}
	return json.Marshal(parts)
}
