// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

// board is a dashboard of Grafana, as far as it is read here.
type board struct {
	Title  string
	Panels []panel
}

type panel struct {
	Title, Type string
	GridPos     struct{ X, Y, W, H int }
	Targets     []target
	FieldConfig struct{ Defaults struct{ Unit string } }
}

type target struct{ Expr, LegendFormat string }

// line is one line of a panel.
type line struct {
	legend string
	promql.Series
}

func readBoard(file string) (*board, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	b := &board{}
	return b, json.Unmarshal(text, b)
}

// lines evaluates the queries of a panel. A query without data, or without a label that its legend names, is an error.
func (p *panel) lines(ctx context.Context, s *scrapes) ([]line, error) {
	var out []line
	for _, target := range p.Targets {
		// As Grafana does: a rate needs several scrapes, even if one fails.
		expr := strings.ReplaceAll(target.Expr, "$__rate_interval", fmt.Sprintf("%dms", 4*s.interval.Milliseconds()))
		all, err := s.matrix(ctx, expr)
		if err != nil {
			return nil, fmt.Errorf("panel %q: %s: %w", p.Title, expr, err)
		}
		points := 0
		for _, series := range all {
			legend, err := legendOf(target.LegendFormat, series.Metric)
			if err != nil {
				return nil, fmt.Errorf("panel %q: %s: %w", p.Title, expr, err)
			}
			l := line{legend: legend, Series: promql.Series{Metric: series.Metric}}
			for _, point := range series.Floats {
				if !math.IsNaN(point.F) {
					l.Floats = append(l.Floats, point)
				}
			}
			points += len(l.Floats)
			out = append(out, l)
		}
		if points == 0 {
			return nil, fmt.Errorf("panel %q: %s: no data", p.Title, expr)
		}
	}
	return out, nil
}

var legendLabel = regexp.MustCompile(`\{\{ *(\w+) *\}\}`)

// legendOf replaces the names of labels in a legend by their values.
func legendOf(format string, metric labels.Labels) (string, error) {
	var err error
	return legendLabel.ReplaceAllStringFunc(format, func(label string) string {
		name := legendLabel.FindStringSubmatch(label)[1]
		if !metric.Has(name) {
			err = errors.Join(err, fmt.Errorf("%s has no label %q", metric, name))
		}
		return metric.Get(name)
	}), err
}

// check evaluates all queries of the dashboard.
func (b *board) check(ctx context.Context, s *scrapes) error {
	var errs []error
	for i := range b.Panels {
		if _, err := b.Panels[i].lines(ctx, s); err != nil {
			errs = append(errs, err)
		}
	}
	if len(b.Panels) == 0 {
		errs = append(errs, errors.New("the dashboard has no panels"))
	}
	return errors.Join(errs...)
}
