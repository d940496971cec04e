// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
)

// scraped is a folder with what two servers answered at five times.
func scraped(t *testing.T) string {
	folder := t.TempDir()
	for i := range 5 {
		for _, instance := range []string{"a", "b"} {
			text := fmt.Sprintf("# TYPE deletions_total counter\ndeletions_total{reason=\"Expired\"} %d\nleading 1\n", i*10)
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d_winnow_%s", 1_700_000_000_000+i*1000, instance)), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

// TestChecks: a query without data fails, and so does a wrong name of a metric or a label.
func TestChecks(t *testing.T) {
	s, err := load(scraped(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for name, c := range map[string]struct{ expr, legend, board, rule string }{
		"well":            {expr: `sum by (instance) (rate(deletions_total{reason="Expired"}[$__rate_interval]))`, legend: "of {{instance}}"},
		"another metric":  {expr: `deletion_total`, board: "no data", rule: "deletion_total: no such series"},
		"another label":   {expr: `deletions_total{reasons!="x"}`, rule: `deletions_total{reasons!=""}: no such series`},
		"another value":   {expr: `deletions_total{reason="Refused"}`, board: "no data"},
		"no number":       {expr: `leading * NaN`, board: "no data"},
		"another legend":  {expr: `sum by (instance) (leading)`, legend: "{{reason}}", board: `no label "reason"`},
		"not an operator": {expr: `leading = 1`, board: "parse error", rule: "parse error"},
	} {
		t.Run(name, func(t *testing.T) {
			p := panel{}
			p.Targets = []target{{Expr: c.expr, LegendFormat: c.legend}}
			wantError(t, (&board{Panels: []panel{p}}).check(t.Context(), s), c.board)
			rule := rulefmt.Rule{Alert: "A", Expr: strings.ReplaceAll(c.expr, "$__rate_interval", "4s")}
			wantError(t, checkRules(t.Context(), []rulefmt.Rule{rule}, s), c.rule)
		})
	}
}

// TestInline: what is recorded is evaluated from the metrics that it is made from, with its labels.
func TestInline(t *testing.T) {
	all := inline([]rulefmt.Rule{
		{Record: "a:b:c", Expr: "x > 1", Labels: map[string]string{"of": "x"}},
		{Record: "a:b:c", Expr: "y"},
		{Alert: "A", Expr: "avg_over_time(a:b:c[1h]) > a:b:c"},
	})
	const both = `(label_replace((x > 1), "of", "x", "", "") or (y))`
	if want := "avg_over_time((" + both + " and on() vector(time()) >= 0)[1h:5m]) > " + both; all[2].Expr != want {
		t.Errorf("got %s, want %s", all[2].Expr, want)
	}
}

// wantError checks that an error contains a text, or for "" that there is none.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("got %v, want %q", err, want)
	}
}
