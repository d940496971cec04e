// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/winnow-dev/winnow/pkg/plugin/output"
)

// Summary has the results of all test files.
type Summary struct {
	Tests  []Result `json:"tests"`
	Passed int      `json:"passed"`
	Failed int      `json:"failed"`
	// Errors is how many test files could not run.
	Errors int `json:"errors"`
}

// Add adds a result.
func (s *Summary) Add(r Result) {
	s.Tests = append(s.Tests, r)
	switch {
	case r.Error != "":
		s.Errors++
	case r.Failed():
		s.Failed++
	default:
		s.Passed++
	}
}

// Print prints the results for people.
func (s *Summary) Print(w io.Writer) {
	for i := range s.Tests {
		s.Tests[i].print(w)
	}
	fmt.Fprintf(w, "\n%d passed, %d failed, %d could not run\n", s.Passed, s.Failed, s.Errors)
}

func (r *Result) print(w io.Writer) {
	switch {
	case r.Error != "":
		output.PrintLine(w, "ERROR  ", r.File+": "+r.Error)
		return
	case !r.Failed():
		output.PrintLine(w, "ok     ", r.File)
		return
	}
	output.PrintLine(w, "FAIL   ", r.File)
	for i := range r.Objects {
		if o := &r.Objects[i]; len(o.Failures) > 0 {
			output.PrintLine(w, "       ", o.title()+": "+strings.Join(o.Failures, "; "))
			for _, line := range o.explanation() {
				output.PrintLine(w, "         ", line)
			}
		}
	}
}

// explanation says why an object has failed, and what to add if that is right.
func (r *ObjectResult) explanation() []string {
	out := []string{output.Sentence(r.Message)}
	if r.Hint != "" {
		out = append(out, output.Sentence(r.Hint))
	}
	if r.Add != "" {
		out = append(out, "If that is right, add to expect: "+r.Add)
	}
	return out
}

func (r *ObjectResult) title() string { return r.Object + " in namespace " + r.Namespace }

// The elements of JUnit's XML that CI systems read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string      `xml:"classname,attr"`
		Name    string      `xml:"name,attr"`
		Failure *junitFault `xml:"failure,omitempty"`
		Error   *junitFault `xml:"error,omitempty"`
	}
	junitFault struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// PrintJUnit prints the results as XML: a test suite for each file, with a test case for each object.
func (s *Summary) PrintJUnit(w io.Writer) error {
	var out junitSuites
	for i := range s.Tests {
		suite := s.Tests[i].junit()
		out.Suites = append(out.Suites, suite)
		out.Tests, out.Failures, out.Errors = out.Tests+suite.Tests, out.Failures+suite.Failures, out.Errors+suite.Errors
	}
	encoded, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, encoded)
	return err
}

func (r *Result) junit() junitSuite {
	out := junitSuite{Name: r.File}
	if r.Error != "" {
		out.Errors = 1
		out.Cases = append(out.Cases, junitCase{Class: r.File, Name: r.File, Error: &junitFault{Message: r.Error}})
	}
	for i := range r.Objects {
		o := &r.Objects[i]
		one := junitCase{Class: r.File, Name: o.title()}
		if len(o.Failures) > 0 {
			out.Failures++
			one.Failure = &junitFault{Message: strings.Join(o.Failures, "; "), Text: strings.Join(o.explanation(), "\n")}
		}
		out.Cases = append(out.Cases, one)
	}
	out.Tests = len(out.Cases)
	return out
}
