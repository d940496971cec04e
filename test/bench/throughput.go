// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
)

const (
	// bareWorkers is how many DELETEs the bare loop has under way.
	bareWorkers = 64
	// nativeMost bounds the Jobs of the native controller at its defaults, which deletes ten a second.
	nativeMost = 1000
	// cascadeJobs is how many Jobs have a Pod each.
	cascadeJobs = 1000
	// manyNamespaces is over how many namespaces a burst is spread, beside one.
	manyNamespaces = 50
	// profileJobs is how many Jobs are deleted in each second of a profile, at least.
	profileJobs = 1500
)

// unlimited are the flags of a controller manager that its own limits do not hold back.
var unlimited = []string{
	"--kube-api-qps=10000", "--kube-api-burst=10000", "--concurrent-ttl-after-finished-syncs=50", "--concurrent-gc-syncs=50",
}

// racer deletes the Jobs of a burst, beside a controller manager that collects garbage.
type racer struct {
	name     string
	manager  []string // flags of the controller manager in addition to the usual ones
	native   bool     // the controller manager deletes them
	workers  int      // of the bare loop, which deletes them if there are any
	informed bool     // an informer follows the Jobs meanwhile, in another process
	flags    []string // of Winnow, which does if nobody else does
	profile  string   // file for a CPU profile of Winnow
	account  string   // that the policies name; empty if they name none
	peer     *peer    // another tool, which deletes them
}

// winnow reports whether Winnow deletes the Jobs.
func (r racer) winnow() bool { return !r.native && r.workers == 0 && r.peer == nil }

// priorityLevel is the API server's priority level for the racer's deletes.
func (r racer) priorityLevel() string {
	switch {
	case r.native:
		return "workload-high"
	case r.workers > 0, r.peer != nil, r.account != "": // An impersonated account has the priority of any workload.
		return "workload-low"
	}
	return "winnow-deletes"
}

func winnowRacer(flags ...string) racer {
	return racer{name: "winnow", manager: unlimited, flags: flags}
}

func bareRacer(workers int) racer {
	return racer{name: fmt.Sprintf("bare loop, %d", workers), manager: unlimited, workers: workers}
}

// informedRacer is the bare loop with the one watch beside it that anybody needs who does not know the Jobs in advance. The API server
// encodes and sends an event for each deletion.
func informedRacer(workers int) racer {
	r := bareRacer(workers)
	r.name, r.informed = r.name+" beside an informer", true
	return r
}

var (
	nativeDefaults  = racer{name: "native, defaults", native: true}
	nativeUnlimited = racer{name: "native, unlimited", manager: unlimited, native: true}
)

// measureThroughput lets many Jobs expire at once, and has Winnow, a bare loop and the native controller delete them in turn.
func measureThroughput(ctx context.Context, o options, r *report) (err error) {
	t, err := newTrack(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	for i, n := range o.throughput {
		loops := []racer{bareRacer(bareWorkers)}
		if o.apart {
			loops = append(loops, informedRacer(bareWorkers))
		}
		beside := loops
		if i == 0 && !o.apart {
			beside = append(beside, nativeUnlimited)
		}
		if err := t.compare(ctx, r, burst{jobs: n, namespaces: 1}, o.rounds, beside...); err != nil {
			return err
		}
		if err := t.compare(ctx, r, burst{jobs: n, namespaces: min(manyNamespaces, n)}, o.rounds, loops...); err != nil {
			return err
		}
	}
	if o.apart { // The API server does not limit the others.
		return r.writeCSV("throughput", t.lines)
	}
	n := o.throughput[0]
	if err := t.compare(ctx, r, burst{jobs: min(n, nativeMost), namespaces: 1}, o.rounds, nativeDefaults); err != nil {
		return err
	}
	withPods := burst{jobs: min(n, cascadeJobs), namespaces: 1, pods: true}
	if err := t.compare(ctx, r, withPods, o.rounds, bareRacer(bareWorkers), nativeUnlimited); err != nil {
		return err
	}
	return errors.Join(t.profileWinnow(ctx, o, r), r.writeCSV("throughput", t.lines))
}

// profileWinnow runs the largest burst once more, for nothing but a CPU profile.
func (t *track) profileWinnow(ctx context.Context, o options, r *report) error {
	largest := burst{jobs: slices.Max(o.throughput), namespaces: 1}
	profiled := winnowRacer()
	profiled.profile = filepath.Join(o.out, "throughput.pprof")
	r.progress("%s: a profile ...", largest)
	_, err := t.run(ctx, largest, profiled)
	return err
}

// compare repeats a burst for Winnow and others in turn.
func (t *track) compare(ctx context.Context, r *report, b burst, rounds int, beside ...racer) error {
	return t.race(ctx, r, b, rounds, winnowRacer(), beside...)
}

// race is compare for any first racer.
func (t *track) race(ctx context.Context, r *report, b burst, rounds int, first racer, beside ...racer) error {
	racers := append([]racer{first}, beside...)
	races := make([][]race, len(racers))
	for round := range rounds {
		for _, i := range inTurn(len(racers), round) {
			racer := racers[i]
			r.progress("%s: round %d of %d, %s ...", b, round+1, rounds, racer.name)
			one, err := t.run(ctx, b, racer)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", b, racer.name, err)
			}
			r.progress("%.0f a second, %.2f ms of CPU of the API server and etcd, %.2f ms of the racer", one.perSecond, one.serverCPU, one.ownCPU)
			races[i] = append(races[i], one)
		}
	}
	for i := range beside {
		r.add(raceRows(b, races[0], beside[i].name, races[i+1])...)
	}
	return nil
}

