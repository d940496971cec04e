// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

// keepOptions are the flags of kubectl winnow keep.
type keepOptions struct {
	*session.Session
	format          output.Format
	duration, until string
	forever         bool
}

func newKeep(s *session.Session) *cobra.Command {
	o := &keepOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "keep TYPE/NAME (--for DURATION | --until DATE | --forever)",
		Short: "Keep an object for longer",
		Long: `Keep an object for longer than the policies say. This command annotates the object, and then says how long Winnow keeps it:
a guardrail of the cluster, or spec.ttlSecondsAfterFinished of a Job, can end it earlier.

It never shortens how long an object is kept. To undo it: kubectl winnow release TYPE/NAME`,
		Example: `  # Two days from now
  kubectl winnow keep job/report --for 2d

  # Until a day begins (00:00 UTC), or until a time
  kubectl winnow keep job/report --until 2027-01-31
  kubectl winnow keep job/report --until 2027-01-31T12:00:00Z

  kubectl winnow keep job/report --forever`,
		Args:              oneObject,
		ValidArgsFunction: s.CompleteObject,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVar(&o.duration, "for", "", "Keep the object for this long from now: whole numbers with units, for example 2d or 1h30m.")
	cmd.Flags().StringVar(&o.until, "until", "", "Keep the object until this time (RFC 3339), or until this day begins in UTC: 2027-01-31.")
	cmd.Flags().BoolVar(&o.forever, "forever", false, "Keep the object without end.")
	o.format.AddFlag(cmd, "json", "yaml", "name")
	return cmd
}

// annotations returns what the object gets. A nil removes an annotation.
func (o *keepOptions) annotations(now time.Time) (map[string]*string, error) {
	if o.given() != 1 {
		return nil, errors.New("say how long to keep it with one of the flags --for 2d, --until 2027-01-31 and --forever")
	}
	if o.forever {
		return map[string]*string{gc.AnnotationTTL: new(string(gc.TTLNever))}, nil
	}
	until, err := o.end(now)
	if err != nil {
		return nil, err
	}
	if !until.After(now) {
		return nil, fmt.Errorf("%s is past", until.Format(time.RFC3339))
	}
	return map[string]*string{gc.AnnotationKeepUntil: new(gc.WholeSecond(until).UTC().Format(time.RFC3339))}, nil
}

// given returns how many flags say how long to keep the object.
func (o *keepOptions) given() int {
	given := 0
	for _, is := range []bool{o.duration != "", o.until != "", o.forever} {
		if is {
			given++
		}
	}
	return given
}

// end returns when the object is no longer kept.
func (o *keepOptions) end(now time.Time) (time.Time, error) {
	if o.duration != "" {
		d, err := gc.ParseDuration(o.duration)
		if err != nil {
			return time.Time{}, fmt.Errorf("--for=%q %w; use for example 2d or 1h30m", o.duration, err)
		}
		return now.Add(d), nil
	}
	if at, ok := moment(o.until); ok {
		return at, nil
	}
	return time.Time{}, fmt.Errorf("--until=%q is neither a time nor a day; use for example 2027-01-31T12:00:00Z or 2027-01-31", o.until)
}

// moment returns the time that a text is (RFC 3339), or at which the day begins in UTC that it is.
func moment(text string) (at time.Time, ok bool) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

func (o *keepOptions) run(ctx context.Context, args []string) error {
	if err := o.format.Validate(); err != nil {
		return err
	}
	now := time.Now()
	annotations, err := o.annotations(now)
	if err != nil {
		return err
	}
	t, err := o.Object(args)
	if apierrors.IsNotFound(err) {
		return withoutWinnow(ctx, o.Session, err)
	}
	if err != nil {
		return err
	}
	if err := lengthens(annotations, t.Content.GetAnnotations()); err != nil {
		return err
	}
	warning, err := session.ExpectKept(t, annotations)
	if err != nil {
		return err
	}
	if warning != "" {
		o.Warn(warning)
	}
	err = annotate(ctx, o.Session, t, annotations, &o.format, "kept", now)
	return refused(err, t, t.Command("keep")+" "+o.flag())
}

