// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
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
	count := func(field string, n *int64, least int64, to *int) {
		if n != nil {
			var err error
			*to, err = inRange(field, *n, least, gc.MaxNumber)
			errs = append(errs, err)
		}
	}
	count("maxDeletionsPerMinute", g.MaxDeletionsPerMinute, 1, &c.bounds.PerMinute)
	if g.HoldAbove != nil {
		count("holdAbove.objects", g.HoldAbove.Objects, 0, &c.bounds.HoldAbove.Objects)
		count("holdAbove.total", g.HoldAbove.Total, 0, &c.bounds.HoldAbove.Total)
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
