// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// deletionEventTimeout bounds the wait for the event that has the resourceVersion of a deletion.
const deletionEventTimeout = 5 * time.Second

// state is an object as an operation knows it: read by that operation (fresh), or suggested by its caller. object is nil if the payload
// cannot be decoded and the caller expected that.
type state struct {
	stored *storedObject // without resourceVersion: there is no such object
	object runtime.Object
	fresh  bool
}

func (st *state) sameVersion(other *state) bool {
	return st.stored.ResourceVersion == other.stored.ResourceVersion
}

// errUnchanged means that an update does not change a suggested state. Only the stored state shows whether there is nothing to do.
var errUnchanged = errors.New("the update does not change a state that may be out of date")

// GuaranteedUpdate implements storage.Interface.
func (s *store) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object) error {
	at, err := s.locate(key, false)
	if err != nil {
		return err
	}
	load := func() (*state, error) { return s.load(ctx, at, ignoreNotFound) }
	suggested, err := s.suggestion(at, cached)
	if err != nil {
		return err
	}
	return s.retry(ctx, suggested, load, func(current *state) error {
		object, payload, err := s.propose(at, current, preconditions, tryUpdate)
		if err != nil {
			return err
		}
		if payload == current.stored.Payload {
			if !current.fresh {
				return errUnchanged
			}
			return s.decode(current.stored, at.key, destination)
		}
		resourceVersion, err := s.replace(ctx, at, current, payload, object)
		if err != nil {
			return err
		}
		return s.decodeWritten(payload, resourceVersion, at, destination)
	})
}

// retry attempts an operation until it succeeds, or fails for another reason than a conflict. It starts from the suggested state, or from
// the stored one if that is nil. A conflict costs a read, so retry waits for a short random time first.
func (s *store) retry(ctx context.Context, suggested *state, load func() (*state, error), attempt func(*state) error) error {
	current, err := suggested, error(nil)
	if suggested == nil {
		current, err = load()
	}
	backoff := conflictBackoff()
	for err == nil {
		failure := attempt(current)
		switch {
		case storage.IsConflict(failure):
			current, err = afterPause(ctx, &backoff, load)
		case failure != nil && !current.fresh:
			// The suggestion may be out of date. If it is not, the failure stands.
			tried := current
			current, err = load()
			if err == nil && !errors.Is(failure, errUnchanged) && current.sameVersion(tried) {
				return failure
			}
		default:
			return failure
		}
	}
	return err
}

// propose checks the preconditions and returns what the update function makes of the state.
func (s *store) propose(
	at target,
	current *state,
	preconditions *storage.Preconditions,
	tryUpdate storage.UpdateFunc,
) (runtime.Object, string, error) {
	if err := preconditions.Check(at.key, current.object); err != nil {
		return nil, "", err
	}
	revision, err := s.versioner.ParseResourceVersion(current.stored.ResourceVersion)
	if err != nil {
		return nil, "", err
	}
	object, _, err := tryUpdate(current.object, storage.ResponseMeta{ResourceVersion: revision})
	if err != nil {
		return nil, "", err
	}
	payload, err := s.encode(object)
	return object, payload, err
}

// replace replaces exactly the current state by payload, or returns a conflict.
func (s *store) replace(ctx context.Context, at target, current *state, payload string, object runtime.Object) (string, error) {
	if current.stored.ResourceVersion == "" {
		resourceVersion, err := s.create(ctx, at, payload, object)
		if storage.IsExist(err) {
			err = storage.NewResourceVersionConflictsError(at.key, 0)
		}
		return resourceVersion, err
	}
	body, err := s.wrap(at, current.stored, payload, object)
	if err != nil {
		return "", err
	}
	answer, err := s.table.update(ctx, at.location, body)
	if err != nil {
		s.lastWrites.remove(at.key)
		return "", s.translateConflict(ctx, err, at)
	}
	s.lastWrites.add(at.key, payload, answer)
	return answer.ResourceVersion, nil
}

// Delete implements storage.Interface.
func (s *store) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	at, err := s.locate(key, false)
	if err != nil {
		return err
	}
	if opts.ExpectTransformOrDecodeError {
		cached = nil // it says nothing about the stored object
	}
	load := func() (*state, error) { return s.loadForDeletion(ctx, at, opts.ExpectTransformOrDecodeError) }
	suggested, err := s.suggestionOf(cached)
	if err != nil {
		return err
	}
	return s.retry(ctx, suggested, load, func(current *state) error {
		if err := preconditions.Check(at.key, current.object); err != nil {
			return err
		}
		if err := validateDeletion(ctx, current.object); err != nil {
			return err
		}
		err := s.table.delete(ctx, at.location, current.stored.ResourceVersion)
		s.lastWrites.remove(at.key)
		if err != nil {
			return s.translateConflict(ctx, err, at)
		}
		return s.decodeDeleted(ctx, at, current, out)
	})
}

