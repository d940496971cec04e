// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
)

// assessmentStore has the stored assessments, and the engines that watch them. What an engine writes is stored at once, and all engines
// observe it, unless writes wait.
type assessmentStore struct {
	version int
	objects map[string]storedAssessment // by name
	drivers sets.Set[*driver]
	waits   bool // nothing is written
}

// storedAssessment is an object as it is stored.
type storedAssessment struct {
	version int
	encoded []byte
}

func newAssessmentStore() *assessmentStore {
	return &assessmentStore{objects: map[string]storedAssessment{}, drivers: sets.New[*driver]()}
}

// decode returns the object as a watch reports it.
func (s storedAssessment) decode(name string) *assessment.Object {
	o := &assessment.Object{}
	if err := json.Unmarshal(s.encoded, o); err != nil {
		panic(err)
	}
	o.Name, o.ResourceVersion = name, strconv.Itoa(s.version)
	return o
}

// list lists everything that is stored for an engine, which watches from then on.
func (s *assessmentStore) list(d *driver, now time.Time) {
	d.store = s
	s.drivers.Insert(d)
	for name, o := range s.objects {
		d.Engine.Turn(func() { d.SetAssessment(o.decode(name), now) }, now)
	}
	d.Engine.Turn(func() { d.AssessmentsListed(sets.KeySet(s.objects), now) }, now)
}

// put stores an object, and reports whether it was the newest state that was observed.
func (s *assessmentStore) put(o *assessment.Object) bool {
	is, ok := s.objects[o.Name]
	if ok != (o.ResourceVersion != "") || ok && strconv.Itoa(is.version) != o.ResourceVersion {
		return false
	}
	s.version++
	if o.Holds == nil && o.Cluster == nil && len(o.Namespaces) == 0 {
		delete(s.objects, o.Name)
		return true
	}
	encoded, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	s.objects[o.Name] = storedAssessment{s.version, encoded}
	return true
}

// tell tells an engine of an object, or that it is gone.
func (s *assessmentStore) tell(d *driver, name string, now time.Time) {
	d.Engine.Turn(func() {
		if o, ok := s.objects[name]; ok {
			d.SetAssessment(o.decode(name), now)
		} else {
			d.RemoveAssessment(name, now)
		}
	}, now)
}

// write stores what an engine wants to be stored.
func (s *assessmentStore) write(d *driver, now time.Time) {
	writes := 0
	for all := d.AssessmentsToStore(now); len(all) > 0 || d.Effects.Unstored; all = d.AssessmentsToStore(now) {
		for _, o := range all {
			if writes++; writes > 10_000 {
				panic(fmt.Sprintf("the engine writes for ever: %s", s.objects[o.Name].encoded))
			}
			if !s.put(o) {
				d.AssessmentFailed(o.Name, "conflict", now)
				continue
			}
			for watching := range s.drivers {
				s.tell(watching, o.Name, now)
			}
		}
	}
}

// Turn is a turn of the engine, after which what it assessed is stored.
func (d *driver) Turn(event func(), now time.Time) {
	d.Engine.Turn(event, now)
	d.storeAssessments(now)
}

// Step is a step of the engine, after which what it assessed is stored.
func (d *driver) Step(now time.Time) bool {
	more := d.Engine.Step(now)
	d.storeAssessments(now)
	return more || d.HasWork()
}

func (d *driver) storeAssessments(now time.Time) {
	if d.store != nil && !d.store.waits {
		d.store.write(d, now)
	}
}
