// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Resolution is the answer that holds for an object among all policies.
type Resolution struct {
	// Policy decides, by its rule named Rule (gc.DefaultRuleName for its defaults). Nil when no policy matches the object.
	Policy *Policy
	Rule   string
	// Native says that the TTL of the object's own spec has replaced the policy's.
	Native bool
	// Propagation of the deletion.
	Propagation metav1.DeletionPropagation

	ttl           ttl
	withOwner     bool
	annotationTTL gc.AnnotationTTLMode
}

// Resolve asks all policies, which are those of the object's namespace in the order of their names, less those that have no
// vote. The latest answer wins, since all must agree that the object may go; of equal ones the first. The object's own
// TTL replaces the answer, and its annotations may do what the strictest of the policies allows.
func Resolve(f *lifecycle.Fact, policies []*Policy) Resolution {
	var out Resolution
	for _, p := range policies {
		v, ok := p.vote(f)
		if !ok {
			continue
		}
		if out.Policy == nil {
			out.annotationTTL, out.withOwner = p.annotationTTL, v.withOwner
		}
		out.annotationTTL = stricter(out.annotationTTL, p.annotationTTL)
		out.withOwner = out.withOwner || v.withOwner
		if out.Policy == nil || v.ttl.laterThan(out.ttl) {
			out.Policy, out.Rule, out.ttl, out.Propagation = p, v.rule, v.ttl, v.propagation
		}
	}
	if out.Policy == nil {
		return out
	}
	if f.NativeTTL != nil {
		out.Native, out.ttl = true, ttl{duration: *f.NativeTTL}
	}
	if f.Propagation != "" {
		out.Propagation = f.Propagation
	}
	return out
}

var strictness = map[gc.AnnotationTTLMode]int{gc.AnnotationAny: 0, gc.AnnotationExtendOnly: 1, gc.AnnotationIgnore: 2}

func stricter(a, b gc.AnnotationTTLMode) gc.AnnotationTTLMode {
	if strictness[b] > strictness[a] {
		return b
	}
	return a
}
