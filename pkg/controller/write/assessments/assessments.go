// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assessments stores which objects are held, and which changes of people have been assessed, in the cluster's own API; see
// artifacts/storage. It knows nothing of what the objects contain.
package assessments

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
)

// Resource holds the assessments. Each object is one assessment.Object.
var Resource = schema.GroupVersionResource{Group: "internal.gc.winnow.dev", Version: "v1alpha1", Resource: "assessments"}

const kind = "Assessment"

// format says which versions of Winnow can read an object.
type format struct {
	Format int `json:"format"`
}

func encode(o *assessment.Object) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(&struct {
		format
		*assessment.Object
	}{format{assessment.Format}, o})
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", title(o.Name), err)
	}
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(body, &object.Object); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", title(o.Name), err)
	}
	object.SetGroupVersionKind(Resource.GroupVersion().WithKind(kind))
	object.SetName(o.Name)
	object.SetResourceVersion(o.ResourceVersion)
	return object, nil
}

// Decode returns what an object stores. If decoding fails, it returns only the name and the version, and the error says why.
func Decode(object *unstructured.Unstructured) (*assessment.Object, error) {
	named := assessment.Object{Name: object.GetName(), ResourceVersion: object.GetResourceVersion()}
	out := named
	if err := decode(object, &out); err != nil {
		return &named, fmt.Errorf("%s cannot be read: %w", title(named.Name), err)
	}
	return &out, nil
}

func decode(object *unstructured.Unstructured, out *assessment.Object) error {
	body, err := json.Marshal(object.Object)
	if err != nil {
		return err
	}
	var written format // first, because the fields of another format may have other types
	if err := json.Unmarshal(body, &written); err != nil {
		return err
	}
	switch {
	case written.Format < 1:
		return errors.New("it has no format")
	case written.Format > assessment.Format:
		return fmt.Errorf("it has format %d, and this version of Winnow knows formats up to %d only: a newer version has written it",
			written.Format, assessment.Format)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return err
	}
	return out.Validate()
}

func title(name string) string { return fmt.Sprintf("Assessment %q", name) }
