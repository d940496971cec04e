// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logonce logs the errors of something that is tried again and again.
package logonce

import (
	"context"

	"k8s.io/klog/v2"
)

// Errors remembers the last error. Its zero value is ready for use, by one goroutine at a time.
type Errors struct{ last string }

// Log logs an error unless the last one was the same. A nil error forgets the last one. What fails because ctx has ended is not logged.
func (e *Errors) Log(ctx context.Context, err error, message string, keysAndValues ...any) {
	text := ""
	if err != nil && ctx.Err() == nil {
		text = err.Error()
	}
	if text != "" && text != e.last {
		klog.FromContext(ctx).WithCallDepth(1).Error(err, message, keysAndValues...)
	}
	e.last = text
}
