// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package copies stores copies of the objects that Winnow is about to delete, in the cluster's own API, and reads them; see
// artifacts/storage.
package copies

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	kept "github.com/winnow-dev/winnow/pkg/controller/write/stored"
)

// Resource holds the copies. Each object is the copy of one object of its namespace.
var Resource = schema.GroupVersionResource{Group: "internal.gc.winnow.dev", Version: "v1alpha1", Resource: "objectcopies"}

const kind = "ObjectCopy"

const (
	// fieldFormat says how fieldContent is encoded.
	fieldFormat  = "format"
	fieldContent = "content"
	// format: JSON, compressed with gzip, in base64.
	format = "json+gzip"

	// These annotations let readers and the leader choose copies by their metadata.
	annotationResource = "internal.gc.winnow.dev/resource"
	annotationName     = "internal.gc.winnow.dev/name"
	annotationUID      = "internal.gc.winnow.dev/uid"
	annotationVersion  = "internal.gc.winnow.dev/resource-version"
	annotationTime     = "internal.gc.winnow.dev/time"
	annotationUntil    = "internal.gc.winnow.dev/until"
	annotationBytes    = "internal.gc.winnow.dev/bytes"
	annotationRuns     = "internal.gc.winnow.dev/runs-again"
	// annotationNamespace is the UID of the namespace of the object. A namespace that is created again is another one.
	annotationNamespace = "internal.gc.winnow.dev/namespace-uid"
)

const (
	// maxCompressed is the size of a compressed copy at most. In base64 it fits into an object of the API server, which accepts 1.5 MB.
	maxCompressed = 512 << 10
	// maxContent is the size of an object at most, before it is compressed.
	maxContent = deletion.MostCopied
)

// entry is what the metadata of a stored copy says.
type entry struct {
	namespace, name string
	resourceVersion string
	object          gc.RecordObject
	namespaceUID    types.UID
	bytes           int64
	// at and until are zero if they are not known.
	at, until time.Time
	runsAgain bool
	// decided is when the object was decided on; it is not stored.
	decided time.Time
}

// describe reads the metadata of a copy. What cannot be read is not known.
func describe(m metav1.Object) entry {
	a := m.GetAnnotations()
	e := entry{
		namespace: m.GetNamespace(), name: m.GetName(), resourceVersion: m.GetResourceVersion(),
		object: gc.RecordObject{
			Resource: a[annotationResource], Name: a[annotationName], UID: types.UID(a[annotationUID]), ResourceVersion: a[annotationVersion],
		},
		namespaceUID: types.UID(a[annotationNamespace]),
		runsAgain:    a[annotationRuns] == "true",
	}
	e.bytes, _ = strconv.ParseInt(a[annotationBytes], 10, 64)
	e.bytes = max(e.bytes, 0)
	e.at, _ = time.Parse(time.RFC3339Nano, a[annotationTime])
	e.until, _ = time.Parse(time.RFC3339Nano, a[annotationUntil])
	return e
}

// expired reports whether a copy need not be kept any longer. If it is not known until when it must be kept, it stays.
func (e *entry) expired(now time.Time) bool { return !e.until.IsZero() && e.until.Before(now) }

// bare returns the object of a copy without its content.
func (e *entry) bare() *unstructured.Unstructured {
	object := kept.NewObject(Resource, kind, e.namespace, e.name)
	object.SetResourceVersion(e.resourceVersion)
	return object
}

// newObject returns a copy that is not stored yet.
func (e *entry) newObject(content string) *unstructured.Unstructured {
	object := e.bare()
	object.Object[fieldFormat], object.Object[fieldContent] = format, content
	object.SetAnnotations(map[string]string{
		annotationResource: e.object.Resource, annotationName: e.object.Name, annotationUID: string(e.object.UID),
		annotationVersion: e.object.ResourceVersion, annotationTime: e.at.UTC().Format(time.RFC3339Nano),
		annotationUntil: e.until.UTC().Format(time.RFC3339Nano), annotationBytes: strconv.FormatInt(e.bytes, 10),
		annotationRuns: strconv.FormatBool(e.runsAgain), annotationNamespace: string(e.namespaceUID),
	})
	return object
}

// nameOf returns the name of the copy of an object: its UID, or a hash of a UID that cannot be a name.
func nameOf(uid types.UID) string {
	if len(validation.IsDNS1123Label(string(uid))) == 0 {
		return string(uid)
	}
	sum := sha256.Sum256([]byte(uid))
	return "sha256-" + hex.EncodeToString(sum[:20])
}

// encode compresses an object. It fails with errTooLarge if there is too much of it.
func encode(object []byte) (string, error) {
	if len(object) > maxContent {
		return "", errTooLarge{bytes: len(object), most: maxContent}
	}
	var compressed bytes.Buffer
	zip := gzip.NewWriter(&compressed)
	_, err := zip.Write(object)
	if err := errors.Join(err, zip.Close()); err != nil {
		return "", err
	}
	if compressed.Len() > maxCompressed {
		return "", errTooLarge{bytes: compressed.Len(), most: maxCompressed, compressed: true}
	}
	return base64.StdEncoding.EncodeToString(compressed.Bytes()), nil
}

// errTooLarge says that an object is too large to be copied.
type errTooLarge struct {
	bytes, most int
	compressed  bool
}

func (e errTooLarge) Error() string {
	of := "it has"
	if e.compressed {
		of = "compressed, it has"
	}
	return fmt.Sprintf("%s %d bytes, and a copy may have %d; move it to a rule without keepCopy, or make it smaller", of, e.bytes, e.most)
}

// decode returns the content of a stored copy. If it fails, the error says which copy cannot be read, and why.
func decode(object *unstructured.Unstructured) (string, error) {
	content, err := decodeContent(object)
	if err != nil {
		return "", fmt.Errorf("the stored copy %s/%s cannot be read: %w", object.GetNamespace(), object.GetName(), err)
	}
	return content, nil
}

func decodeContent(object *unstructured.Unstructured) (string, error) {
	if has, _ := object.Object[fieldFormat].(string); has != format {
		return "", fmt.Errorf("its format is %q, and this version of Winnow reads %q; a newer version may have written it", has, format)
	}
	text, _ := object.Object[fieldContent].(string)
	zip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(io.LimitReader(zip, maxContent+1))
	switch {
	case err != nil:
		return "", err
	case len(content) > maxContent:
		return "", fmt.Errorf("it has more than %d bytes", maxContent)
	}
	return string(content), nil
}
