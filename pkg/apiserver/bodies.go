// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/manifest"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// bodyMost is the size of the largest body that is checked. The generic server accepts no larger ones.
const bodyMost = 3 << 20

// withReadableErrors refuses requests whose body has a value of a wrong type or, with strict field validation, an unknown field. The
// decoders of the generic server would refuse these too, but they name Go types, report one error at a time, and dump the whole object for
// a patch. All other requests are passed to next unchanged.
func withReadableErrors(next http.Handler) http.Handler {
	kinds := kindsByResource()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := genericapirequest.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || info.APIGroup != gc.GroupName || info.APIVersion != v1alpha1.SchemeGroupVersion.Version ||
			r.Body == nil {
			next.ServeHTTP(w, r)
			return
		}
		kind, served := kinds[info.Resource]
		if !served || r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch {
			next.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(io.LimitReader(r.Body, bodyMost)) // The next reader gets the same error.
		r.Body = restoredBody{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
		if err := checkBody(body, kind, info.Name, r); err != nil {
			responsewriters.ErrorNegotiated(err, negotiatedSerializer{Codecs}, v1alpha1.SchemeGroupVersion, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// restoredBody returns what was read already again, and closes the original body.
type restoredBody struct {
	io.Reader
	io.Closer
}

// kindsByResource returns the kinds of the served version.
func kindsByResource() map[string]schema.GroupVersionKind {
	out := map[string]schema.GroupVersionKind{}
	for name := range Scheme.KnownTypes(v1alpha1.SchemeGroupVersion) {
		kind := v1alpha1.SchemeGroupVersion.WithKind(name)
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		out[resource.Resource] = kind
	}
	return out
}

// checkBody returns the error about the body. It returns nil for a body that is no object, because the errors of the decoders say more.
func checkBody(body []byte, kind schema.GroupVersionKind, name string, r *http.Request) error {
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	content, err := decodeBody(body, mediaType)
	if err != nil {
		return nil
	}
	c := manifest.Checker{Directives: mediaType == string(types.StrategicMergePatchType)}
	of := Scheme.KnownTypes(kind.GroupVersion())[kind.Kind]
	switch content := content.(type) {
	case map[string]any:
		c.Object(content, of)
		if metadata, ok := content["metadata"].(map[string]any); ok && name == "" {
			name, _ = metadata["name"].(string)
		}
	case []any:
		c.Patch(content, of)
	}
	if isStrict(kind, r) && len(c.Unknown) > 0 {
		errs := c.Refusals(r.Context(), Scheme, kind, wholeObject(content, r))
		return apierrors.NewBadRequest(fmt.Sprintf("%s %q cannot be written: %v", kind.Kind, name, runtime.NewStrictDecodingError(errs)))
	}
	if len(c.Wrong) > 0 {
		return apierrors.NewInvalid(kind.GroupKind(), name, c.Wrong)
	}
	return nil
}

// wholeObject returns the content of a body that has all of an object; nil for a patch.
func wholeObject(content any, r *http.Request) map[string]any {
	if r.Method == http.MethodPatch {
		return nil
	}
	object, _ := content.(map[string]any)
	return object
}

// isStrict reports whether unknown fields are errors. In a review they always are: nothing is lost by an error, and many users can create
// one only with the flag --validate=false, since kubectl looks for a PATCH of the kind, finds none, and wants to list CRDs.
func isStrict(kind schema.GroupVersionKind, r *http.Request) bool {
	return strings.HasSuffix(kind.Kind, "CleanupReview") || r.URL.Query().Get("fieldValidation") == metav1.FieldValidationStrict
}

// decodeBody decodes a body without types.
func decodeBody(body []byte, mediaType string) (content any, err error) {
	if strings.HasSuffix(mediaType, "yaml") {
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, err
		}
	}
	return manifest.Decode(body)
}
