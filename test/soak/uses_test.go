// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/winnow-dev/winnow/test/cluster"
)

// TestCheckerOfUses: what the checker says about a DELETE a hundred seconds after noon. The object was created at noon.
func TestCheckerOfUses(t *testing.T) {
	const key = "configmaps/contents-0/c"
	for name, tc := range map[string]struct {
		play func(*uses)
		want string
	}{
		"never used":              {func(*uses) {}, ""},
		"used for long":           {func(u *uses) { u.begin(key, at(90)) }, "in use for 10s"},
		"used just now":           {func(u *uses) { u.begin(key, at(99)) }, ""},
		"used again":              {func(u *uses) { u.begin(key, at(10)); u.end(key, at(20)); u.begin(key, at(90)) }, "in use for 10s"},
		"used afterwards":         {func(u *uses) { u.begin(key, at(101)) }, ""},
		"used until later":        {func(u *uses) { u.begin(key, at(10)); u.end(key, at(101)) }, "in use for 1m30s"},
		"unused for too short":    {func(u *uses) { u.begin(key, at(90)); u.end(key, at(99.5)) }, "unused for 500ms only"},
		"unused for long":         {func(u *uses) { u.begin(key, at(90)); u.end(key, at(98)) }, ""},
		"a use too short":         {func(u *uses) { u.begin(key, at(98.5)); u.end(key, at(99.5)) }, ""},
		"another one is used":     {func(u *uses) { u.begin("configmaps/contents-0/other", at(1)) }, ""},
		"new":                     {func(u *uses) { u.created(key, false, at(99.5)) }, "unused for 500ms only"},
		"no policy":               {func(u *uses) { u.created(key, true, at(0)) }, "no policy is about it"},
		"of nobody":               {func(u *uses) { delete(u.contents, key) }, "nobody created it"},
		"after a restart":         {func(u *uses) { u.begin(key, at(90)); u.serverRestarted(at(80)) }, ""},
		"long after a restart":    {func(u *uses) { u.begin(key, at(90)); u.serverRestarted(at(60)) }, "in use for 10s"},
		"used long since restart": {func(u *uses) { u.begin(key, at(10)); u.serverRestarted(at(80)) }, "in use for 1m30s"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUses()
			u.created(key, false, at(0))
			tc.play(u)
			u.take(&cluster.AuditEvent{
				ObjectRef: &auditv1.ObjectReference{Resource: "configmaps", Namespace: "contents-0", Name: "c"},
			}, at(100))
			if early := u.check(at(99)); len(early) > 0 {
				t.Errorf("checked too early: %v", early)
			}
			faults := u.check(at(101))
			if tc.want == "" && len(faults) > 0 || tc.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], tc.want)) {
				t.Errorf("got %q, want one with %q", faults, tc.want)
			}
			if again := u.check(at(102)); len(again) > 0 {
				t.Errorf("checked again: %v", again)
			}
		})
	}
}
