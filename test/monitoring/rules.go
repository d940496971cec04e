// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// readRules reads the rules of a PrometheusRule as Prometheus gets them from its operator.
func readRules(file string) ([]rulefmt.Rule, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	object := &monitoringv1.PrometheusRule{}
	if err := yaml.UnmarshalStrict(text, object); err != nil {
		return nil, err
	}
	groups, err := yaml.Marshal(object.Spec)
	if err != nil {
		return nil, err
	}
	parsed, errs := rulefmt.Parse(groups, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var out []rulefmt.Rule
	for _, g := range parsed.Groups {
		out = append(out, g.Rules...)
	}
	return out, nil
}

// checkRules evaluates all rules, and checks that the scrapes have every metric, and every label, that the rules select by.
func checkRules(ctx context.Context, rules []rulefmt.Rule, s *scrapes) error {
	var errs []error
	for _, r := range rules {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
		if err == nil {
			err = s.checkSelectors(ctx, expr)
		}
		if err == nil {
			_, err = s.matrix(ctx, r.Expr)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("alert %s: %w", r.Alert, err))
		}
	}
	return errors.Join(errs...)
}

func (s *scrapes) checkSelectors(ctx context.Context, expr parser.Expr) error {
	var errs []error
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		for _, m := range selector.LabelMatchers {
			want := fmt.Sprintf("%s{%s!=\"\"}", selector.Name, m.Name)
			if m.Name == model.MetricNameLabel {
				want = selector.Name
			}
			if found, err := s.matrix(ctx, want); err != nil || len(found) == 0 {
				errs = append(errs, fmt.Errorf("%s: %w", want, errors.Join(err, errors.New("no such series was scraped"))))
			}
		}
		return nil
	})
	return errors.Join(errs...)
}
