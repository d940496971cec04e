// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// partialCodecs decode the objects of one kind from JSON, which is what the API server has for custom resources, with Partial.
type partialCodecs struct {
	runtime.NegotiatedSerializer
	decoder partialDecoder
}

// newPartialCodecs returns the codecs of a kind.
func newPartialCodecs(r Reading) partialCodecs {
	return partialCodecs{
		NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		decoder:              partialDecoder{reading: r, partial: NewPartial(r.Kind.Fields)},
	}
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c partialCodecs) SupportedMediaTypes() []runtime.SerializerInfo {
	for _, info := range c.NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON {
			c.decoder.Serializer = info.Serializer
			info.Serializer = c.decoder
			return []runtime.SerializerInfo{withEvents(info)}
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
	reading Reading
	partial *Partial // of what is read in namespaces without match conditions
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
	conditions := d.reading.present()
	switch name, isList := strings.CutSuffix(kind.Kind, "List"); {
	case d.reading.reads(kind.GroupKind()):
		object, err := d.decode(data, object, conditions)
		return object, &kind, err
	case isList && d.reading.reads(schema.GroupKind{Group: kind.Group, Kind: name}):
		list, err := d.decodeList(data, conditions)
		return list, &kind, err
	}
	return d.Serializer.Decode(data, defaults, into)
}

// decode returns an object, which is decoded again if there are match conditions to evaluate for it.
func (d partialDecoder) decode(
	data []byte, object *unstructured.Unstructured, conditions map[string]*lifecycle.Conditions,
) (runtime.Object, error) {
	c := d.reading.conditionsOf(object.GetNamespace(), conditions)
	if c == nil {
		return object, nil
	}
	object, err := NewPartial(d.reading.Kind.Fields, c.Fields()).Decode(data)
	if err != nil {
		return nil, err
	}
	return d.reading.evaluate(object, conditions, len(data))
}

// decodeList decodes a list. Where any namespace has match conditions, what they read is decoded for all objects.
func (d partialDecoder) decodeList(data []byte, conditions map[string]*lifecycle.Conditions) (runtime.Object, error) {
	partial, fields := d.partial, [][][]string{d.reading.Kind.Fields}
	for namespace := range conditions {
		if c := d.reading.conditionsOf(namespace, conditions); c != nil {
			fields = append(fields, c.Fields())
		}
	}
	if len(fields) > 1 {
		partial = NewPartial(fields...)
	}
	list, err := partial.DecodeList(data)
	if err != nil {
		return nil, err
	}
	return d.reading.evaluate(list, conditions, len(data))
}

// Encode implements runtime.Encoder.
func (d partialDecoder) Encode(object runtime.Object, w io.Writer) error {
	return d.Serializer.Encode(object, w)
}