// inTurn is the order of a round: each round another one begins.
func inTurn(n, round int) (out []int) {
	for i := range n {
		out = append(out, (i+round)%n)
	}
	return out
}

// raceFigures are the published figures of a race.
var raceFigures = []struct {
	name, unit string
	of         func(race) float64
}{
	{"first DELETE to last DELETED", "1/s", func(r race) float64 { return r.perSecond }},
	{"due until DELETED, p50", "ms", func(r race) float64 { return r.late.median() }},
	{"due until DELETED, p99", "ms", func(r race) float64 { return r.late.quantile(0.99) }},
	{"due until DELETED, max", "ms", func(r race) float64 { return r.late.max() }},
	{"due until the last Pod is gone", "ms", func(r race) float64 { return r.pods.max() }},
	{"DELETEs of Jobs", "a deletion", func(r race) float64 { return r.deletes }},
	{"requests on Jobs", "a deletion", func(r race) float64 { return r.requests }},
	{"wait of a request for its turn in the API server", "ms", func(r race) float64 { return r.queued }},
	{"CPU of the API server and etcd", "ms a deletion", func(r race) float64 { return r.serverCPU }},
	{"CPU of what deletes", "ms a deletion", func(r race) float64 { return r.ownCPU }},
}

func raceRows(b burst, ours []race, beside string, theirs []race) []row {
	var rows []row
	for _, figure := range raceFigures {
		if of := overRaces(ours, figure.of); len(of) > 0 {
			rows = append(rows, row{fmt.Sprintf("%s: %s", b, figure.name), figure.unit, of, beside, overRaces(theirs, figure.of)})
		}
	}
	return rows
}

// overRaces leaves out what was not measured.
func overRaces(races []race, of func(race) float64) sample {
	var out sample
	for _, r := range races {
		if v := of(r); v == v {
			out = append(out, v)
		}
	}
	return out
}

// raceHeader is of the CSV file of all races.
func raceHeader() []string {
	out := []string{"burst", "deletes"}
	for _, figure := range raceFigures {
		out = append(out, fmt.Sprintf("%s (%s)", figure.name, figure.unit))
	}
	return out
}

func (r race) line(b burst, name string) []string {
	out := []string{b.String(), name}
	for _, figure := range raceFigures {
		out = append(out, number(figure.of(r)))
	}
	return out
}

// measureConcurrency runs a burst with fixed bounds on how many DELETEs are under way, of Winnow and of the bare loop.
func measureConcurrency(ctx context.Context, o options, r *report) (err error) {
	t, err := newTrack(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	b := burst{jobs: o.throughput[0], namespaces: 1}
	lines := [][]string{{"DELETEs under way at the most", "winnow 1/s", "bare loop 1/s"}}
	winnow, bare := series{Name: "Winnow"}, series{Name: "bare loop"}
	for bound := 1; bound <= 128; bound *= 2 {
		var perSecond [2]sample
		racers := []racer{winnowRacer("--concurrent-deletions=" + strconv.Itoa(bound)), bareRacer(bound)}
		for round := range o.rounds {
			for _, i := range inTurn(len(racers), round) {
				r.progress("at most %d under way: round %d of %d, %s ...", bound, round+1, o.rounds, racers[i].name)
				one, err := t.run(ctx, b, racers[i])
				if err != nil {
					return err
				}
				perSecond[i] = append(perSecond[i], one.perSecond)
			}
		}
		ours, theirs := perSecond[0].median(), perSecond[1].median()
		r.add(row{fmt.Sprintf("%s, at most %d under way", b, bound), "1/s", perSecond[0], "bare loop", perSecond[1]})
		lines = append(lines, []string{strconv.Itoa(bound), number(ours), number(theirs)})
		winnow.Points = append(winnow.Points, [2]float64{float64(bound), ours})
		bare.Points = append(bare.Points, [2]float64{float64(bound), theirs})
	}
	return errors.Join(
		r.writeCSV("concurrency", lines),
		r.plot("concurrency", b.String()+" expire at once", "DELETEs under way at the most", "deletions a second", winnow, bare),
	)
}
