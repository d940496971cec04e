// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command monitoring runs the queries of the dashboard and of the alerting rules on what was scraped from a real cluster, with the packages
// of Prometheus. It fails if a query has an error or no data, or if a rule names a metric or a label that was not scraped. With --draw, it
// also draws the dashboard.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	scraped := flag.String("scrapes", "", "folder with the answers of servers; see load")
	dashboard := flag.String("dashboard", "", "the JSON of the dashboard")
	rules := flag.String("rules", "", "the PrometheusRule")
	draw := flag.String("draw", "", "SVG file to draw the dashboard to")
	flag.Parse()
	if err := run(context.Background(), *scraped, *dashboard, *rules, *draw); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, scraped, dashboard, rules, drawTo string) (err error) {
	b, err := readBoard(dashboard)
	if err != nil {
		return fmt.Errorf("%s: %w", dashboard, err)
	}
	all, err := readRules(rules)
	if err != nil {
		return fmt.Errorf("%s: %w", rules, err)
	}
	s, err := load(scraped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := errors.Join(b.check(ctx, s), checkRules(ctx, all, s)); err != nil || drawTo == "" {
		return err
	}
	return b.draw(ctx, s, drawTo)
}
