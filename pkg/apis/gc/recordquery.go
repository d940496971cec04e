// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/humantime"
)

// FieldSince selects the records of deletions at or after a time, in the format of RFC 3339.
const FieldSince = "since"

// RecordFields are the field selectors of records, besides metadata.name and metadata.namespace. FieldObject also takes a name without a
// resource.
var RecordFields = []string{FieldObject, FieldPolicy, FieldResource, FieldSince}

// SelectsGone reports whether a field selector selects the record or copy of an object that is gone. FieldObject may be a name without a
// resource, and value returns the values of fields other than FieldObject and FieldResource. FieldSince selects by time; see RecordQuery.
func SelectsGone(selector fields.Selector, resource, name string, value func(field string) string) bool {
	for _, r := range selector.Requirements() {
		var is string
		switch r.Field {
		case FieldSince:
			continue
		case FieldObject:
			if is = name; strings.Contains(r.Value, "/") {
				is = resource + "/" + name
			}
		case FieldResource:
			is = resource
		default:
			is = value(r.Field)
		}
		if (is == r.Value) == (r.Operator == selection.NotEquals) {
			return false
		}
	}
	return true
}

// +k8s:deepcopy-gen=false

// RecordQuery says which records to return. It is never served.
type RecordQuery struct {
	// Namespace is empty for all namespaces.
	Namespace string
	// MayList reports whether the caller may see the records of a resource. It is asked for every record that is read.
	MayList func(ctx context.Context, resource string) (bool, error)
	Fields  fields.Selector
	// Since is the value of FieldSince; zero for any time.
	Since time.Time
	// After is where the page before ended.
	After RecordPosition
	// Limit is how many to return at most.
	Limit int
}

// +k8s:deepcopy-gen=false

// RecordPosition is the place of a record in the order of lists: by namespace, then the newest first. It means the same on every replica.
type RecordPosition struct {
	Namespace string
	Time      time.Time
	UID       types.UID
}

// +k8s:deepcopy-gen=false

// RecordPage is a part of a list of records. It is never served.
type RecordPage struct {
	Items []CleanupRecord
	// Next is where the page ends, if more records may follow; nil otherwise. Without a time, it is the end of its namespace.
	Next *RecordPosition
	// Missing says which stored records are missing or cannot be read, as sentences.
	Missing []string
}

// Derive sets the fields that follow from others.
func (s *CleanupRecordStatus) Derive() {
	if s.DueTime == nil {
		s.Lateness = nil
		return
	}
	s.Lateness = &metav1.Duration{Duration: max(0, s.DeletionTime.Sub(s.DueTime.Time))}
}

// FormatLateness formats the lateness of a deletion; "-" if it is not known. Below a second it has milliseconds.
func FormatLateness(d *metav1.Duration) string {
	switch {
	case d == nil:
		return "-"
	case d.Duration < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return humantime.Duration(d.Duration)
}

// HiddenRecords says that a page leaves out records, because the caller lacks permissions.
func HiddenRecords(permissions string) string {
	return "hidden records: you may not list their resources: " + permissions
}
