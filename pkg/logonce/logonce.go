// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logonce logs the errors of something that is tried again and again.
package logonce

import (
	"context"
	"regexp"

	"k8s.io/klog/v2"
)

// Errors remembers the last error. Its zero value is ready for use, by one goroutine at a time.
type Errors struct{ last string }

// ownAddress is the address of this host in an error of a connection, such as "read tcp 10.0.0.1:50312->10.0.0.2:443". Its port is another
// one each time.
var ownAddress = regexp.MustCompile(`\S+->`)

// Log logs an error unless the last one was the same, whatever the port of this host was. A nil error forgets the last one. What fails
// because ctx has ended is not logged.
func (e *Errors) Log(ctx context.Context, err error, message string, keysAndValues ...any) {
	text := ""
	if err != nil && ctx.Err() == nil {
		text = ownAddress.ReplaceAllString(err.Error(), "")
	}
	if text != "" && text != e.last {
		klog.FromContext(ctx).WithCallDepth(1).Error(err, message, keysAndValues...)
	}
	e.last = text
}
