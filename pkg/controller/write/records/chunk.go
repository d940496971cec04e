// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/controller/write/stored"
)

// Resource holds the records. Each object is a chunk: some records of its namespace.
var Resource = schema.GroupVersionResource{Group: "internal.gc.winnow.dev", Version: "v1alpha1", Resource: "recordchunks"}

const kind = "RecordChunk"

const (
	// fieldFormat says how fieldRecords is encoded.
	fieldFormat  = "format"
	fieldRecords = "records"
	// format: CleanupRecordStatus of v1alpha1 as a list in JSON, compressed with gzip, in base64.
	format = "v1alpha1+gzip"

	// These annotations let readers and the leader choose chunks by their metadata.
	annotationCount  = "internal.gc.winnow.dev/records"
	annotationOldest = "internal.gc.winnow.dev/oldest"
	annotationNewest = "internal.gc.winnow.dev/newest"

	// namePrefix precedes the number of a chunk. A chunk has a higher number than those that were written before it.
	namePrefix = "records-"
)

const (
	// maxEncoded is the size at which a chunk takes no more records. The API server accepts objects of 1.5 MB.
	maxEncoded = 256 << 10
	// maxDecoded and maxRecords are more than any chunk has that Winnow wrote.
	maxDecoded, maxRecords = 8 << 20, 1000
)

// chunk is what the metadata of a stored chunk says.
type chunk struct {
	namespace, name string
	resourceVersion string
	number          uint64
	count           int // 0 if it is not known
	// oldest and newest are the deletion times of its first and last record; zero if they are not known.
	oldest, newest time.Time
}

// describe reads the metadata of a chunk; what cannot be read is not known. It returns false if the object has another name than a chunk.
func describe(m metav1.Object) (c chunk, ok bool) {
	c = chunk{namespace: m.GetNamespace(), name: m.GetName(), resourceVersion: m.GetResourceVersion()}
	annotations := m.GetAnnotations()
	c.number, _ = strconv.ParseUint(strings.TrimPrefix(c.name, namePrefix), 10, 64)
	if c.name != nameOf(c.number) {
		return c, false
	}
	c.count, _ = strconv.Atoi(annotations[annotationCount])
	c.count = max(c.count, 0)
	c.oldest, _ = time.Parse(time.RFC3339Nano, annotations[annotationOldest])
	c.newest, _ = time.Parse(time.RFC3339Nano, annotations[annotationNewest])
	return c, true
}

func nameOf(number uint64) string { return fmt.Sprintf("%s%010d", namePrefix, number) }

// compareNumbers sorts chunks of a namespace in the order in which they were written.
func compareNumbers(a, b chunk) int { return cmp.Compare(a.number, b.number) }

// newChunk returns an object for records that is not stored yet.
func newChunk(namespace string, number uint64) *unstructured.Unstructured {
	return stored.NewObject(Resource, kind, namespace, nameOf(number))
}

// encode replaces the records of a chunk. There is at least one.
func encode(object *unstructured.Unstructured, all []record) error {
	var compressed bytes.Buffer
	zip := gzip.NewWriter(&compressed)
	if err := errors.Join(json.NewEncoder(zip).Encode(all), zip.Close()); err != nil {
		return err
	}
	object.Object[fieldFormat] = format
	object.Object[fieldRecords] = base64.StdEncoding.EncodeToString(compressed.Bytes())
	oldest, newest := all[0].DeletionTime, all[0].DeletionTime
	for i := range all {
		if at := &all[i].DeletionTime; at.Before(&oldest) {
			oldest = *at
		} else if newest.Before(at) {
			newest = *at
		}
	}
	object.SetAnnotations(map[string]string{
		annotationCount:  strconv.Itoa(len(all)),
		annotationOldest: oldest.UTC().Format(time.RFC3339Nano), annotationNewest: newest.UTC().Format(time.RFC3339Nano),
	})
	return nil
}

// decode returns the records of a chunk. If it fails, the error says which chunk cannot be read, and why.
func decode(object *unstructured.Unstructured) ([]record, error) {
	all, err := decodeRecords(object)
	if err != nil {
		return nil, fmt.Errorf("the stored records %s/%s cannot be read: %w", object.GetNamespace(), object.GetName(), err)
	}
	return all, nil
}

func decodeRecords(object *unstructured.Unstructured) ([]record, error) {
	if has, _ := object.Object[fieldFormat].(string); has != format {
		return nil, fmt.Errorf("their format is %q, and this version of Winnow reads %q; a newer version may have written them", has, format)
	}
	text, _ := object.Object[fieldRecords].(string)
	zip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(io.LimitReader(zip, maxDecoded))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('[') {
		return nil, cmp.Or(err, errors.New("they are not a list"))
	}
	var all []record
	for decoder.More() {
		if len(all) == maxRecords {
			return nil, fmt.Errorf("there are more than %d", maxRecords)
		}
		var r record
		if err := decoder.Decode(&r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	if _, err := decoder.Token(); err != nil { // The end of the list.
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) { // Only here is the checksum compared.
		return nil, cmp.Or(err, errors.New("something follows the list"))
	}
	return all, nil
}

// isFull reports whether a chunk that is stored takes no more records.
func isFull(object *unstructured.Unstructured, count, perChunk int) bool {
	text, _ := object.Object[fieldRecords].(string)
	return count >= perChunk || len(text) >= maxEncoded
}
