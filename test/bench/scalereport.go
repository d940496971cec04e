// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
)

// heldFigures are the published figures of a process that has all Jobs.
var heldFigures = []struct {
	name, unit string
	of         func(held) sample
}{
	{"start to all known", "s", func(h held) sample { return sample{h.seconds} }},
	{"CPU until then", "s", func(h held) sample { return sample{h.cpu} }},
	{"resident at the most until then", "MB", func(h held) sample { return sample{h.peak / mega} }},
	{"live heap then", "MB", func(h held) sample { return sample{h.before / mega} }},
	{"live heap at rest", "MB", func(h held) sample { return sample{h.after / mega} }},
	{"resident at rest", "MB", func(h held) sample { return h.rest.resident }},
	{"CPU at rest", "% of a core", func(h held) sample { return h.rest.cpu }},
}

// addScale tells the figures of all numbers of Jobs; the first are of none.
func (r *report) addScale(all []scaleFigures) error {
	if len(all) < 2 {
		return nil
	}
	none, some := all[0], all[1:]
	for _, s := range all {
		r.add(heldRows(s)...)
	}
	for _, s := range some {
		r.add(eachRows(s, none)...)
		r.add(anewRows(s, none)...)
		r.add(lagRows(s)...)
	}
	return errors.Join(
		r.writeCSV("scale", scaleLines(all)),
		r.plot("scale-memory", "Memory against the number of finished Jobs", "finished Jobs", "MB",
			line("Winnow, live heap", some, func(s scaleFigures) float64 { return s.winnow.after / mega }),
			line("Winnow, resident", some, func(s scaleFigures) float64 { return s.winnow.rest.resident.median() }),
			line("typed informer, live heap", some, func(s scaleFigures) float64 { return s.beside[0].after / mega }),
			line("trimmed informer, live heap", some, func(s scaleFigures) float64 { return s.beside[1].after / mega }),
			line("trimmed informer, resident", some, func(s scaleFigures) float64 { return s.beside[1].rest.resident.median() })),
		r.plot("scale-start", "From start until all are known", "finished Jobs", "s",
			line("Winnow, all timers armed", some, func(s scaleFigures) float64 { return s.winnow.seconds }),
			line("typed informer, synced", some, func(s scaleFigures) float64 { return s.beside[0].seconds }),
			line("trimmed informer, synced", some, func(s scaleFigures) float64 { return s.beside[1].seconds })),
		r.plot("scale-changes", "Deciding everything anew after a change", "finished Jobs", "s of CPU", changeSeries(some)...),
	)
}

func changeSeries(all []scaleFigures) []series {
	var out []series
	for i, change := range all[0].changes {
		out = append(out, line(change.name, all, func(s scaleFigures) float64 { return s.changes[i].cpu }))
	}
	return out
}

func line(name string, all []scaleFigures, of func(scaleFigures) float64) series {
	out := series{Name: name}
	for _, s := range all {
		out.Points = append(out.Points, [2]float64{float64(s.jobs), of(s)})
	}
	return out
}

func (s scaleFigures) String() string { return strconv.Itoa(s.jobs) + " Jobs" }

func heldRows(s scaleFigures) []row {
	var rows []row
	for _, figure := range heldFigures {
		for i, beside := range scaleBeside {
			rows = append(rows, row{fmt.Sprintf("%s: %s", s, figure.name), figure.unit, figure.of(s.winnow), beside, figure.of(s.beside[i])})
		}
	}
	return rows
}

// eachRows are what one more Job costs.
func eachRows(s, none scaleFigures) []row {
	var rows []row
	figure := func(name string, of func(held) float64) {
		each := func(more, fewer held) sample { return sample{(of(more) - of(fewer)) / float64(s.jobs)} }
		for i, beside := range scaleBeside {
			rows = append(rows, row{
				fmt.Sprintf("%s: each, %s", s, name), "bytes", each(s.winnow, none.winnow), beside, each(s.beside[i], none.beside[i]),
			})
		}
	}
	figure("live heap", func(h held) float64 { return h.after })
	figure("resident", func(h held) float64 { return mega * h.rest.resident.median() })
	return rows
}

func anewRows(s, none scaleFigures) []row {
	var rows []row
	for i, change := range s.changes {
		beside := none.changes[i]
		what := fmt.Sprintf("%s: %s, ", s, change.name)
		rows = append(rows,
			row{what + "CPU", "s", sample{change.cpu}, none.String(), sample{beside.cpu}},
			row{what + "until its status", "s", sample{change.seconds}, none.String(), sample{beside.seconds}},
			row{what + "resident at the most", "MB", sample{change.peak / mega}, "before", sample{change.before / mega}})
	}
	what := s.String() + ": "
	return append(rows,
		row{what + "CPU for 1,000 events", "ms", sample{1e6 * s.events.cpu / manyEvents}, "", nil},
		row{what + "events taken in", "1/s", sample{manyEvents / s.events.seconds}, "", nil},
		row{what + "list again", "s", sample{s.relist.seconds}, "its start", sample{s.winnow.seconds}},
		row{what + "list again, CPU", "s", sample{s.relist.cpu}, "its start", sample{s.winnow.cpu}},
		row{what + "list again, resident at the most", "MB", sample{s.relist.peak / mega}, "before", sample{s.relist.before / mega}})
}

// quantiles of lags, as a table tells them.
var lagQuantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p99", 0.99}, {"max", 1}}

func (l lags) String() string {
	text := func(s sample) string {
		return fmt.Sprintf("p50 %s, p99 %s, max %s ms of %d", number(s.median()), number(s.quantile(0.99)), number(s.max()), len(s))
	}
	return fmt.Sprintf("untouched: %s; bound: %s", text(l.untouched), text(l.bound))
}

// lagRows are from the event that makes a Job due until its DELETE is received, while nothing else happens and while a policy
// changes all the time that touches all Jobs, or all except the ones in untouched namespaces.
func lagRows(s scaleFigures) []row {
	var rows []row
	for _, where := range []struct {
		name string
		of   func(lags) sample
	}{{"untouched", func(l lags) sample { return l.untouched }}, {"touched", func(l lags) sample { return l.bound }}} {
		for _, quantile := range lagQuantiles {
			rows = append(rows, row{
				fmt.Sprintf("%s: event to DELETE under changes, %s, %s", s, where.name, quantile.name), "ms",
				sample{where.of(s.changing).quantile(quantile.q)}, "at rest", sample{where.of(s.rest).quantile(quantile.q)},
			})
		}
	}
	return rows
}

// scaleLines are the figures by number of Jobs and process, with a header.
func scaleLines(all []scaleFigures) [][]string {
	header := []string{"jobs", "process"}
	for _, figure := range heldFigures {
		header = append(header, figure.name+", "+figure.unit)
	}
	lines := [][]string{header}
	for _, s := range all {
		for i, name := range append([]string{"winnow"}, scaleBeside...) {
			cells, process := []string{strconv.Itoa(s.jobs), name}, append([]held{s.winnow}, s.beside...)[i]
			for _, figure := range heldFigures {
				cells = append(cells, number(figure.of(process).median()))
			}
			lines = append(lines, cells)
		}
	}
	return lines
}
