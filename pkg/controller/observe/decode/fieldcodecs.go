// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// fieldCodecs decode some fields of the objects of one kind, which the API server sends in protobuf, or in JSON, and skip the others.
type fieldCodecs struct{ partialCodecs }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c fieldCodecs) SupportedMediaTypes() []runtime.SerializerInfo {
	all := c.partialCodecs.SupportedMediaTypes()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if ok {
		info.Serializer = fieldDecoder{info.Serializer, c.decoder.reading}
		all = append(all, withEvents(info))
	}
	return all
}

// fieldDecoder decodes lists of one kind from protobuf, and leaves single objects encoded; see Encoded. Everything else, such as a Status,
// is decoded whole.
type fieldDecoder struct {
	runtime.Serializer
	reading Reading
}

// Decode implements runtime.Decoder.
func (d fieldDecoder) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	kind, raw, err := unwrap(data)
	name, isList := strings.CutSuffix(kind.Kind, "List")
	if kind.Kind = name; err != nil || kind != d.reading.Kind.GroupVersionKind {
		return d.Serializer.Decode(data, defaults, into)
	}
	decode := d.reading.fields.encoded
	if isList {
		decode = d.reading.fields.objects
	}
	object, err := decode(raw)
	return object, &kind, err
}
