// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"

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

// inline returns the rules with what earlier rules record instead of its name, so that each can be evaluated on metrics alone. A range of
// what is recorded becomes a subquery with few steps.
func inline(all []rulefmt.Rule) []rulefmt.Rule {
	recorded := map[string][]string{}
	var out []rulefmt.Rule
	for _, r := range all {
		r.Expr = recordedName.ReplaceAllStringFunc(r.Expr, func(match string) string {
			parts := recordedName.FindStringSubmatch(match)
			exprs, known := recorded[parts[1]]
			if !known {
				return match
			}
			expr := "(" + strings.Join(exprs, " or ") + ")"
			if parts[2] == "" {
				return expr
			}
			return "(" + expr + " and on() vector(time()) >= 0)" + steps[parts[2]] // Tests begin at 0, and nothing is recorded before.
		})
		if r.Record != "" {
			expr := "(" + r.Expr + ")"
			for label, value := range r.Labels {
				expr = fmt.Sprintf(`label_replace(%s, %q, %q, "", "")`, expr, label, value)
			}
			recorded[r.Record] = append(recorded[r.Record], expr)
		}
		out = append(out, r)
	}
	return out
}

// recordedName matches a name with colons, which only recorded metrics have, and the range that follows it.
var recordedName = regexp.MustCompile(`\b(\w+:\w+:\w+)(\[\w+\])?`)

// steps are subqueries instead of ranges.
var steps = map[string]string{
	"[5m]": "[5m:1m]", "[30m]": "[30m:5m]", "[1h]": "[1h:5m]", "[6h]": "[6h:5m]", "[3d]": "[3d:1h]",
}

// checkRules evaluates all rules, and checks that the scrapes have every metric, and every label, that the rules select by.
func checkRules(ctx context.Context, rules []rulefmt.Rule, s *scrapes) error {
	var errs []error
	for _, r := range inline(rules) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
		if err == nil {
			err = s.checkSelectors(ctx, expr)
		}
		if err == nil {
			_, err = s.matrix(ctx, r.Expr)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("rule %s%s: %w", r.Alert, r.Record, err))
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
