// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package scripts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
)

// assessments are the stored assessments.
type assessments struct {
	objects    map[string]storedObject // by name
	told       []event                 // all events of them so far
	unreadable sets.Set[string]
	// held says that writes wait. unwritten is what the last leader was about to write when it crashed.
	held      bool
	unwritten []*assessment.Object
	started   int // replicas
}

type storedObject struct{ version, encoded string }

func newAssessments() assessments {
	return assessments{objects: map[string]storedObject{}, unreadable: sets.New[string]()}
}

// decode returns an object as it is stored.
func (o storedObject) decode(name string) *assessment.Object {
	out := &assessment.Object{}
	if err := json.Unmarshal([]byte(o.encoded), out); err != nil {
		panic(err)
	}
	out.Name, out.ResourceVersion = name, o.version
	return out
}

// listAssessments lists everything that is stored for an engine.
func (s *store) listAssessments(e *engine.Engine) {
	for name, o := range s.assessments.objects {
		s.tell(e, name, o, s.now)
	}
	e.AssessmentsListed(sets.KeySet(s.assessments.objects), s.now)
}

// tell tells an engine of an object.
func (s *store) tell(e *engine.Engine, name string, o storedObject, now time.Time) {
	if s.unreadable.Has(name) {
		e.AssessmentUnreadable(name, o.version, "it has a newer format", now)
	} else {
		e.SetAssessment(o.decode(name), now)
	}
}

// put writes an object, unless it has changed since it was observed. It reports whether it has.
func (s *store) put(o *assessment.Object) bool {
	if s.assessments.objects[o.Name].version != o.ResourceVersion {
		return false
	}
	if o.Holds == nil && o.Cluster == nil && len(o.Namespaces) == 0 {
		s.removeStored(o.Name)
		return true
	}
	encoded, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	is := storedObject{s.next(), string(encoded)}
	s.assessments.objects[o.Name] = is
	s.told = append(s.told, func(e *engine.Engine, now time.Time) { s.tell(e, o.Name, is, now) })
	return true
}

func (s *store) removeStored(name string) {
	s.next()
	delete(s.assessments.objects, name)
	s.unreadable.Delete(name)
	s.told = append(s.told, func(e *engine.Engine, now time.Time) { e.RemoveAssessment(name, now) })
}

// writeOnce stores up to most of the objects that the leader wants stored next, or all if most is negative, and returns how many it stored.
func (s *script) writeOnce(most int) int {
	leader := s.replicas["leader"]
	if leader == nil || most == 0 {
		return 0
	}
	n := 0
	for _, o := range leader.AssessmentsToStore(s.now) {
		if n == most || !s.put(o) {
			leader.AssessmentFailed(o.Name, "conflict", s.now)
			continue
		}
		leader.AssessmentFailed(o.Name, "", s.now)
		n++
		if s.held {
			s.said = append(s.said, "leader: stores "+s.describeStored(o))
		}
	}
	return n
}

func (s *script) write() {
	if len(s.CmdArgs) == 0 {
		for s.writeOnce(-1) > 0 {
			s.settle()
		}
		return
	}
	for left := s.number(s.arg(0)); left > 0; {
		n := s.writeOnce(left)
		if s.settle(); n == 0 {
			s.Fatalf(s.T, "the leader has nothing to store")
		}
		left -= n
	}
}

func (s *script) late() {
	for _, o := range s.unwritten {
		if what := s.describeStored(o); s.put(o) {
			s.said = append(s.said, "late: "+what)
		} else {
			s.said = append(s.said, "late: refused, because it has changed: "+what)
		}
	}
}

func (s *script) deleteStored() {
	for i := range s.CmdArgs {
		if _, ok := s.assessments.objects[s.arg(i)]; !ok {
			s.Fatalf(s.T, "%s is not stored", s.arg(i))
		}
		s.removeStored(s.arg(i))
	}
}

func (s *script) setReadable(name string, readable bool) {
	if s.unreadable.Insert(name); readable {
		s.unreadable.Delete(name)
	}
	o := s.assessments.objects[name]
	o.version = s.next()
	s.assessments.objects[name] = o
	s.told = append(s.told, func(e *engine.Engine, now time.Time) { s.tell(e, name, o, now) })
}

func (s *script) stored() {
	for _, name := range slices.Sorted(maps.Keys(s.assessments.objects)) {
		s.said = append(s.said, s.describeStored(s.assessments.objects[name].decode(name)))
	}
}

// describeStored describes an object in a line.
func (s *script) describeStored(o *assessment.Object) string {
	var parts []string
	switch {
	case o.Cluster != nil:
		parts = append(parts, fmt.Sprintf("%s leads, as leader %d", o.Cluster.Leader, o.Cluster.Term))
	case o.Holds != nil:
		for _, h := range o.Holds.Holds {
			parts = append(parts, fmt.Sprintf("%s in %s has %d objects, by assessment %d", s.alias(h.ID), h.Namespace, len(h.Members), h.Number))
		}
	}
	for _, n := range o.Namespaces {
		var policies []string
		for _, p := range n.Policies {
			_, title, _ := strings.Cut(p.Title, "/")
			policies = append(policies, fmt.Sprintf("generation %d of %s", p.Generation, title))
		}
		line := fmt.Sprintf("assessment %d of %s has %s", n.Number, n.Name, strings.Join(policies, ", "))
		for _, c := range n.Counts {
			line += fmt.Sprintf(", and counts %d", c.Objects)
		}
		parts = append(parts, line)
	}
	if len(parts) == 0 {
		parts = []string{"nothing"}
	}
	return o.Name + ": " + strings.Join(parts, "; ")
}
