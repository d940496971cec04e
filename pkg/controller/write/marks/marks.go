// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package marks stores since when ConfigMaps and Secrets are unused, objects finished that do not say so themselves, and rules match, and
// which notices of deletions were given, in the cluster's own API; see artifacts/storage.
package marks

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/write/stored"
)

// Resource holds the marks. Each object is one engine.Marks.
var Resource = schema.GroupVersionResource{Group: "internal.gc.winnow.dev", Version: "v1alpha1", Resource: "usagemarks"}

const kind = "UsageMarks"

// The fields have marks by the UIDs of objects, and fieldMatched by the UID and the ID of a rule. fieldUnused is always there, because
// versions of Winnow that know no other field require it.
const (
	fieldUnused    = "unused"
	fieldFinished  = "finished"
	fieldMatched   = "matched"
	fieldNotices   = "notices"
	fieldSince     = "since"
	fieldGiven     = "given"
	fieldAt        = "at"
	fieldDelivered = "delivered"
	fieldVersion   = "resourceVersion"
)

func encode(m *memory.Marks) *unstructured.Unstructured {
	unused := make(map[string]any, len(m.Unused))
	for uid, since := range m.Unused {
		unused[string(uid)] = encodeTime(since)
	}
	object := named(m.NamespacedName)
	object.Object[fieldUnused] = unused
	if len(m.Finished) > 0 {
		finished := make(map[string]any, len(m.Finished))
		for uid, mark := range m.Finished {
			finished[string(uid)] = map[string]any{
				fieldSince: encodeTime(mark.Since), fieldVersion: strconv.FormatUint(mark.Version, 10),
			}
		}
		object.Object[fieldFinished] = finished
	}
	if len(m.Matched) > 0 {
		matched := make(map[string]any, len(m.Matched))
		for key, mark := range m.Matched {
			matched[encodeKey(matchKey{key, mark.ByChange})] = encodeTime(mark.Since)
		}
		object.Object[fieldMatched] = matched
	}
	if len(m.Announced) > 0 {
		notices := make(map[string]any, len(m.Announced))
		for uid, notice := range m.Announced {
			encoded := map[string]any{fieldGiven: encodeTime(notice.Given), fieldAt: encodeTime(notice.At)}
			if !notice.Delivered.IsZero() {
				encoded[fieldDelivered] = encodeTime(notice.Delivered)
			}
			notices[string(uid)] = encoded
		}
		object.Object[fieldNotices] = notices
	}
	object.SetResourceVersion(m.ResourceVersion)
	return object
}

// encodeTime keeps fractions of seconds: an object must not become older by a restart.
func encodeTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func named(name types.NamespacedName) *unstructured.Unstructured {
	return stored.NewObject(Resource, kind, name.Namespace, name.Name)
}

// Decode returns the marks of a stored object. If decoding fails, it returns no marks, so that the object is overwritten, and the error
// says why.
func Decode(object *unstructured.Unstructured) (*memory.Marks, error) {
	out := &memory.Marks{
		NamespacedName:  types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
		ResourceVersion: object.GetResourceVersion(),
	}
	unused, err := decode(object, fieldUnused, decodeUID, decodeTime)
	if err != nil {
		return out, err
	}
	var finished map[types.UID]memory.FinishMark
	if object.Object[fieldFinished] != nil {
		if finished, err = decode(object, fieldFinished, decodeUID, decodeFinish); err != nil {
			return out, err
		}
	}
	var matched map[memory.MatchKey]memory.MatchMark
	if object.Object[fieldMatched] != nil {
		if matched, err = decodeMatches(object); err != nil {
			return out, err
		}
	}
	var announced map[types.UID]policy.Announcement
	if object.Object[fieldNotices] != nil {
		if announced, err = decode(object, fieldNotices, decodeUID, decodeNotice); err != nil {
			return out, err
		}
	}
	out.Unused, out.Finished, out.Matched, out.Announced = unused, finished, matched, announced
	return out, nil
}

func decode[K comparable, M any](
	object *unstructured.Unstructured, field string, decodeKey func(string) (K, bool), decode func(any) (M, bool),
) (map[K]M, error) {
	stored, ok := object.Object[field].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s of UsageMarks %q is %T, not a map", field, title(object), object.Object[field])
	}
	out := make(map[K]M, len(stored))
	for text, value := range stored {
		key, ok := decodeKey(text)
		if !ok {
			return nil, fmt.Errorf("%s of UsageMarks %q has the key %q, not the UID of an object and the ID of a rule", field, title(object), text)
		}
		if out[key], ok = decode(value); !ok {
			return nil, fmt.Errorf("%s of UsageMarks %q has %v for %q, not a time", field, title(object), value, text)
		}
	}
	return out, nil
}

func decodeUID(text string) (types.UID, bool) { return types.UID(text), true }

// matchKey is a key in fieldMatched. byChange says that the match began with a change that is still to be assessed.
type matchKey struct {
	memory.MatchKey
	byChange bool
}

// keySeparator stands in no UID and no ID. byChange follows the ID if it is set.
const (
	keySeparator = "/"
	byChange     = keySeparator + "change"
)

func encodeKey(key matchKey) string {
	text := fmt.Sprintf("%s%s%016x", key.UID, keySeparator, uint64(key.Rule))
	if key.byChange {
		return text + byChange
	}
	return text
}

// decodeMatches returns the matches. If there are two for one key, which Winnow never writes, the one counts that keeps the object for
// longer.
func decodeMatches(object *unstructured.Unstructured) (map[memory.MatchKey]memory.MatchMark, error) {
	stored, err := decode(object, fieldMatched, decodeKey, decodeTime)
	if err != nil {
		return nil, err
	}
	out := make(map[memory.MatchKey]memory.MatchMark, len(stored))
	for key, since := range stored {
		out[key.MatchKey] = out[key.MatchKey].Later(memory.MatchMark{Since: since, ByChange: key.byChange})
	}
	return out, nil
}

// decodeKey accepts only what encodeKey writes, so that no two keys are the same.
func decodeKey(text string) (matchKey, bool) {
	plain, changed := strings.CutSuffix(text, byChange)
	uid, id, _ := strings.Cut(plain, keySeparator)
	rule, err := strconv.ParseUint(id, 16, 64)
	key := matchKey{memory.MatchKey{UID: types.UID(uid), Rule: lifecycle.MatchID(rule)}, changed}
	return key, err == nil && encodeKey(key) == text
}

func title(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}

func decodeTime(value any) (time.Time, bool) {
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	year := at.UTC().Year()
	return at, err == nil && year >= 0 && year <= 9999 // RFC 3339 has no other years, so encodeTime could not store them again.
}

func decodeNotice(value any) (out policy.Announcement, ok bool) {
	stored, _ := value.(map[string]any)
	if out.Given, ok = decodeTime(stored[fieldGiven]); !ok {
		return out, false
	}
	if delivered, is := stored[fieldDelivered]; is {
		if out.Delivered, ok = decodeTime(delivered); !ok {
			return out, false
		}
	}
	out.At, ok = decodeTime(stored[fieldAt])
	return out, ok && !out.Given.IsZero()
}

func decodeFinish(value any) (out memory.FinishMark, ok bool) {
	stored, _ := value.(map[string]any)
	if out.Since, ok = decodeTime(stored[fieldSince]); !ok {
		return out, false
	}
	text, _ := stored[fieldVersion].(string)
	version, err := strconv.ParseUint(text, 10, 64)
	out.Version = version
	return out, err == nil
}
