// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/test/cluster"
)

// seenWithin is how long everything that is to be seen may take with --exit-when-seen.
const seenWithin = 2 * time.Minute

// scene brings together what happens, what is known of it, and what is shown.
type scene struct {
	story    *story
	observer *observer
	model    *model
	screen   *screen
}

// newScene creates what there is to see, and watches it until ctx ends.
func newScene(ctx context.Context, c *cluster.Cluster, logFile string, screen *screen) (*scene, error) {
	observer, err := newObserver(ctx, c, logFile)
	if err != nil {
		return nil, err
	}
	story, err := newStory(c)
	if err != nil {
		return nil, err
	}
	s := &scene{story: story, observer: observer, model: newModel(time.Now()), screen: screen}
	return s, story.begin(ctx, s.model)
}

// step observes, goes on with the story, and shows what is new.
func (s *scene) step(ctx context.Context, now time.Time) error {
	o, err := s.observer.observe(ctx, now)
	if err != nil {
		return err
	}
	s.model.update(o, now)
	if err := s.story.goOn(ctx, s.model, now); err != nil {
		return err
	}
	s.model.look(now)
	s.screen.show(s.model, now)
	return nil
}

// over tells whether all was seen, or with an error that it takes too long.
func (s *scene) over(now time.Time) (bool, error) {
	missing := s.model.missing()
	if len(missing) > 0 && now.After(s.model.began.Add(seenWithin)) {
		return true, fmt.Errorf("not seen within %s: %s", seenWithin, strings.Join(missing, "; "))
	}
	return len(missing) == 0, nil
}
