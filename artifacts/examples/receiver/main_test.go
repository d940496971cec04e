// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"log"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// TestReceive: the example on docs/notifications.md accepts what Winnow sends, and nothing without the token.
func TestReceive(t *testing.T) {
	t.Setenv("TOKEN", "secret")
	var printed bytes.Buffer
	log.SetOutput(&printed)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for name, c := range map[string]struct {
		token, body string
		want        int
		prints      string
	}{
		"a batch":     {"secret", `[{"id":"1","type":"dev.winnow.gc.hold.v1","data":{"phase":"Found"}}]`, 200, `1 dev.winnow.gc.hold.v1  {"phase":"Found"}`},
		"wrong token": {"guess", `[{"id":"2"}]`, 401, ""},
		"no JSON":     {"secret", `[`, 400, ""},
		"too much":    {"secret", `["` + strings.Repeat("x", 3<<20) + `"]`, 400, ""},
	} {
		printed.Reset()
		request, answer := httptest.NewRequest("POST", "/winnow", strings.NewReader(c.body)), httptest.NewRecorder()
		request.Header.Set("Authorization", "Bearer "+c.token)
		if receive(answer, request); answer.Code != c.want || !strings.Contains(printed.String(), c.prints) || c.prints == "" && printed.Len() > 0 {
			t.Errorf("%s: got %d, printed %q", name, answer.Code, &printed)
		}
	}
}
