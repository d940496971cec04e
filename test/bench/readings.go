// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/test/poll"
)

// profileSeconds of the window in which readings are watched also give a CPU profile.
const profileSeconds = 20

// readingFigures are what the readings before deletes cost.
type readingFigures struct {
	agreed, disagreed, failed float64 // a second
	write                     float64 // seconds that kube-apiserver takes for a write of a stored cluster policy, most of which are barriers
	lists                     float64 // lists of stored policies a second
	cpu, serverCPU            float64 // percent of a core, of Winnow and of kube-apiserver
}

// readings watches the readings while Jobs expire over a minute in one more namespace, so that there is something due all
// the time.
func (c *crowd) readings(ctx context.Context, o options, f *crowdFigures) (any, error) {
	before, err := c.winnowMetrics(ctx)
	if err != nil {
		return nil, err
	}
	ours, _ := contestants(o)
	type result struct {
		outcome
		err error
	}
	expired := make(chan result, 1)
	go func() {
		out, err := c.expire(ctx, o, ours, "expiring")
		expired <- result{out, err}
	}()
	if err := eventually(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		return c.someReading(ctx, before)
	}); err != nil {
		return nil, err
	}
	if f.readings, err = c.watchReadings(ctx, o); err != nil {
		return nil, err
	}
	out := <-expired
	f.expired = out.outcome
	return f.readings, out.err
}

func (c *crowd) watchReadings(ctx context.Context, o options) (f readingFigures, err error) {
	profiled := make(chan error, 1)
	go func() {
		file := filepath.Join(o.out, "readings-"+strconv.Itoa(c.policies)+".pprof")
		profiled <- c.profile(ctx, "profile?seconds="+strconv.Itoa(profileSeconds), file)
	}()
	winnow, server, err := c.bothMetrics(ctx)
	if err != nil {
		return f, err
	}
	begin := time.Now()
	if err := poll.Pause(ctx, o.spread); err != nil {
		return f, err
	}
	winnowAfter, serverAfter, err := c.bothMetrics(ctx)
	if err != nil {
		return f, err
	}
	seconds := time.Since(begin).Seconds()
	ours, theirs := difference{winnow, winnowAfter}, difference{server, serverAfter}
	f = readingFigures{
		agreed:    ours.total("winnow_readings_total", `result="agreed"`) / seconds,
		disagreed: ours.total("winnow_readings_total", `result="disagreed"`) / seconds,
		failed:    ours.total("winnow_readings_total", `result="failed"`) / seconds,
		write:     theirs.average("apiserver_request_duration_seconds", `resource="storedclustercleanuppolicies"`, `verb="PUT"`),
		lists:     theirs.total("apiserver_request_duration_seconds_count", `resource="storedcleanuppolicies"`, `verb="LIST"`) / seconds,
		cpu:       100 * ours.total("process_cpu_seconds_total") / seconds,
		serverCPU: 100 * theirs.total("process_cpu_seconds_total") / seconds,
	}
	return f, <-profiled
}

func (c *crowd) someReading(ctx context.Context, before metricText) error {
	now, err := c.winnowMetrics(ctx)
	if err == nil && now.total("winnow_readings_total") == before.total("winnow_readings_total") {
		err = errors.New("nothing was read yet")
	}
	return err
}

// profile writes one of the profiles of Winnow below /debug/pprof.
func (w *world) profile(ctx context.Context, path, file string) error {
	profile, err := w.replica().Get(ctx, "/debug/pprof/"+path)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(profile), 0o644)
}

// metricText is what a server tells in the text format of Prometheus.
type metricText string

func (w *world) winnowMetrics(ctx context.Context) (metricText, error) {
	text, err := w.replica().Get(ctx, "/metrics")
	return metricText(text), err
}

func (w *world) serverMetrics(ctx context.Context) (metricText, error) {
	text, err := w.kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	return metricText(text), err
}

func (w *world) bothMetrics(ctx context.Context) (winnow, server metricText, err error) {
	if winnow, err = w.winnowMetrics(ctx); err != nil {
		return "", "", err
	}
	server, err = w.serverMetrics(ctx)
	return winnow, server, err
}

// total sums up a metric over all its labels but these, each as name="value". One that was never counted is zero.
func (m metricText) total(name string, labels ...string) float64 {
	var sum float64
	for line := range strings.Lines(string(m)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != '{' && rest[0] != ' ' || !containsAll(rest, labels) {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		if err == nil {
			sum += value
		}
	}
	return sum
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// difference is how much metrics went up.
type difference struct{ before, after metricText }

func (d difference) total(name string, labels ...string) float64 {
	return d.after.total(name, labels...) - d.before.total(name, labels...)
}

// average of the observations of a histogram in between.
func (d difference) average(name string, labels ...string) float64 {
	count := d.total(name+"_count", labels...)
	if count == 0 {
		return 0
	}
	return d.total(name+"_sum", labels...) / count
}

func readingRows(many, few crowdFigures) []row {
	figure := func(name, unit string, scale float64, of func(readingFigures) float64) row {
		return row{"readings: " + name, unit, sample{scale * of(many.readings)}, few.name, sample{scale * of(few.readings)}}
	}
	rows := []row{
		figure("agreed", "1/s", 1, func(f readingFigures) float64 { return f.agreed }),
		figure("disagreed", "1/s", 1, func(f readingFigures) float64 { return f.disagreed }),
		figure("failed", "1/s", 1, func(f readingFigures) float64 { return f.failed }),
		figure("write of a barrier by kube-apiserver", "ms", 1000, func(f readingFigures) float64 { return f.write }),
		figure("lists of stored policies", "1/s", 1, func(f readingFigures) float64 { return f.lists }),
		figure("CPU", "% of a core", 1, func(f readingFigures) float64 { return f.cpu }),
		figure("CPU of kube-apiserver", "% of a core", 1, func(f readingFigures) float64 { return f.serverCPU }),
	}
	for _, late := range latenessRows([]outcome{many.expired}, []outcome{few.expired}) {
		late.besideName = few.name
		rows = append(rows, late)
	}
	return rows
}
