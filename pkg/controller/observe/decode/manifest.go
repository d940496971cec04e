// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Manifest decodes an object in JSON, as it would be decoded if the API server had sent it.
func (r Reading) Manifest(data []byte) (runtime.Object, error) {
	if r.content != wholeObject {
		m := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(data, m); err != nil || r.Bare() {
			return m, err
		}
		m.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
		var err error
		if data, err = json.Marshal(m); err != nil {
			return nil, err
		}
	}
	codecs, _ := r.Codecs("PartialObjectMetadata")
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, fmt.Errorf("%s cannot be read from JSON", r.Kind.Resource)
	}
	object, _, err := info.Serializer.Decode(data, nil, nil)
	return object, err
}
