// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
	"github.com/winnow-dev/winnow/pkg/plugin/top"
)

// topOptions are the flags of kubectl winnow top.
type topOptions struct {
	*session.Session
	format              output.Format
	allNamespaces, once bool
	interval            time.Duration
}

func newTop(s *session.Session) *cobra.Command {
	o := &topOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show live, by namespace, what waits, what is due, and how fast it is deleted",
		Long: `Show by namespace how many objects Winnow will delete, how many are due, and how fast they are deleted. On a terminal, the numbers
refresh until you press Ctrl-C. Elsewhere, and with --once or -o, this command prints once.

  CANDIDATES  objects that policies decide for
  DUE         candidates that are due but still exist
  HELD        due objects that Winnow cannot delete now
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
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.format.AddFlag(cmd, "json", "yaml", "wide")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show all namespaces. This is the default without --namespace.")
	cmd.Flags().BoolVar(&o.once, "once", false, "Print once, and end.")
	cmd.Flags().DurationVar(&o.interval, "interval", 2*time.Second, "How often to refresh, at least 1s.")
	return cmd
}

const (
	// atOnce is how many namespaces one reading takes samples of, and atOnceOnly of a reading that is the only one.
	atOnce, atOnceOnly = 5, 20
	// pause is how much longer than a reading takes the next one waits at least.
	pause = 10
	// sizeEvery is how often the size of the window is looked at.
	sizeEvery = 250 * time.Millisecond
)

func (o *topOptions) run(ctx context.Context) error {
	if err := o.format.Validate(); err != nil {
		return err
	}
	if o.interval < time.Second {
		return fmt.Errorf("--interval=%s is too short: use at least 1s", o.interval)
	}
	namespace := *o.Flags.Namespace
	if o.allNamespaces {
		namespace = ""
	}
	cluster, said, err := o.Collecting()
	if err != nil {
		return err
	}
	if err := session.ExpectWinnow(ctx, cluster, "nothing is deleted"); err != nil {
		return err
	}
	statuses, err := cluster.StatusReader(ctx, namespace)
	if err != nil {
		return err
	}
	r := top.NewReader(statuses, namespace, said)
	if s := output.NewScreen(o.Out); s != nil && !o.once && (o.format.Name == "" || o.format.Name == "wide") {
		return o.follow(ctx, r, s)
	}
	return o.printOnce(ctx, r)
}

func (o *topOptions) printOnce(ctx context.Context, r *top.Reader) error {
	d, err := r.Read(ctx, time.Now(), atOnceOnly, atOnceOnly)
	if err != nil {
		return err
	}
	if printed, err := o.format.Document(o.Out, d); printed {
		return err
	}
	for _, note := range d.Incomplete {
		o.Warn(note)
	}
	return d.Print(o.Out, o.format.Name == "wide")
}

// follow shows readings until the context ends, and leaves the last one on the terminal.
func (o *topOptions) follow(ctx context.Context, r *top.Reader, s *output.Screen) error {
	_, height := s.Size()
	d, err := r.Read(ctx, time.Now(), height, atOnce)
	if err != nil {
		return err
	}
	func() {
		s.Open()
		defer s.Close()
		err = o.refresh(ctx, r, s, &d)
	}()
	if err != nil {
		return err
	}
	return d.Print(o.Out, o.format.Name == "wide")
}

// refresh draws readings until the context ends. d is the last one that succeeded.
func (o *topOptions) refresh(ctx context.Context, r *top.Reader, s *output.Screen, d **top.Document) error {
	ticker := time.NewTicker(sizeEvery)
	defer ticker.Stop()
	next, drawnWidth, drawnHeight := time.Now().Add(o.interval), 0, 0
	var failure error
	for {
		width, height := s.Size()
		if began := time.Now(); !began.Before(next) {
			var now *top.Document
			if now, failure = r.Read(ctx, began, (*d).RowsIn(height), atOnce); failure == nil {
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
			lines, err := (*d).Frame(title, failure, o.format.Name == "wide", width, height)
			if err != nil {
				return err
			}
			s.Draw(lines)
			drawnWidth, drawnHeight = width, height
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
