// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policytest runs tests of policies from files, without a cluster. A test file says what Winnow must decide, for which objects, at
// which time.
package policytest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/manifest"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// APIVersion and Kind of a Test. No cluster serves it, so that nobody applies one by mistake.
const (
	APIVersion = testGroup + "/v1alpha1"
	Kind       = "PolicyTest"

	testGroup = "test." + v1alpha1.GroupName
)

// Suffix ends the names of test files in a folder, and so does otherSuffix.
const Suffix, otherSuffix = ".test.yaml", ".test.yml"

// Suffixes names both in messages.
const Suffixes = Suffix + " or " + otherSuffix

// Test is the one document of its kind in a test file. All other documents of the file are what the cluster has: policies, lifecycles,
// namespaces, and objects of any kind, as "kubectl get -o yaml" prints them.
type Test struct {
	metav1.TypeMeta `json:",inline"`
	// Now is the time of the test.
	Now metav1.Time `json:"now"`
	// Namespace is for policies and objects that name none, and for expectations and marks. The default is "default".
	Namespace string `json:"namespace,omitempty"`
	// Files are other files with what the cluster has, relative to the test file.
	Files []string `json:"files,omitempty"`
	// Expect has an expectation for each object that Winnow decides about.
	Expect []Expectation `json:"expect"`
	// Partial allows objects without an expectation.
	Partial bool `json:"partial,omitempty"`
	// Marks are what Winnow has stored about objects, because they do not say it themselves.
	Marks []Mark `json:"marks,omitempty"`
}

// Named names an object.
type Named struct {
	// Object is "resource.group/name", with the resource as policies name it: jobs.batch/report, pods/web-1.
	Object string `json:"object"`
	// Namespace is the namespace of the object. The default is the namespace of the test.
	Namespace string `json:"namespace,omitempty"`
}

