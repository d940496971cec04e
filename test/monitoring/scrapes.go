// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
)

// scrapes are the answers of several servers over some time, as Prometheus has them after it has scraped these servers.
type scrapes struct {
	*teststorage.TestStorage
	engine     *promql.Engine
	start, end time.Time
	// interval is how often each server was scraped.
	interval time.Duration
}

// load reads the answers in a folder. The name of each file has the time in milliseconds, the job and the instance:
// 1700000000000_JOB_INSTANCE.
func load(folder string) (*scrapes, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_*_*"))
	if err != nil {
		return nil, err
	}
	db, err := teststorage.NewWithError()
	if err != nil {
		return nil, err
	}
	s := &scrapes{TestStorage: db, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{}),
	})}
	slices.Sort(files) // By time.
	times := map[int64]bool{}
	for _, file := range files {
		at, err := s.add(file)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", file, err), db.Close())
		}
		times[at.UnixMilli()] = true
		if s.end = at; s.start.IsZero() {
			s.start = at
		}
	}
	if len(times) < 3 {
		return nil, errors.Join(fmt.Errorf("%s has the scrapes of %d times; a rate needs more", folder, len(times)), db.Close())
	}
	s.interval = s.end.Sub(s.start) / time.Duration(len(times)-1)
	return s, nil
}

// add adds the answer in a file.
func (s *scrapes) add(file string) (time.Time, error) {
	name := strings.SplitN(filepath.Base(file), "_", 3)
	milli, err := strconv.ParseInt(name[0], 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return time.Time{}, err
	}
	target := labels.FromStrings("job", name[1], "instance", name[2])
	app := s.Appender(context.Background())
	if err := appendText(app, text, target, milli); err != nil {
		return time.Time{}, errors.Join(err, app.Rollback())
	}
	return time.UnixMilli(milli).UTC(), app.Commit()
}

func appendText(app storage.Appender, text []byte, target labels.Labels, milli int64) error {
	p, err := textparse.New(text, "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return err
	}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, value := p.Series()
		var series labels.Labels
		p.Labels(&series)
		b := labels.NewBuilder(series)
		target.Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
		if _, err := app.Append(0, b.Labels(), milli, value); err != nil {
			return fmt.Errorf("%s: %w", series, err)
		}
	}
}

// matrix evaluates an expression over the whole time.
func (s *scrapes) matrix(ctx context.Context, expr string) (promql.Matrix, error) {
	q, err := s.engine.NewRangeQuery(ctx, s, nil, expr, s.start.Add(2*s.interval), s.end, s.interval)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	result := q.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	if len(result.Warnings) > 0 {
		return nil, fmt.Errorf("%v", result.Warnings)
	}
	all, err := result.Matrix()
	return slices.Clone(all), err
}
