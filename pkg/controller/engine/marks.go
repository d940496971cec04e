// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
)

// SetMarks handles a new state of stored marks. It ignores states that are older than memory.
func (e *Engine) SetMarks(m *memory.Marks, now time.Time) {
	if before := e.Namespace(m.Namespace).Marks[m.Name]; before == nil || !memory.OlderVersion(m.ResourceVersion, before.ResourceVersion) {
		e.SetListedMarks(m, now)
	}
}

// SetListedMarks handles the state of stored marks in a list, which is newer than memory even if this state is older: a restored backup
// may have brought it back, and the resource versions of the store may have grown since.
func (e *Engine) SetListedMarks(m *memory.Marks, now time.Time) {
	ns := e.Namespace(m.Namespace)
	before := ns.Marks[m.Name]
	if before != nil && before.ResourceVersion == m.ResourceVersion {
		return // They were listed again, or are reported once more.
	}
	if ns.Marks == nil {
		ns.Marks = map[string]*memory.Marks{}
	}
	m = m.Copy() // Nothing of a new state is forgotten yet, and the caller may keep its own.
	ns.Marks[m.Name] = m
	e.MarksChanged(ns)
	e.AdoptNotices(ns, before, m, now)
	for uid := range m.Unused {
		if rec := e.Records.Get(uid); rec != nil && rec.NS == ns && e.Usage.Adopt(rec, knowledge.Mark(ns, rec, now)) {
			e.Touch(rec)
		}
	}
	e.adoptFinishMarks(ns, m.Finished, now)
	e.AdoptMatches(ns, m.Matched, now)
}

// adoptFinishMarks counts the objects of stored marks from the times of the marks.
func (e *Engine) adoptFinishMarks(ns *memory.Namespace, marks map[types.UID]memory.FinishMark, now time.Time) {
	for uid := range marks {
		rec := e.Records.Get(uid)
		if rec == nil || rec.NS != ns || rec.FirstSeen() == nil {
			continue
		}
		seen := *rec.FirstSeen()
		m, ok := knowledge.FinishMark(ns, &rec.Compact, seen.After, now)
		if !ok || m.Equal(rec.FinishMark()) {
			continue
		}
		seen.Version = m.Version
		e.replace(rec, rec.WithFirstSeen(m.Since, seen))
		e.Touch(rec)
		e.TouchDependents(rec.UID())
	}
}
