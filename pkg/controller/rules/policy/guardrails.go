// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/windows"
)

func (c *Cluster) compileGuardrails(g *gc.Guardrails) error {
	var errs []error
	set := func(field string, d *gc.TTL, to *ttl) {
		if d != nil {
			var err error
			if *to, err = parseDuration(*d); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", field, err))
			}
		}
	}
	least := ttl{}
	set("minTTL", g.MinTTL, &least)
	set("maxTTL", g.MaxTTL, &c.bounds.maxTTL)
	c.bounds.minTTL = least.duration
	if g.MinNotice != nil {
		var err error
		if c.bounds.minNotice, err = parseNotice(*g.MinNotice); err != nil {
			errs = append(errs, fmt.Errorf("minNotice: %w", err))
		}
	}
	c.bounds.forbidNever = g.AllowNever != nil && !*g.AllowNever
	count := func(field string, n *int64, least, most int64, to *int) {
		if n != nil {
			var err error
			*to, err = inRange(field, *n, least, most)
			errs = append(errs, err)
		}
	}
	count("maxDeletionsPerMinute", g.MaxDeletionsPerMinute, 1, gc.MaxNumber, &c.bounds.PerMinute)
	errs = append(errs, c.compileWindows(g.Windows)...)
	if g.HoldAbove != nil {
		count("holdAbove.objects", g.HoldAbove.Objects, 0, gc.MaxNumber, &c.bounds.HoldAbove.Objects)
		count("holdAbove.percent", g.HoldAbove.Percent, 1, 100, &c.bounds.HoldAbove.Percent)
		count("holdAbove.total", g.HoldAbove.Total, 0, gc.MaxNumber, &c.bounds.HoldAbove.Total)
	}
	return errors.Join(append(errs, c.compileCeilings(g)...)...)
}

func (c *Cluster) compileCeilings(g *gc.Guardrails) (errs []error) {
	c.Ceilings = map[string]int{}
	for i := range g.Ceilings {
		resources := g.Ceilings[i].Resources
		if len(resources) == 0 {
			resources = defaultResources
		}
		field := fmt.Sprintf("ceilings[%d].resources", i)
		errs = append(errs, checkResources(field, resources), checkNamed(field, afterFinished.Trigger, resources))
		for _, resource := range resources {
			if g.Ceilings[i].MaxObjects == nil {
				errs = append(errs, fmt.Errorf("ceilings[%d].maxObjects is missing", i))
				continue
			}
			most, err := inRange(fmt.Sprintf("ceilings[%d].maxObjects", i), *g.Ceilings[i].MaxObjects, 0, gc.MaxNumber)
			c.Ceilings[resource], errs = most, append(errs, err)
		}
	}
	return errs
}

func (c *Cluster) compileWindows(all []gc.Window) (errs []error) {
	for i := range all {
		w, err := windows.Compile(&all[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("windows[%d].%w", i, err))
		}
		c.windows = append(c.windows, w)
	}
	return errs
}

// WindowsOf returns the windows of each cluster policy that has any. Deletions start only while a window of each is open. Windows of
// Preview policies have no effect.
func WindowsOf(policies []*Policy) []windows.Set {
	var out []windows.Set
	for _, p := range policies {
		if !p.Preview && len(p.Cluster.windows) > 0 {
			out = append(out, windows.Set{Policy: p.Name, Windows: p.Cluster.windows})
		}
	}
	return out
}
