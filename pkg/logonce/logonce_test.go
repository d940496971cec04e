// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package logonce

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

func TestLog(t *testing.T) {
	var log strings.Builder
	ctx, end := context.WithCancel(
		klog.NewContext(context.Background(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))))
	var errs Errors
	down, forbidden := errors.New("down"), errors.New("forbidden")
	reset := func(port string) error {
		return fmt.Errorf("get: %w", errors.New("read tcp [::1]:"+port+"->10.0.0.2:443: connection reset by peer"))
	}
	for _, step := range []struct {
		err  error
		want int // lines so far
	}{{down, 1}, {down, 1}, {forbidden, 2}, {down, 3}, {nil, 3}, {down, 4}, {reset("50312"), 5}, {reset("50313"), 5}} {
		if errs.Log(ctx, step.err, "Trying again", "name", "x"); strings.Count(log.String(), "\n") != step.want {
			t.Errorf("after %v, the log is\n%s", step.err, &log)
		}
	}
	if line, _, _ := strings.Cut(log.String(), "\n"); !strings.Contains(line, `logonce_test.go`) || !strings.Contains(line, `"Trying again" err="down" name="x"`) {
		t.Errorf("logged %s", line)
	}
	end()
	if errs.Log(ctx, forbidden, "Trying again"); strings.Contains(log.String()[strings.LastIndex(log.String(), "down"):], "forbidden") {
		t.Error("logged what failed because of the end")
	}
}
