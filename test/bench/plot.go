// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// manifold is how many times its smallest value the largest of an axis is when the axis becomes logarithmic.
const manifold = 20

// series is one line of a plot, its points from left to right.
type series struct {
	name   string
	points plotter.XYs
}

// plot writes NAME.svg with a line for each series. An axis is logarithmic when its values are all positive and far apart;
// otherwise it begins at 0, so that heights can be compared.
func (r *report) plot(name, title, xLabel, yLabel string, all ...series) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, xLabel, yLabel
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	var lines []any
	for _, s := range all {
		lines = append(lines, s.name, s.points)
	}
	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return fmt.Errorf("plot %s: %w", name, err)
	}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		if axis.Min > 0 && axis.Max >= manifold*axis.Min {
			axis.Scale, axis.Tick.Marker = plot.LogScale{}, plot.TickerFunc(decades)
		} else {
			axis.Min = min(axis.Min, 0)
		}
	}
	return p.Save(16*vg.Centimeter, 10*vg.Centimeter, filepath.Join(r.dir, name+".svg"))
}

// decades labels 1, 2 and 5 times each power of ten.
func decades(from, to float64) []plot.Tick {
	var ticks []plot.Tick
	for power := math.Pow10(int(math.Floor(math.Log10(from)))); power <= to; power *= 10 {
		for _, times := range []float64{1, 2, 5} {
			if value := times * power; value >= from && value <= to {
				ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', -1, 64)})
			}
		}
	}
	return ticks
}
