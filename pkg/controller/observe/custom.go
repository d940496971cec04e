// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/winnow-dev/winnow/pkg/controller/kinds"
)

// partialCodecs decode the objects of one kind from JSON, which is what the API server has for custom resources, with Partial.
type partialCodecs struct {
	runtime.NegotiatedSerializer
	decoder partialDecoder
}

// newPartialCodecs returns the codecs of a kind.
func newPartialCodecs(k *kinds.Kind) runtime.NegotiatedSerializer {
	return partialCodecs{
		NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		decoder:              partialDecoder{kind: k.GroupVersionKind, partial: NewPartial(k.Fields)},
	}
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c partialCodecs) SupportedMediaTypes() []runtime.SerializerInfo {
	for _, info := range c.NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON {
			c.decoder.Serializer = info.Serializer
			info.Serializer = c.decoder
			return []runtime.SerializerInfo{info}
		}
	}
	return nil
}

// DecoderToVersion implements runtime.NegotiatedSerializer. There is one version.
func (c partialCodecs) DecoderToVersion(decoder runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return decoder
}

// partialDecoder decodes objects and lists of one kind with Partial. Everything else, such as a Status, is decoded whole.
type partialDecoder struct {
	runtime.Serializer
	kind    schema.GroupVersionKind
	partial *Partial
}

// Decode implements runtime.Decoder.
func (d partialDecoder) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	object, err := d.partial.Decode(data)
	if err != nil {
		return nil, nil, err
	}
	kind := object.GroupVersionKind()
	switch name, isList := strings.CutSuffix(kind.Kind, "List"); {
	case kind.GroupKind() == d.kind.GroupKind():
		return object, &kind, nil
	case isList && kind.Group == d.kind.Group && name == d.kind.Kind:
		list, err := d.partial.DecodeList(data)
		return list, &kind, err
	}
	return d.Serializer.Decode(data, defaults, into)
}

// Encode implements runtime.Encoder.
func (d partialDecoder) Encode(object runtime.Object, w io.Writer) error {
	return d.Serializer.Encode(object, w)
}
