// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// AuditEvent is one request as the API server has answered it. Deletes carry their body, see DeleteOptions.
type AuditEvent = auditv1.Event

// AuditFilter chooses events; nil chooses all.
type AuditFilter func(*AuditEvent) bool

// Audit returns all events so far that the filter chooses, in the order of their answers. The API server writes an
// event right after its answer: poll for what must come.
func (c *Cluster) Audit(filter AuditFilter) ([]AuditEvent, error) {
	return c.AuditTail(filter).Next()
}

// AuditTail reads the audit log step by step, from its beginning.
func (c *Cluster) AuditTail(filter AuditFilter) *AuditTail {
	return &AuditTail{file: c.AuditLog(), filter: filter}
}

// AuditTail remembers how far the log has been read.
type AuditTail struct {
	file   string
	filter AuditFilter
	offset int64
}

// Next returns the chosen events since the last call.
func (t *AuditTail) Next() ([]AuditEvent, error) {
	file, err := os.Open(t.file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.NewSectionReader(file, t.offset, 1<<62))
	if err != nil {
		return nil, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1] // the last line may be in the making
	var events []AuditEvent
	for line := range bytes.Lines(data) {
		var event AuditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("%s: line %q: %w", t.file, line, err)
		}
		if t.filter == nil || t.filter(&event) {
			events = append(events, event)
		}
	}
	t.offset += int64(len(data))
	return events, nil
}

// DeletesBy chooses DELETE requests, dry runs included, whose User-Agent begins with this; "" is everybody's.
func DeletesBy(userAgent string) AuditFilter {
	return func(e *AuditEvent) bool { return e.Verb == "delete" && strings.HasPrefix(e.UserAgent, userAgent) }
}

// DeleteOptions is the body of a DELETE request.
func DeleteOptions(e *AuditEvent) (metav1.DeleteOptions, error) {
	var options metav1.DeleteOptions
	if e.RequestObject == nil {
		return options, nil
	}
	if err := json.Unmarshal(e.RequestObject.Raw, &options); err != nil {
		return options, fmt.Errorf("audit event %s: delete options %s: %w", e.AuditID, e.RequestObject.Raw, err)
	}
	return options, nil
}
