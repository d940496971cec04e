// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/policytest"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

// errFailed ends tests of which one has failed.
var errFailed = errors.New("a test has failed")

// testOptions are the flags of kubectl winnow test.
type testOptions struct {
	*session.Session
	format output.Format
}

func newTest(s *session.Session) *cobra.Command {
	o := &testOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Test policies from files, without a cluster",
		Long: `Test policies from files, without a cluster.

A test file says what Winnow must decide about objects at a time. Each PATH is a test file, or a folder: then all files below it whose
names end with ` + policytest.Suffixes + ` are test files. The default is the current folder.

A test file has one document of kind PolicyTest. Its other documents, and the documents of the files that it names, are what the cluster
has: policies, ResourceLifecycles, Namespaces, and objects of any kind, as "kubectl get -o yaml --show-managed-fields" prints them. What is
in none of them does not exist. The code of the server then decides.

  apiVersion: ` + policytest.APIVersion + `
  kind: ` + policytest.Kind + `
  now: "2026-01-31T12:00:00Z"
  files: [policy.yaml]
  expect:
  - {object: jobs.batch/report, state: Waiting, reason: NotDue, rule: keep-failures, due: "2026-02-07T10:00:00Z"}
  ---
  apiVersion: batch/v1
  kind: Job
  metadata: {name: report}
  status:
    conditions: [{type: Failed, status: "True", lastTransitionTime: "2026-01-31T10:00:00Z"}]

Each object that a policy may be about needs an expectation, unless the test says "partial: true".

Exit status: 0 if everything is as expected, 1 if it is not, 2 if a test cannot run, for example because a file cannot be read.`,
		Example: `  # Run all tests below the current folder
  kubectl winnow test

  # In a pipeline that shows test results
  kubectl winnow test policies -o junit > results.xml`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.format.AddFlag(cmd, "json", "junit")
	return cmd
}

func (o *testOptions) run(ctx context.Context, paths []string) error {
	if err := o.format.Validate(); err != nil {
		return err
	}
	if len(paths) == 0 {
		paths = []string{"."}
	}
	found, err := policytest.Find(paths)
	if err != nil {
		return err
	}
	var s policytest.Summary
	for _, path := range found {
		s.Add(policytest.Run(ctx, path))
	}
	if err := o.print(&s); err != nil {
		return err
	}
	switch {
	case s.Errors > 0:
		return fmt.Errorf("%d of %d tests could not run", s.Errors, len(s.Tests))
	case s.Failed > 0:
		return errFailed
	}
	return nil
}

func (o *testOptions) print(s *policytest.Summary) error {
	if printed, err := o.format.Document(o.Out, s); printed {
		return err
	}
	if o.format.Name == "junit" {
		return s.PrintJUnit(o.Out)
	}
	s.Print(o.Out)
	return nil
}
