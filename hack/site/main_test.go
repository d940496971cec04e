// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCheck(t *testing.T) {
	repository := fstest.MapFS{"artifacts/a.yaml": {}}
	for name, test := range map[string]struct {
		body string
		want string // part of the error; empty for none
	}{
		"a page":                     {body: `<a href="docs/b.html">`},
		"a heading of a page":        {body: `<a href="docs/b.html#h">`},
		"a heading of the same page": {body: `<h1 id="i"><a href="#i">`},
		"a picture":                  {body: `<picture><source srcset="docs/p.svg"><img src="docs/p.svg"></picture>`},
		"a file of the repository":   {body: `<a href="` + source + `artifacts/a.yaml#L1">`},
		"another site":               {body: `<a href="https://example.com/none#h">`},
		"no page":                    {body: `<a href="docs/c.html">`, want: "index.html: docs/c.html: "},
		"no heading":                 {body: `<a href="docs/b.html#i">`, want: "no such heading"},
		"no heading of the page":     {body: `<a href="#h">`, want: "no such heading"},
		"no picture":                 {body: `<img src="docs/q.svg">`, want: "docs/q.svg"},
		"no file of the repository":  {body: `<a href="` + source + `artifacts/b.yaml">`, want: "artifacts/b.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			site := fstest.MapFS{
				"index.html":  {Data: []byte(test.body)},
				"docs/b.html": {Data: []byte(`<h1 id="h">B</h1><a href="../index.html">`)},
				"docs/p.svg":  {},
			}
			switch err := check(site, repository); {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
	if check(fstest.MapFS{}, repository) == nil {
		t.Error("a site without pages has no error")
	}
}

// TestSource: links to files are checked only if the site writes them as this program reads them.
func TestSource(t *testing.T) {
	config, err := os.ReadFile("hugo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(config), "  source: "+source+" ") {
		t.Errorf("hugo.yaml has another source than %s", source)
	}
}
