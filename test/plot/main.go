// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command plot draws the plots of test/bench: for each NAME.plot.json that is given, it writes NAME.svg into the same folder. To draw the
// plots of earlier measurements again: go -C test/plot run . "$PWD"/_output/bench/*.plot.json
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

func main() {
	var failed []error
	for _, file := range os.Args[1:] {
		if err := draw(file); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", file, err))
		}
	}
	if err := errors.Join(failed...); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

// picture is what test/bench writes for a plot.
type picture struct {
	Title  string   `json:"title"`
	X      string   `json:"x"`
	Y      string   `json:"y"`
	Series []series `json:"series"`
}

// series is one line of a plot, its points from left to right.
type series struct {
	Name   string       `json:"name"`
	Points [][2]float64 `json:"points"`
}

// draw draws one file.
func draw(file string) error {
	target, ok := strings.CutSuffix(file, ".plot.json")
	if !ok {
		return errors.New("the name does not end in .plot.json")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var p picture
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	return p.save(target + ".svg")
}
