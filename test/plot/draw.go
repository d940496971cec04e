// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// manifold is how many times its smallest value the largest of an axis is when the axis becomes logarithmic.
const manifold = 20

// save writes an SVG file with a line for each series. An axis is logarithmic when its values are all positive and far apart;
// otherwise it begins at 0, so that heights can be compared.
func (d *picture) save(file string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = d.Title, d.X, d.Y
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	var lines []any
	for _, s := range d.Series {
		points := make(plotter.XYs, len(s.Points))
		for i, point := range s.Points {
			points[i] = plotter.XY{X: point[0], Y: point[1]}
		}
		lines = append(lines, s.Name, points)
	}
	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return err
	}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		if axis.Min > 0 && axis.Max >= manifold*axis.Min {
			axis.Scale, axis.Tick.Marker = plot.LogScale{}, plot.TickerFunc(decades)
		} else {
			axis.Min = min(axis.Min, 0)
		}
	}
	return p.Save(16*vg.Centimeter, 10*vg.Centimeter, file)
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
