// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
)

// reviewClients review at the same time.
const reviewClients = 20

// reviewClient returns a client with a separate user, because one user can have only a few reviews that wait.
func (w *world) reviewClient(i int) (versioned.Interface, error) {
	config := rest.CopyConfig(w.cluster.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: fmt.Sprint("client-", i), Groups: []string{user.SystemPrivilegedGroup}}
	return versioned.NewForConfig(config)
}

// review reviews a draft that would delete all candidates within an hour.
func (o options) review(ctx context.Context, client versioned.Interface) error {
	ttl := v1alpha1.TTL("1h")
	draft := &v1alpha1.CleanupReview{
		ObjectMeta: metav1.ObjectMeta{Name: "bench"}, Spec: v1alpha1.CleanupPolicySpec{TTLAfterFinished: &ttl},
	}
	answer, err := client.GcV1alpha1().CleanupReviews(candidatesNamespace).Create(ctx, draft, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if s := answer.Status; !s.Complete || s.WithDraft.Week+s.WithDraft.Held != int64(o.candidates) {
		return fmt.Errorf("the review says %+v of %d", s.WithDraft, o.candidates)
	}
	return nil
}

// measureReviews measures reviews of a draft that would delete all candidates within an hour, and how late Jobs of another namespace go
// while many clients review it, and while nobody does, in turn.
func (w *world) measureReviews(ctx context.Context, o options, r *report) error {
	client, err := versioned.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		return err
	}
	review := o.review
	var alone []anew
	for round := range o.rounds {
		r.progress("reviews: %d of %d ...", round+1, o.rounds)
		one, err := anewOf(ctx, w.replica().Process.Pid(), "review", func() error { return review(ctx, client) })
		if err != nil {
			return err
		}
		alone = append(alone, one)
	}
	figure := func(name, unit string, of func(anew) float64) {
		out := row{figure: fmt.Sprintf("review of %d candidates: %s", o.candidates, name), unit: unit}
		for _, one := range alone {
			out.winnow = append(out.winnow, of(one))
		}
		r.add(out)
	}
	figure("time", "s", func(a anew) float64 { return a.seconds })
	figure("CPU", "s", func(a anew) float64 { return a.cpu })
	figure("resident, at the most more", "MB", func(a anew) float64 { return (a.peak - a.before) / mega })
	beside, err := w.expireBeside(ctx, o, r, "reviews", func(ctx context.Context) (int, error) {
		var total atomic.Int64
		clients, ctx := errgroup.WithContext(ctx)
		for i := range reviewClients {
			as, err := w.reviewClient(i)
			if err != nil {
				return 0, err
			}
			clients.Go(func() error {
				for {
					if err := review(ctx, as); err != nil {
						return err
					}
					total.Add(1)
				}
			})
		}
		err := clients.Wait()
		return int(total.Load()), err
	})
	if err != nil {
		return err
	}
	r.add(row{fmt.Sprintf("reviews, by %d clients", reviewClients), "1/s", beside.rate, "", nil})
	r.add(beside.rows("beside reviews: ", "no reviews")...)
	return r.writeCSV("reviews", beside.lines())
}
