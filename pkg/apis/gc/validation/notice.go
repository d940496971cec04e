// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// validateNotice checks how long before their deletion the objects of a rule are announced, and to whom.
func validateNotice(rule *gc.CleanupRule, path *field.Path) field.ErrorList {
	d, at := rule.Notice, path.Child("notice")
	errs := validateMinNotice(d, at)
	if d != nil && len(errs) == 0 && isZero(*d) {
		errs = append(errs, field.Invalid(at, *d, `must be at least "1s"; to give no notice, remove the field`))
	}
	if d == nil && rule.NoticeDelivery != "" {
		errs = append(errs, field.Forbidden(path.Child("noticeDelivery"), "may only be set with notice; set notice, for example to 1d"))
	}
	return errs
}

// validateMinNotice checks how long before their deletion objects must be announced.
func validateMinNotice(d *gc.TTL, path *field.Path) field.ErrorList {
	errs := validateDuration(d, path)
	if longest, byTime := duration(d); len(errs) == 0 && byTime && longest > gc.MaxNotice {
		return field.ErrorList{field.Invalid(path, *d, `must be at most "30d"; to keep objects for longer, set a longer ttl`)}
	}
	return errs
}

// noticeWarnings is about a notice that has no effect, or another one than its author may expect.
func noticeWarnings(rule *gc.CleanupRule, path *field.Path) []string {
	ttl, byTime := duration(rule.TTL)
	notice, _ := duration(rule.Notice)
	switch {
	case rule.Notice == nil:
	case byTime && notice > ttl:
		return warn(path, "is longer than ttl, so objects are kept for the notice, and not only for %s", *rule.TTL)
	case !byTime && rule.Capacity == nil:
		return warn(path, "has no effect by itself, because the rule never deletes; set a ttl other than never, or capacity")
	}
	return nil
}