// Expectation is what Winnow must decide for an object. Fields other than state are compared if they are set. They mean what they mean in
// the status of a CleanupCandidate.
type Expectation struct {
	Named  `json:",inline"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Policy is the policy that decides, as "kubectl get cand" names it: cup/NAME, ccup/NAME, or "cup/NAME (Preview)" if nothing is deleted
	// because the policy is in Preview mode.
	Policy string `json:"policy,omitempty"`
	// Rule is the rule that matches; "default" for the defaults of the policy.
	Rule string `json:"rule,omitempty"`
	// Due is when the object is due.
	Due *metav1.Time `json:"due,omitempty"`
	// Deadline is when a running object ends by the activeDeadline that Winnow sets for it.
	Deadline *metav1.Time `json:"deadline,omitempty"`
}

// Mark is what Winnow has stored about an object.
type Mark struct {
	Named `json:",inline"`
	// Since is when Winnow saw first that a ConfigMap or Secret is unused, that another object has finished that does not say when, or that
	// a rule with after: Matched matches the object.
	Since *metav1.Time `json:"since,omitempty"`
	// NoticeGiven is when Winnow announced the deletion of the object, and NoticeDue the time that the notice names.
	NoticeGiven *metav1.Time `json:"noticeGiven,omitempty"`
	NoticeDue   *metav1.Time `json:"noticeDue,omitempty"`
	// NoticeAcknowledged is when the receiver of notifications acknowledged the notice, for rules with noticeDelivery: Required.
	NoticeAcknowledged *metav1.Time `json:"noticeAcknowledged,omitempty"`
}

// decode decodes a Test strictly.
func decode(document []byte) (*Test, error) {
	content, err := manifest.Decode(document)
	if err != nil {
		return nil, err
	}
	object, _ := content.(map[string]any) // It has a kind.
	var c manifest.Checker
	c.Object(object, reflect.TypeFor[Test]())
	if err := utilerrors.NewAggregate(append(c.Unknown, c.Wrong.ToAggregate())); err != nil {
		return nil, err
	}
	t := &Test{}
	if err := json.Unmarshal(document, t); err != nil {
		return nil, err
	}
	t.Namespace = cmp.Or(t.Namespace, metav1.NamespaceDefault)
	errs := t.validate()
	return t, validation.DidYouMean(errs).ToAggregate()
}

// validate completes the names of objects, and returns what is wrong with the test itself.
func (t *Test) validate() field.ErrorList {
	var errs field.ErrorList
	if t.Now.IsZero() {
		errs = append(errs, field.Required(field.NewPath("now"), `the time of the test, for example "2026-01-31T12:00:00Z"`))
	}
	seen := map[local.Object]bool{}
	for i := range t.Expect {
		e, path := &t.Expect[i], field.NewPath("expect").Index(i)
		errs = append(errs, t.validateName(&e.Named, path)...)
		if seen[e.name()] {
			errs = append(errs, field.Duplicate(path.Child("object"), e.Object))
		}
		seen[e.name()] = true
		switch at := path.Child("state"); {
		case e.State == "":
			errs = append(errs, field.Required(at, "one of "+strings.Join(states, ", ")))
		case !slices.Contains(states, e.State):
			errs = append(errs, field.NotSupported(at, e.State, states))
		}
		if e.Reason != "" && !slices.Contains(reasons, e.Reason) {
			errs = append(errs, field.Invalid(path.Child("reason"), e.Reason, "is no reason of a candidate"+meant(e.Reason, reasons)))
		}
	}
	for i := range t.Marks {
		m, path := &t.Marks[i], field.NewPath("marks").Index(i)
		errs = append(errs, t.validateName(&m.Named, path)...)
		if (m.NoticeGiven == nil) != (m.NoticeDue == nil) || m.NoticeGiven == nil && m.NoticeAcknowledged != nil {
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, "a notice needs both noticeGiven and noticeDue"))
		}
	}
	return errs
}

// validateName sets the namespace of an object.
func (t *Test) validateName(n *Named, path *field.Path) field.ErrorList {
	n.Namespace = cmp.Or(n.Namespace, t.Namespace)
	if resource, name, ok := strings.Cut(n.Object, "/"); !ok || resource == "" || name == "" {
		return field.ErrorList{field.Invalid(path.Child("object"), n.Object,
			`write "resource.group/name", with the resource as policies name it, for example "jobs.batch/report" or "pods/web-1"`)}
	}
	return nil
}

// name returns the name of a valid object.
func (n *Named) name() local.Object {
	resource, name, _ := strings.Cut(n.Object, "/")
	return local.Object{Resource: resource, Namespace: n.Namespace, Name: name}
}

// states are the states of candidates.
var states = []string{
	string(gc.CandidateWaiting), string(gc.CandidateNotified), string(gc.CandidateDue), string(gc.CandidateHeld),
	string(gc.CandidateTerminating), string(gc.CandidateKept), string(gc.CandidateNone),
}

// reasons are the reasons of candidates.
var reasons = func() []string {
	var out []string
	for _, r := range policy.Reasons {
		out = append(out, string(r))
	}
	return out
}()

// meant asks for the word that a text was probably meant to be; empty if none is similar.
func meant(text string, words []string) string {
	if near := validation.Nearest(text, words); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// missing says that a test names an object that is not there, and which was probably meant.
func missing(n *Named, all []local.Object) error {
	var names []string
	for _, o := range all {
		switch name := n.name(); {
		case o.Name != name.Name:
		case o.Resource == name.Resource:
			return fmt.Errorf("there is no %s in namespace %s, but in namespace %s; set namespace", n.Object, n.Namespace, o.Namespace)
		case o.Namespace == name.Namespace: // The group is missing, or this is the singular.
			return fmt.Errorf("there is no %s in namespace %s; did you mean %q?", n.Object, n.Namespace, o.Resource+"/"+o.Name)
		}
		names = append(names, o.Resource+"/"+o.Name)
	}
	return fmt.Errorf("there is no %s in namespace %s%s", n.Object, n.Namespace, meant(n.Object, names))
}
