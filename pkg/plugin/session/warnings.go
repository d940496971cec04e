// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// warnings writes warnings as kubectl does.
type warnings struct{ io.Writer }

func (w warnings) write(text string) { fmt.Fprintf(w.Writer, "Warning: %s\n", text) }

// HandleWarningHeader implements rest.WarningHandler. 299 is the code of all warnings of an API server.
func (w warnings) HandleWarningHeader(code int, _, text string) {
	if code == 299 && text != "" {
		w.write(text)
	}
}

// Collecting returns a cluster whose warnings are collected.
func (s *Session) Collecting() (*local.Cluster, *Collected, error) {
	config, said, err := s.collecting()
	if err != nil {
		return nil, nil, err
	}
	cluster, err := local.New(config)
	return cluster, said, err
}

// CollectingWinnow is like Winnow, but collects the warnings instead of printing them.
func (s *Session) CollectingWinnow() (gcclient.GcV1alpha1Interface, *Collected, error) {
	config, said, err := s.collecting()
	if err != nil {
		return nil, nil, err
	}
	client, err := gcclient.NewForConfig(config)
	return client, said, err
}

func (s *Session) collecting() (*rest.Config, *Collected, error) {
	config, err := s.Flags.ToRESTConfig()
	if err != nil {
		return nil, nil, err
	}
	said := &Collected{}
	config.WarningHandler = said
	return config, said, nil
}

// Collected are warnings that are printed later. The texts may be read while no request is under way.
type Collected struct {
	lock  sync.Mutex // Several resources are listed at the same time.
	texts []string
}

var _ rest.WarningHandler = (*Collected)(nil)

// HandleWarningHeader implements rest.WarningHandler.
func (c *Collected) HandleWarningHeader(code int, _, text string) {
	if code != 299 || text == "" {
		return
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.texts = append(c.texts, text)
}

// Texts returns the warnings.
func (c *Collected) Texts() []string { return c.texts }

// Reset forgets the warnings.
func (c *Collected) Reset() { c.texts = nil }

// warningsMost is how many different warnings the page shows.
const warningsMost = 10

// Few returns the different warnings of all pages of a list, at most warningsMost. Each page counts other hidden candidates.
func (c *Collected) Few() []string {
	different, hidden := sets.New[string](), map[string]int{}
	for _, text := range c.texts {
		if n, permissions, ok := gc.ParseHiddenCandidates(text); ok {
			hidden[permissions] += n
		} else {
			different.Insert(text)
		}
	}
	for permissions, n := range hidden {
		different.Insert(gc.HiddenCandidates(n, permissions))
	}
	out := sets.List(different)
	if more := len(out) - warningsMost; more > 0 {
		out = append(out[:warningsMost], fmt.Sprintf("%d more warnings", more))
	}
	return out
}
