// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
)

const (
	candidatesNamespace = "candidates"
	candidatesPage      = 500 // as kubectl lists
	candidatesClients   = 4   // that list at the same time
)

// measureCandidates measures lists of many candidates page by page, beside lists of their Jobs, and how late Jobs of another namespace go
// while some clients list candidates, and while nobody does, in turn. Then it measures reviews.
func measureCandidates(ctx context.Context, o options, r *report) (err error) {
	w, err := newWorldWithWinnow(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	r.progress("candidates: %d Jobs ...", o.candidates)
	if err := w.createCandidates(ctx, o.candidates); err != nil {
		return err
	}
	ours, theirs, err := w.candidateLists()
	if err != nil {
		return err
	}
	var candidates, plain []anew
	for round := range o.rounds {
		r.progress("candidates: list %d of %d ...", round+1, o.rounds)
		pid, server := w.replica().Process.Pid(), w.cluster.Process(cluster.APIServer).Pid()
		one, err := anewOf(ctx, pid, "candidates", func() error { return ours.all(ctx, o.candidates) })
		if err != nil {
			return err
		}
		other, err := anewOf(ctx, server, "Jobs", func() error { return theirs.all(ctx, o.candidates) })
		if err != nil {
			return err
		}
		candidates, plain = append(candidates, one), append(plain, other)
	}
	r.add(listRows(o.candidates, candidates, plain)...)
	beside, err := w.expireBeside(ctx, o, r, "candidates", ours.again)
	if err != nil {
		return err
	}
	r.add(row{fmt.Sprintf("pages of %d candidates, by %d clients", candidatesPage, candidatesClients), "1/s", beside.rate, "", nil})
	r.add(beside.rows("beside lists: ", "no lists")...)
	if err := r.writeCSV("candidates", beside.lines()); err != nil {
		return err
	}
	return w.measureReviews(ctx, o, r)
}

// createCandidates creates finished Jobs that wait for a month, and waits until Winnow knows all of them.
func (w *world) createCandidates(ctx context.Context, n int) error {
	if err := w.newNamespace(ctx, candidatesNamespace, "30d"); err != nil {
		return err
	}
	all, err := jobs.Create(ctx, w.kube, candidatesNamespace, n)
	if err != nil {
		return err
	}
	now := time.Now()
	if err := jobs.Finish(ctx, w.kube, all, func(int) time.Time { return now }); err != nil {
		return err
	}
	return w.waitMetric(ctx, "winnow_tracker_timers", float64(n))
}

// pages is a resource that is listed page by page.
type pages struct {
	client   rest.Interface
	resource string
}

func (w *world) candidateLists() (candidates, plain pages, err error) {
	client, err := versioned.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		return candidates, plain, err
	}
	return pages{client.GcV1alpha1().RESTClient(), "cleanupcandidates"}, pages{w.kube.BatchV1().RESTClient(), "jobs"}, nil
}

// page lists the page at a position, and returns how many items it has and where the next one begins.
func (p pages) page(ctx context.Context, position string) (int, string, error) {
	body, err := p.client.Get().Namespace(candidatesNamespace).Resource(p.resource).
		Param("limit", strconv.Itoa(candidatesPage)).Param("continue", position).
		SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return 0, "", err
	}
	list := struct {
		Metadata metav1.ListMeta
		Items    []struct{} // so that this process has little to decode
	}{}
	err = json.Unmarshal(body, &list)
	return len(list.Items), list.Metadata.Continue, err
}

// all lists all pages, which must have n items together.
func (p pages) all(ctx context.Context, n int) error {
	found, position := 0, ""
	for {
		items, next, err := p.page(ctx, position)
		if err != nil {
			return err
		}
		if found, position = found+items, next; position == "" {
			break
		}
	}
	if found != n {
		return fmt.Errorf("the pages of %s have %d items, want %d", p.resource, found, n)
	}
	return nil
}

// again lists all pages again and again, with several clients, until ctx ends. It returns how many pages there were.
func (p pages) again(ctx context.Context) (int, error) {
	var total atomic.Int64
	clients, ctx := errgroup.WithContext(ctx)
	for range candidatesClients {
		clients.Go(func() error {
			position := ""
			for {
				_, next, err := p.page(ctx, position)
				if err != nil {
					return err
				}
				position = next
				total.Add(1)
			}
		})
	}
	err := clients.Wait()
	return int(total.Load()), err
}

// listRows compares lists of all candidates with lists of their Jobs: how long they take, and what they take of Winnow and of
// kube-apiserver.
func listRows(n int, candidates, plain []anew) []row {
	figure := func(name, unit string, of func(anew) float64) row {
		out := row{figure: fmt.Sprintf("list of %d candidates: %s", n, name), unit: unit, besideName: "Jobs, of kube-apiserver"}
		for i := range candidates {
			out.winnow, out.beside = append(out.winnow, of(candidates[i])), append(out.beside, of(plain[i]))
		}
		return out
	}
	return []row{
		figure("time", "s", func(a anew) float64 { return a.seconds }),
		figure("CPU", "s", func(a anew) float64 { return a.cpu }),
		figure("resident before", "MB", func(a anew) float64 { return a.before / mega }),
		figure("resident, at the most more", "MB", func(a anew) float64 { return (a.peak - a.before) / mega }),
	}
}
