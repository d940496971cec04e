// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// topOptions are those of the command top.
type topOptions struct {
	*plugin
	output
	allNamespaces, once bool
	interval            time.Duration
}

func newTop(p *plugin) *cobra.Command {
	o := &topOptions{plugin: p}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show live, by namespace, what waits, what is due, and how fast it is deleted",
		Long: `Show by namespace how many objects Winnow will delete, how many are due, and how fast they are deleted. On a terminal, the numbers
refresh until you press Ctrl-C. Elsewhere, and with --once or -o, this command prints once.

  CANDIDATES  objects that policies decide for
  DUE         of them, past their time and not yet gone
  HELD        of those due, what something keeps
  CAPACITY    the fullest limit by count: objects, limit, and percent
  RATE        objects deleted per minute, over the last minute. It needs ten seconds to show
  NEXT        when the next candidate becomes due

While objects are due, a bar shows how many of them are gone, of the most there were, and how long the others take at this speed.

Objects of a cluster policy count in the row of their namespace. Its own row ccup/NAME counts the others, if it has objects in more than the
50 namespaces that its status lists. It also shows its ceilings, and RATE and NEXT for all its namespaces together, which the rows of the
namespaces leave out.

With -n, cluster policies are not read: what they decide in the namespace is counted among its first 250 candidates. A plus sign means that
there can be more. RATE does not count them.

What is read each time: the policies with their status, which Winnow updates every few seconds, and for CAPACITY the first 20 candidates
of five of the namespaces on the screen (with --once or -o, of the first 20 namespaces). So a limit that counts few objects can be missed,
and "?" means that it was not read yet. If a reading takes long, the next one waits ten times as long. Nothing is written.`,
		Example: `  # All namespaces, until Ctrl-C
  kubectl winnow top

  # One namespace, for example because you may read no other
  kubectl winnow top -n team-a

  # Once, for a script
  kubectl winnow top --once
  kubectl winnow top -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.output.addFlags(cmd, "json", "yaml", "wide")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show all namespaces. This is the default without --namespace.")
	cmd.Flags().BoolVar(&o.once, "once", false, "Print once, and end.")
	cmd.Flags().DurationVar(&o.interval, "interval", 2*time.Second, "How often to refresh, at least 1s.")
	return cmd
}

const (
	// atOnce is how many namespaces one reading takes samples of, and atOnceOnly of a reading that is the only one.
	atOnce, atOnceOnly = 5, 20
	// sampleMost is how many candidates of a namespace are read for its limits, and othersMost if no status counts some of them.
	sampleMost, othersMost = 20, 250
	// readingMost is how long a reading may take, so that the screen says soon that nobody answers.
	readingMost = 30 * time.Second
	// pause is how much longer than a reading takes the next one waits at least.
	pause = 10
	// sizeEvery is how often the size of the window is looked at.
	sizeEvery = 250 * time.Millisecond
)

func (o *topOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	if o.interval < time.Second {
		return fmt.Errorf("--interval=%s is too short: use at least 1s", o.interval)
	}
	namespace := *o.flags.Namespace
	if o.allNamespaces {
		namespace = ""
	}
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return err
	}
	said := &collected{}
	config.WarningHandler = said
	cluster, err := local.New(config)
	if err != nil {
		return err
	}
	if err := expectWinnow(ctx, cluster, "nothing is deleted"); err != nil {
		return err
	}
	statuses, err := cluster.StatusReader(ctx, namespace)
	if err != nil {
		return err
	}
	r := &topReader{statuses: statuses, namespace: namespace, said: said, samples: map[string]sample{}}
	if s := newScreen(o.Out); s != nil && !o.once && (o.format == "" || o.format == "wide") {
		return o.follow(ctx, r, s)
	}
	return o.printOnce(ctx, r)
}

func (o *topOptions) printOnce(ctx context.Context, r *topReader) error {
	d, err := r.read(ctx, time.Now(), atOnceOnly, atOnceOnly)
	if err != nil {
		return err
	}
	if printed, err := o.document(o.Out, d); printed {
		return err
	}
	for _, note := range d.Incomplete {
		o.warn(note)
	}
	return o.print(d)
}

// print prints a reading without limits of a window.
func (o *topOptions) print(d *topDocument) error {
	if len(d.Rows) == 0 {
		fmt.Fprintf(o.Out, "No policy that deletes anything %s. To see what lies around: kubectl winnow report\n", gc.InNamespace(d.Namespace))
		return nil
	}
	lines, err := d.table(math.MaxInt, o.format == "wide")
	for _, l := range lines {
		fmt.Fprintln(o.Out, l.text)
	}
	return err
}

// follow shows readings until the context ends, and leaves the last one on the terminal.
func (o *topOptions) follow(ctx context.Context, r *topReader, s *screen) error {
	_, height := s.size()
	d, err := r.read(ctx, time.Now(), height, atOnce)
	if err != nil {
		return err
	}
	func() {
		s.open()
		defer s.close()
		err = o.refresh(ctx, r, s, &d)
	}()
	if err != nil {
		return err
	}
	return o.print(d)
}

// refresh draws readings until the context ends. d is the last one that succeeded.
func (o *topOptions) refresh(ctx context.Context, r *topReader, s *screen, d **topDocument) error {
	ticker := time.NewTicker(sizeEvery)
	defer ticker.Stop()
	next, drawnWidth, drawnHeight := time.Now().Add(o.interval), 0, 0
	var failure error
	for {
		width, height := s.size()
		if began := time.Now(); !began.Before(next) {
			var now *topDocument
			if now, failure = r.read(ctx, began, (*d).rowsIn(height), atOnce); failure == nil {
				*d = now
			}
			next = time.Now().Add(max(o.interval-time.Since(began), pause*time.Since(began)))
			drawnWidth = 0
		}
		if ctx.Err() != nil {
			return nil
		}
		if width != drawnWidth || height != drawnHeight {
			title := fmt.Sprintf("%s, every %s. To stop, press Ctrl-C.", (*d).Time.Format(time.RFC3339), o.interval)
			lines, err := (*d).frame(title, failure, o.format == "wide", width, height)
			if err != nil {
				return err
			}
			s.draw(lines)
			drawnWidth, drawnHeight = width, height
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// topReader makes readings.
type topReader struct {
	statuses  *local.StatusReader
	namespace string
	said      *collected
	history   history
	samples   map[string]sample
}

// sample is what a namespace had when a sample of it was taken last.
type sample struct {
	at       time.Time
	capacity *fullness
}

// read makes a reading, and takes samples of at most so many namespaces among the first rows.
func (r *topReader) read(ctx context.Context, now time.Time, rowsShown, most int) (*topDocument, error) {
	ctx, cancel := context.WithTimeout(ctx, readingMost)
	defer cancel()
	r.said.texts = nil
	statuses, err := r.statuses.Read(ctx)
	if err != nil {
		return nil, err
	}
	d := &topDocument{Time: now.UTC().Truncate(time.Second), Namespace: r.namespace, Rows: usagesOf(statuses)}
	if r.namespace != "" {
		err = r.readNamespace(ctx, d)
	} else {
		sortUsages(d.Rows)
		err = r.takeSamples(ctx, now, d.Rows[:min(rowsShown, len(d.Rows))], most)
	}
	if err != nil {
		return nil, err
	}
	for i := range d.Rows {
		if s, ok := r.samples[d.Rows[i].Namespace]; ok && r.namespace == "" && d.Rows[i].ClusterPolicy == "" {
			d.Rows[i].sampled, d.Rows[i].Capacity = true, s.capacity
		}
	}
	d.backlog = r.history.add(now, statuses, d.Rows)
	d.Total = total(d.Rows)
	slices.Sort(r.said.texts)
	d.Incomplete = append(slices.Clone(r.statuses.Notes()), slices.Compact(r.said.texts)...)
	return d, nil
}

// readNamespace completes the only row.
func (r *topReader) readNamespace(ctx context.Context, d *topDocument) error {
	if !r.statuses.MaySample() {
		return nil
	}
	candidates, more, err := r.statuses.Sample(ctx, r.namespace, othersMost)
	if err != nil {
		return err
	}
	if len(d.Rows) == 0 {
		d.Rows = []usage{{Namespace: r.namespace}}
	}
	u := &d.Rows[0]
	u.addSample(candidates)
	if u.addOthers(candidates, more); u.Candidates == 0 && len(u.policies) == 0 {
		d.Rows = []usage{}
	}
	return nil
}

// takeSamples looks for limits where that is the longest time ago.
func (r *topReader) takeSamples(ctx context.Context, now time.Time, rows []usage, most int) error {
	if !r.statuses.MaySample() {
		return nil
	}
	var names []string
	for i := range rows {
		if rows[i].ClusterPolicy == "" {
			names = append(names, rows[i].Namespace)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return r.samples[a].at.Compare(r.samples[b].at) })
	for _, name := range names[:min(most, len(names))] {
		candidates, _, err := r.statuses.Sample(ctx, name, sampleMost)
		if err != nil {
			return err
		}
		var u usage
		u.addSample(candidates)
		r.samples[name] = sample{now, u.Capacity}
	}
	return nil
}
