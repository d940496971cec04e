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

// seenWithin is how long it may take until everything was seen, with --exit-when-seen.
const seenWithin = 2 * time.Minute

// scene connects the story, the model and the screen.
type scene struct {
	story    *story
	observer *observer
	model    *model
	screen   *screen
}

// newScene begins the story, and watches it until ctx ends.
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

// step observes, continues the story, and shows what is new.
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

// over reports whether everything was seen. It returns an error if that takes too long.
func (s *scene) over(now time.Time) (bool, error) {
	missing := s.model.missing()
	if len(missing) > 0 && now.After(s.model.began.Add(seenWithin)) {
		return true, fmt.Errorf("not seen within %s: %s", seenWithin, strings.Join(missing, "; "))
	}
	return len(missing) == 0, nil
}
