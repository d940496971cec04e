// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// TestMeantTTL: what is nearly right is asked back, as a value that can be read, and nothing else is.
func TestMeantTTL(t *testing.T) {
	for text, want := range map[gc.TTL]gc.TTL{
		"NEVER": "never", " NEVER ": "never", "1H": "1h", "1 h": "1h", "1h 30m": "1h30m", "7D": "7d", "2weeks": "2w", "1 Day": "1d", "3 days": "3d",
		"1hr": "1h", "2 hours": "2h", "30min": "30m", "5 Minutes": "5m", "10secs": "10s", "1hour 30mins": "1h30m", "0": "0s",
		"1month": "30d", "2 Months": "60d", "1y": "365d", "1 year": "365d", "10yrs": "3650d", "3mo": "90d", "1mo12h": "30d12h", "forever": "never",
		"P1D": "1d", "PT1H": "1h", "PT30M": "30m", "p1dt12h": "1d12h", "P1M": "30d", "P2W": "2w", "12h30d": "30d12h", "1m1h": "1h1m", "30 minutes 2 hours": "2h30m",
		"None": "never", "none": "never", "infinite": "never", "Infinity": "never", "unlimited": "never",
		"P": "", "P1D2": "", "PD": "", "1h1d1h": "", "2030-01-31": "", "nothing": "",
		"500ms": "", "1.5h": "", "10": "", "-1h": "", "": "", "11 years": "", "1y6mo": "", "99999y": "", "600 weeks": "", "s": "",
	} {
		if got := text.Meant(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		errs := validateTTL(text, field.NewPath("spec", "ttlAfterFinished"))
		if asked := `; did you mean "` + string(want) + `"?`; len(errs) != 1 || strings.HasSuffix(errs[0].Detail, asked) != (want != "") {
			t.Errorf("%q: got %v, want %q", text, errs, want)
		}
	}
	for _, text := range []gc.TTL{"never", "Never"} {
		errs := validateDuration(&text, field.NewPath("minTTL"))
		if len(errs) != 1 || !strings.Contains(errs[0].Detail, "leave it unset") || strings.Contains(errs[0].Detail, "did you mean") {
			t.Errorf("%q for a bound: %v", text, errs)
		}
	}
}

// TestMeantTime: a date where a duration belongs is answered with the annotation that takes one.
func TestMeantTime(t *testing.T) {
	for text, want := range map[string]string{
		"2030-01-31": "2030-01-31T00:00:00Z", "2030-01-31 12:30": "2030-01-31T12:30:00Z", "2030-01-31T12:30:00": "2030-01-31T12:30:00Z",
		"2030-01-31t12:30:00z": "2030-01-31T12:30:00Z", "2030-01-31T12:30+02:00": "2030-01-31T12:30:00+02:00", " 2030-01-31 ": "2030-01-31T00:00:00Z",
		"31.1.2030": "", "2030-13-01": "", "2030": "", "7d": "", "": "",
	} {
		if got := gc.MeantTime(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		ttl := gc.TTL(text)
		asks := "; to keep an object until a date, annotate it with gc.winnow.dev/keep-until=" + want
		for _, errs := range []field.ErrorList{validateTTL(ttl, field.NewPath("ttl")), validateDuration(&ttl, field.NewPath("maxTTL"))} {
			if want != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0].Detail, "is a date") || !strings.HasSuffix(errs[0].Detail, asks)) {
				t.Errorf("%q: got %v, want %q", text, errs, asks)
			}
		}
	}
}

func TestDidYouMean(t *testing.T) {
	path := field.NewPath("spec")
	orphan := field.NotSupported(path, metav1.DeletePropagationOrphan, []string{"Background", "Foreground"})
	orphan.Detail += `; put the finalizer "orphan" on it`
	modes := []gc.PolicyMode{gc.ModeEnforce, gc.ModePreview}
	got := DidYouMean(field.ErrorList{
		field.NotSupported(
			path,
			gc.PolicyMode("enforce"),
			modes,
		), field.NotSupported(path, "PREVIEW", modes), field.NotSupported(path, "Dry", modes),
		field.NotSupported(path, "Previw", modes), field.NotSupported(path, "Enforced", modes), field.NotSupported(path, "Pre", modes),
		field.NotSupported(path, "enforcing", modes), field.NotSupported(path, "En", modes), field.NotSupported(path, "", modes),
		orphan, field.Invalid(path, "enforce", `is not "Enforce"`),
	})
	for i, want := range []string{`; did you mean "Enforce"?`, `; did you mean "Preview"?`, "", `; did you mean "Preview"?`,
		`; did you mean "Enforce"?`, `; did you mean "Preview"?`, `; did you mean "Enforce"?`, "", "", "", ""} {
		if asks := strings.Contains(got[i].Detail, "did you mean"); !strings.HasSuffix(got[i].Detail, want) || asks != (want != "") {
			t.Errorf("%v: want %q at the end", got[i], want)
		}
	}
}