// decodeDeleted fills out with the last state, at the resourceVersion of its deletion.
func (s *store) decodeDeleted(ctx context.Context, at target, last *state, out runtime.Object) error {
	if last.object == nil {
		return nil
	}
	deleted := *last.stored
	resourceVersion, err := s.deletionVersion(ctx, at, last.stored.ResourceVersion)
	if err != nil {
		return err
	}
	deleted.ResourceVersion = resourceVersion
	return s.decode(&deleted, at.key, out)
}

// deletionVersion returns the resourceVersion of the deletion of an object whose last resourceVersion is given. The answer to the DELETE
// does not contain it, but the event does. If there is no event in time, the current resourceVersion is not too early.
func (s *store) deletionVersion(ctx context.Context, at target, last string) (string, error) {
	eventCtx, cancel := context.WithTimeout(ctx, deletionEventTimeout)
	defer cancel()
	events, err := s.table.watch(eventCtx, listQuery{location: at.location, resourceVersion: last})
	if err == nil {
		defer events.close()
	}
	for err == nil {
		var event hostEvent
		if event, err = events.next(); err == nil && event.Type == string(watch.Deleted) {
			stored, err := event.stored()
			return stored.ResourceVersion, err
		}
	}
	list, err := s.table.list(ctx, listQuery{limit: 1})
	return list.ResourceVersion, s.translate(ctx, err, at)
}

// suggestion returns the newer of the state that the caller suggests and of what this process wrote last; nil if neither is known. The
// watch cache, which suggests what it has, may not have seen the last write yet.
func (s *store) suggestion(at target, cached runtime.Object) (*state, error) {
	last := s.lastWrites.get(at.key)
	if last == nil || cached != nil && !s.isLater(last.ResourceVersion, resourceVersionOf(cached)) {
		return s.suggestionOf(cached)
	}
	suggested := &state{stored: last, object: s.newFunc()}
	if s.decode(last, at.key, suggested.object) != nil {
		return nil, nil // The stored object may have changed. Reading it tells the caller why it cannot be decoded.
	}
	return suggested, nil
}

func (s *store) isLater(resourceVersion, than string) bool {
	a, err := s.versioner.ParseResourceVersion(resourceVersion)
	b, err2 := s.versioner.ParseResourceVersion(than)
	return err == nil && err2 == nil && a > b
}

// suggestionOf returns the state that the caller suggests; nil if there is none.
func (s *store) suggestionOf(cached runtime.Object) (*state, error) {
	if cached == nil {
		return nil, nil
	}
	revision, err := s.versioner.ObjectResourceVersion(cached)
	if err != nil {
		return nil, storage.NewInternalError(err)
	}
	stored := &storedObject{}
	if stored.Payload, err = s.encode(cached); err != nil {
		return nil, err
	}
	if err := s.versioner.UpdateObject(cached, revision); err != nil {
		return nil, err
	}
	stored.ResourceVersion = resourceVersionOf(cached)
	return &state{stored: stored, object: cached}, nil
}

func (s *store) load(ctx context.Context, at target, ignoreNotFound bool) (*state, error) {
	loaded := &state{object: s.newFunc(), fresh: true}
	stored, err := s.fetch(ctx, at, "")
	if ignoreNotFound && storage.IsNotFound(err) {
		loaded.stored = &storedObject{}
		return loaded, runtime.SetZeroValue(loaded.object)
	}
	if err != nil {
		return nil, err
	}
	loaded.stored = stored
	return loaded, s.decode(stored, at.key, loaded.object)
}

// loadForDeletion reads the stored state. If the caller expects an object that cannot be decoded, it refuses one that can.
func (s *store) loadForDeletion(ctx context.Context, at target, expectCorrupt bool) (*state, error) {
	stored, err := s.fetch(ctx, at, "")
	if err != nil {
		return nil, err
	}
	loaded := &state{stored: stored, object: s.newFunc(), fresh: true}
	if !expectCorrupt {
		return loaded, s.decode(stored, at.key, loaded.object)
	}
	switch err := s.decode(stored, at.key, loaded.object); {
	case err == nil:
		return nil, storage.NewInvalidObjError(at.key, "unsafe deletion is not allowed because the object is decodable from storage")
	case !storage.IsCorruptObject(err):
		return nil, err
	}
	loaded.object = nil
	return loaded, nil
}

// translateConflict is like translate, but returns a conflict for any error that says that the object has changed or is gone.
func (s *store) translateConflict(ctx context.Context, err error, at target) error {
	if apierrors.IsConflict(err) || s.isObjectNotFound(err, at) {
		return storage.NewResourceVersionConflictsError(at.key, 0)
	}
	return s.translate(ctx, err, at)
}

func conflictBackoff() wait.Backoff {
	return wait.Backoff{Duration: 2 * time.Millisecond, Factor: 2, Jitter: 2, Steps: 7, Cap: 200 * time.Millisecond}
}

func afterPause(ctx context.Context, backoff *wait.Backoff, load func() (*state, error)) (*state, error) {
	timer := time.NewTimer(backoff.Step())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done(): // load returns the error.
	}
	return load()
}
