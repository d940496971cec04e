// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// announced makes a rule give notice.
func announced(d gc.TTL) func(*gc.CleanupRule) {
	return func(r *gc.CleanupRule) { r.Notice = ttl(d) }
}

func TestNotice(t *testing.T) {
	for d, want := range map[gc.TTL]string{
		"1s": "", "1d": "", "30d": "",
		"":       `for example "12h"`,
		"0s":     "remove the field",
		"never":  "leave it unset",
		"1 day":  `did you mean "1d"?`,
		"3651d":  "ten years",
		"31d":    `at most "30d"`,
		"-1h":    "",
		"2026-1": "",
	} {
		for name, errs := range map[string]field.ErrorList{
			"spec.rules[0].notice":      ValidateCleanupPolicy(policy(rule("a", announced(d)))),
			"spec.guardrails.minNotice": ValidateClusterCleanupPolicy(clusterPolicy(func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.MinNotice = ttl(d) })),
		} {
			valid := slices.Contains([]gc.TTL{"1s", "1d", "30d"}, d) || d == "0s" && strings.HasSuffix(name, "minNotice")
			switch {
			case valid && len(errs) > 0:
				t.Errorf("%s: %q: %v", name, d, errs)
			case valid:
			case len(errs) != 1 || errs[0].Field != name:
				t.Errorf("%s: %q: got %v", name, d, errs)
			case d != "" && !strings.Contains(errs[0].Detail, want):
				t.Errorf("%s: %q: got %v, want %s", name, d, errs, want)
			}
		}
	}
}

func TestNoticeWarnings(t *testing.T) {
	without := func(r *gc.CleanupRule) { r.TTL = nil }
	few := func(r *gc.CleanupRule) { r.Capacity = &gc.Capacity{MaxObjects: number(5)} }
	for name, c := range map[string]struct {
		rule gc.CleanupRule
		want string
	}{
		"a ttl":           {rule("a", announced("1d")), ""},
		"longer than ttl": {rule("a", func(r *gc.CleanupRule) { r.TTL = ttl("1h") }, announced("2h")), "spec.rules[0].notice: is longer than ttl"},
		"capacity":        {rule("a", without, few, announced("1d")), ""},
		"never":           {rule("a", func(r *gc.CleanupRule) { r.TTL = ttl(gc.TTLNever) }, announced("1d")), "spec.rules[0].notice: has no effect"},
		"only a deadline": {rule("a", without, func(r *gc.CleanupRule) { r.ActiveDeadline = ttl("6h") }, announced("1d")), "spec.rules[0].notice: has no effect"},
	} {
		var want []string
		if c.want != "" {
			want = append(want, c.want)
		}
		if got := Warnings(policy(c.rule)); !slices.EqualFunc(got, want, strings.Contains) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestNoticeDelivery: there must be a notice to be delivered.
func TestNoticeDelivery(t *testing.T) {
	required := func(r *gc.CleanupRule) { r.NoticeDelivery = gc.NoticeDeliveryRequired }
	if errs := ValidateCleanupPolicy(policy(rule("a", announced("1d"), required))); len(errs) > 0 {
		t.Errorf("got %v", errs)
	}
	errs := ValidateCleanupPolicy(policy(rule("a", required)))
	if len(errs) != 1 || errs[0].Field != "spec.rules[0].noticeDelivery" || !strings.Contains(errs[0].Detail, "set notice") {
		t.Errorf("got %v", errs)
	}
}
