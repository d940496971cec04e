// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/winnow-dev/winnow/pkg/apis/gc/install"
	"github.com/winnow-dev/winnow/pkg/apis/gc/manifest"
)

var (
	// Scheme has all served kinds, and the options of requests.
	Scheme = runtime.NewScheme()
	// Codecs encode and decode the kinds of Scheme.
	Codecs = serializer.NewCodecFactory(Scheme)
	// ParameterCodec decodes the query parameters of requests.
	ParameterCodec = runtime.NewParameterCodec(Scheme)
)

func init() {
	install.Install(Scheme)

	// The generic server decodes request options and encodes Status and discovery in the group "", version v1.
	core := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(Scheme, core)
	Scheme.AddUnversionedTypes(core,
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
}

// negotiatedSerializer does not offer protobuf, because the served kinds have no protobuf encoding. Clients that prefer protobuf, such as
// the namespace controller, get JSON instead of an error.
type negotiatedSerializer struct{ serializer.CodecFactory }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s negotiatedSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.CodecFactory.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s negotiatedSerializer) DecoderToVersion(d runtime.Decoder, v runtime.GroupVersioner) runtime.Decoder {
	return renameDecoder{s.CodecFactory.DecoderToVersion(d, v)}
}

// renameDecoder adds the new name of a field to the error about an old one.
type renameDecoder struct{ runtime.Decoder }

// Decode implements runtime.Decoder.
func (d renameDecoder) Decode(
	data []byte,
	defaults *schema.GroupVersionKind,
	into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := d.Decoder.Decode(data, defaults, into)
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return obj, kind, err
	}
	errs := slices.Clone(strict.Errors())
	for i, err := range errs {
		var path string
		if _, scanErr := fmt.Sscanf(err.Error(), "unknown field %q", &path); scanErr == nil {
			if now := manifest.NewName(path); now != "" {
				errs[i] = fmt.Errorf("%w: it was renamed to %q", err, now)
			}
		}
	}
	return obj, kind, runtime.NewStrictDecodingError(errs)
}
