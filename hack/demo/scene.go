// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/winnow-dev/winnow/test/cluster"
)

// scene brings together what happens, what is known of it, and what is shown.
type scene struct {
	story    *story
	observer *observer
	model    *model
	screen   *screen
}

func newScene(c *cluster.Cluster, o *observer, screen *screen) (*scene, error) {
	story, err := newStory(c)
	return &scene{story: story, observer: o, model: newModel(time.Now()), screen: screen}, err
}

// begin creates what there is to see.
func (s *scene) begin(ctx context.Context) error {
	warnings, err := s.story.begin(ctx)
	if err != nil {
		return orInterrupted(ctx, err)
	}
	for _, w := range warnings {
		s.model.tell(s.model.began, "kubectl apply: %s", w)
	}
	return nil
}

// step observes, goes on with the story, and shows what is new.
func (s *scene) step(ctx context.Context, now time.Time) error {
	o, err := s.observer.observe(ctx, now)
	if err != nil {
		return orInterrupted(ctx, err)
	}
	s.model.update(o, now)
	if err := s.story.goOn(ctx, s.model, now); err != nil {
		return orInterrupted(ctx, err)
	}
	s.model.look(now)
	s.screen.show(s.model, now)
	return nil
}

// orInterrupted is errInterrupted when something failed because ctx has ended.
func orInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return err
}