// flag is the flag that says how long to keep the object.
func (o *keepOptions) flag() string {
	switch {
	case o.forever:
		return "--forever"
	case o.duration != "":
		return "--for " + o.duration
	}
	return "--until " + o.until
}

// withoutWinnow adds to an error that there is no Winnow in the cluster, if there is none.
func withoutWinnow(ctx context.Context, s *session.Session, err error) error {
	cluster, errOf := s.Cluster()
	if errOf != nil {
		return err
	}
	if installed, errOf := cluster.Installed(ctx); errOf != nil || installed {
		return err
	}
	return fmt.Errorf("%w; there is no Winnow in this cluster either", err)
}

// refused says who can run the command, if the caller may not change the object.
func refused(err error, t *session.Target, command string) error {
	if !session.LacksRight(err) {
		return err
	}
	return errors.New(err.Error() + "; " + session.WhoMayChange(t.Object.Resource) + " can: " + command) // Not wrapped: it says the way out.
}

// lengthens fails if the object is kept for longer already.
func lengthens(annotations map[string]*string, present map[string]string) error {
	until, before := annotations[gc.AnnotationKeepUntil], present[gc.AnnotationKeepUntil]
	if until == nil || before == "" {
		return nil
	}
	at, errAt := time.Parse(time.RFC3339, *until)
	was, errWas := time.Parse(time.RFC3339, before)
	if errAt == nil && errWas == nil && at.Before(was) {
		return fmt.Errorf("it is kept until %s already; to keep it for less, use kubectl winnow release first", before)
	}
	return nil
}

// releaseOptions are the flags of kubectl winnow release.
type releaseOptions struct {
	*session.Session
	format output.Format
}

func newRelease(s *session.Session) *cobra.Command {
	o := &releaseOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "release TYPE/NAME",
		Short: "Undo keep, so that the policies decide again",
		Long: `Undo keep: remove the annotations with which an object is kept, so that the policies decide again. The object may be deleted at
once. This command says when.`,
		Example:           `  kubectl winnow release job/report`,
		Args:              oneObject,
		ValidArgsFunction: s.CompleteObject,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.format.Validate(); err != nil {
				return err
			}
			t, err := o.Object(args)
			if err != nil {
				return err
			}
			err = annotate(cmd.Context(), o.Session, t, releasing(), &o.format, "released", time.Now())
			return refused(err, t, t.Command("release"))
		},
	}
	o.format.AddFlag(cmd, "json", "yaml", "name")
	return cmd
}

// releasing removes the annotations that keep sets.
func releasing() map[string]*string {
	return map[string]*string{gc.AnnotationTTL: nil, gc.AnnotationKeepUntil: nil}
}

// patchAnnotations changes annotations of an object, and returns the object.
func patchAnnotations(t *session.Target, annotations map[string]*string) (runtime.Object, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return nil, err
	}
	return resource.NewHelper(t.Client, t.Mapping).WithFieldManager("kubectl-winnow").
		Patch(t.Object.Namespace, t.Object.Name, types.MergePatchType, patch, &metav1.PatchOptions{})
}

// annotate changes annotations of an object, and says what Winnow does with it then, as of now.
func annotate(
	ctx context.Context, s *session.Session, t *session.Target, annotations map[string]*string,
	format *output.Format, done string, now time.Time,
) error {
	object, err := patchAnnotations(t, annotations)
	if err != nil {
		return err
	}
	if printed, err := format.Document(s.Out, object); printed {
		return err
	}
	fmt.Fprintf(s.Out, "%s/%s", t.Object.Resource, t.Object.Name)
	if format.Name == "name" {
		fmt.Fprintln(s.Out)
		return nil
	}
	fmt.Fprintln(s.Out, "", done)
	changed, ok := object.(metav1.Object)
	if !ok {
		return errors.New("the answer is no object")
	}
	return tellEnd(ctx, s, t, changed.GetResourceVersion(), now)
}
