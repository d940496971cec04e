// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"math"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	// A panel of Grafana has its position in columns, of which there are 24, and rows.
	columnWidth, rowHeight = 40 * vg.Length(1), 27 * vg.Length(1)
	columns                = 24
	margin                 = 8 * vg.Length(1)
	small, medium, large   = 8 * vg.Length(1), 11 * vg.Length(1), 22 * vg.Length(1)
	legendColumns          = 3
)

var typeface = font.Font{Typeface: "Liberation", Variant: "Sans"}

// draw draws the dashboard to an SVG file.
func (b *board) draw(ctx context.Context, s *scrapes, file string) error {
	rows := 0
	for i := range b.Panels {
		rows = max(rows, b.Panels[i].GridPos.Y+b.Panels[i].GridPos.H)
	}
	width, height := columns*columnWidth, vg.Length(rows)*rowHeight
	svg := vgsvg.New(width, height)
	whole := draw.New(svg)
	fill(whole, color.Gray{Y: 0xf2})
	for i := range b.Panels {
		p := &b.Panels[i]
		left, top := vg.Length(p.GridPos.X)*columnWidth, height-vg.Length(p.GridPos.Y)*rowHeight
		area := draw.Crop(whole,
			left+margin/4, left+vg.Length(p.GridPos.W)*columnWidth-margin/4-width,
			top-vg.Length(p.GridPos.H)*rowHeight+margin/4, top-margin/4-height)
		fill(area, color.White)
		lines, err := p.lines(ctx, s)
		if err != nil {
			return err
		}
		area = draw.Crop(area, margin, -margin, margin, -margin)
		write(area, p.Title, medium, draw.XLeft, vg.Point{X: area.Min.X, Y: area.Max.Y - medium})
		area.Max.Y -= 2 * medium
		if p.Type == "stat" {
			p.drawStat(area, lines)
		} else if err := p.drawLines(area, lines); err != nil {
			return fmt.Errorf("panel %q: %w", p.Title, err)
		}
	}
	var out bytes.Buffer
	if _, err := svg.WriteTo(&out); err != nil {
		return err
	}
	// Arial is as wide, and on machines that do not have the typeface.
	text := bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,sans-serif"))
	return os.WriteFile(file, text, 0o600)
}

// drawStat writes the last value of a panel.
func (p *panel) drawStat(area draw.Canvas, lines []line) {
	points := lines[0].Floats
	write(area, p.format(points[len(points)-1].F), large, draw.XCenter, vg.Point{X: area.Center().X, Y: area.Center().Y - large/3})
}

// drawLines draws the lines of a panel, and their legend below.
func (p *panel) drawLines(area draw.Canvas, lines []line) error {
	shown := plot.New()
	shown.X.Tick.Marker = plot.TimeTicks{Format: "15:04"}
	shown.Y.Tick.Marker = plot.TickerFunc(func(from, to float64) []plot.Tick {
		ticks := plot.DefaultTicks{}.Ticks(from, to)
		for i := range ticks {
			if ticks[i].Label != "" {
				ticks[i].Label = p.format(ticks[i].Value)
			}
		}
		return ticks
	})
	for _, axis := range []*plot.Axis{&shown.X, &shown.Y} {
		axis.Tick.Label.Font = font.From(typeface, font.Length(small))
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = color.Gray{Y: 0x99}, color.Gray{Y: 0x99}
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 0xe6}, color.Gray{Y: 0xe6}
	shown.Add(grid)
	legendRows := (len(lines) + legendColumns - 1) / legendColumns
	legend := vg.Length(legendRows) * small * 3 / 2
	for i, l := range lines {
		drawn, err := plotter.NewLine(xys(l))
		if err != nil {
			return err
		}
		drawn.Color, drawn.Width = plotutil.Color(i), 1.5
		shown.Add(drawn)
		width := (area.Max.X - area.Min.X) / legendColumns
		x, y := area.Min.X+vg.Length(i%legendColumns)*width, area.Min.Y+vg.Length(legendRows-1-i/legendColumns)*small*3/2
		area.StrokeLine2(drawn.LineStyle, x, y+small/3, x+small*3/2, y+small/3)
		write(area, l.legend, small, draw.XLeft, vg.Point{X: x + small*2, Y: y})
	}
	if shown.Y.Min = min(shown.Y.Min, 0); shown.Y.Max <= shown.Y.Min {
		shown.Y.Max = shown.Y.Min + 1
	}
	shown.Y.Max += (shown.Y.Max - shown.Y.Min) / 20 // Otherwise the highest line is at the edge.
	shown.Draw(draw.Crop(area, 0, 0, legend+margin/2, 0))
	return nil
}

func xys(l line) plotter.XYs {
	var out plotter.XYs
	for _, point := range l.Floats {
		out = append(out, plotter.XY{X: float64(point.T) / 1000, Y: point.F})
	}
	return out
}

// format writes a value with the unit of the panel, which is named as Grafana does.
func (p *panel) format(v float64) string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	switch unit := p.FieldConfig.Defaults.Unit; unit {
	case "s":
		if v != 0 && math.Abs(v) < 1 {
			return number(v*1000) + " ms"
		}
		return number(v) + " s"
	case "d":
		return strconv.FormatFloat(v, 'f', 0, 64) + " days"
	case "ops":
		return number(v) + "/s"
	case "bytes":
		return strconv.FormatFloat(v/(1<<20), 'f', 0, 64) + " MiB"
	case "percentunit":
		return number(v*100) + "%"
	default:
		return number(v)
	}
}

func write(area draw.Canvas, s string, size vg.Length, align text.XAlignment, at vg.Point) {
	area.FillText(draw.TextStyle{
		Color: color.Gray{Y: 0x33}, Font: font.From(typeface, font.Length(size)), XAlign: align, Handler: plot.DefaultTextHandler,
	}, at, s)
}

func fill(area draw.Canvas, c color.Color) {
	area.FillPolygon(c, []vg.Point{
		area.Min, {X: area.Max.X, Y: area.Min.Y}, area.Max, {X: area.Min.X, Y: area.Max.Y},
	})
}
