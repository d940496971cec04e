// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/winnow-dev/winnow/pkg/controller/report"
)

// tracked collects the totals of the engine when metrics are scraped.
type tracked struct {
	metrics.BaseStableCollector
	totals                       func() report.Totals
	objects, timers, ready, held *metrics.Desc
	waiting, paced, clock, stale *metrics.Desc
}

// RegisterTracked registers the metrics about the totals of the engine.
func RegisterTracked(totals func() report.Totals) {
	legacyregistry.CustomMustRegister(&tracked{
		totals:  totals,
		objects: desc("objects", "Objects that are tracked because a policy can match them or their dependents."),
		timers:  desc("timers", "Objects that wait until they are due."),
		ready:   desc("ready", "Objects that are due and not held."),
		waiting: desc("holds", "Changes that made many objects due at once and wait for approval, one for each policy and namespace."),
		paced:   desc("paced_namespaces", "Namespaces whose deletions wait because of maxDeletionsPerMinute."),
		clock:   desc("clock_in_doubt", "1 while the clocks here and at the API server disagree, so that everything is held."),
		stale:   desc("stale_watch", "1 for a resource whose watch has been silent for too long.", "resource"),
		held:    desc("held", "Objects that are due and held, by reason.", "reason"),
	})
}

func desc(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(metrics.BuildFQName(namespace, "tracker", name), help, labels, nil, metrics.ALPHA, "")
}

// DescribeWithStability implements metrics.StableCollector.
func (c *tracked) DescribeWithStability(out chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{c.objects, c.timers, c.ready, c.held, c.waiting, c.paced, c.clock, c.stale} {
		out <- d
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *tracked) CollectWithStability(out chan<- metrics.Metric) {
	t := c.totals()
	value := func(d *metrics.Desc, n int, labels ...string) {
		out <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, float64(n), labels...)
	}
	value(c.objects, t.Objects)
	value(c.timers, t.Timers)
	value(c.ready, t.Ready)
	value(c.waiting, t.Holds)
	value(c.paced, t.Paced)
	doubt := 0
	if t.ClockInDoubt {
		doubt = 1
	}
	value(c.clock, doubt)
	for _, resource := range t.Stale {
		value(c.stale, 1, resource)
	}
	for reason, n := range t.Held {
		value(c.held, n, string(reason))
	}
}
