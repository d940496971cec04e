// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// deletionEventTimeout bounds the wait for the event that tells the resourceVersion of a deletion.
const deletionEventTimeout = 5 * time.Second

// state is an object as an operation sees it: read by that operation (fresh), or suggested by its
// caller. Object is nil if the payload cannot be decoded and that was expected.
type state struct {
	stored *storedObject // without resourceVersion: there is no such object
	object runtime.Object
	fresh  bool
}

func (st *state) sameVersion(other *state) bool {
	return st.stored.ResourceVersion == other.stored.ResourceVersion
}

// GuaranteedUpdate implements storage.Interface. A conflict costs a read, so writers that collide wait
// a moment, each for a random time.
func (s *store) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object) error {
	at, err := s.locate(key, false)
	if err != nil {
		return err
	}
	load := func() (*state, error) { return s.load(ctx, at, ignoreNotFound) }
	current, err := s.startingState(cached, load)
	if err != nil {
		return err
	}
	for backoff := conflictBackoff(); ; {
		object, payload, updateErr := s.propose(at, current, preconditions, tryUpdate)
		if !current.fresh && (updateErr != nil || payload == current.stored.Payload) {
			// The suggestion may be out of date: only what is stored decides on an error or a no-op.
			suggested := current
			if current, err = load(); err != nil {
				return err
			}
			if updateErr == nil || !current.sameVersion(suggested) {
				continue
			}
		}
		if updateErr != nil {
			return updateErr
		}
		if payload == current.stored.Payload {
			return s.decode(current.stored, at.key, destination)
		}
		resourceVersion, err := s.replace(ctx, at, current, payload, object)
		switch {
		case err == nil:
			return s.decodeWritten(payload, resourceVersion, at, destination)
		case !storage.IsConflict(err):
			return err
		}
		if current, err = afterPause(ctx, &backoff, load); err != nil {
			return err
		}
	}
}

// propose checks the preconditions and returns what the update function makes of the state.
func (s *store) propose(at target, current *state, preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc) (runtime.Object, string, error) {
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

// replace writes payload in the place of exactly the current state, or returns a conflict.
func (s *store) replace(ctx context.Context, at target, current *state, payload string, object runtime.Object) (string, error) {
	if current.stored.ResourceVersion == "" {
		resourceVersion, err := s.create(ctx, at, payload, object)
		if storage.IsExist(err) {
			err = storage.NewResourceVersionConflictsError(at.key, 0)
		}
		return resourceVersion, err
	}
	body, err := s.wrap(at, current.stored.ResourceVersion, payload, object)
	if err != nil {
		return "", err
	}
	resourceVersion, err := s.table.update(ctx, at.location, body)
	return resourceVersion, s.translateConflict(ctx, err, at)
}

// Delete implements storage.Interface.
func (s *store) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	at, err := s.locate(key, false)
	if err != nil {
		return err
	}
	load := func() (*state, error) { return s.loadForDeletion(ctx, at, opts.ExpectTransformOrDecodeError) }
	if opts.ExpectTransformOrDecodeError {
		cached = nil
	}
	current, err := s.startingState(cached, load)
	if err != nil {
		return err
	}
	for backoff := conflictBackoff(); ; {
		refusal := preconditions.Check(at.key, current.object)
		if refusal == nil {
			refusal = validateDeletion(ctx, current.object)
		}
		if refusal != nil && current.fresh {
			return refusal
		}
		if refusal != nil {
			suggested := current
			if current, err = load(); err != nil {
				return err
			}
			if current.sameVersion(suggested) {
				return refusal
			}
			continue
		}
		err := s.translateConflict(ctx, s.table.delete(ctx, at.location, current.stored.ResourceVersion), at)
		if err == nil {
			return s.decodeDeleted(ctx, at, current, out)
		}
		if !storage.IsConflict(err) {
			return err
		}
		if current, err = afterPause(ctx, &backoff, load); err != nil {
			return err
		}
	}
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
	return s.decodeFor(ctx, &deleted, at.key, out)
}

// deletionVersion finds the resourceVersion at which the object that was last at this one was deleted.
// The answer to the DELETE does not tell, the event does. If that cannot be had, the current one is
// not too early.
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

// startingState is the suggestion if there is one, else what is stored.
func (s *store) startingState(cached runtime.Object, load func() (*state, error)) (*state, error) {
	if cached == nil {
		return load()
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

// loadForDeletion refuses what can be decoded if the caller means to delete what cannot be.
func (s *store) loadForDeletion(ctx context.Context, at target, expectCorrupt bool) (*state, error) {
	stored, err := s.fetch(ctx, at, "")
	if err != nil {
		return nil, err
	}
	loaded := &state{stored: stored, object: s.newFunc(), fresh: true}
	if !expectCorrupt {
		return loaded, s.decodeFor(ctx, stored, at.key, loaded.object)
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

// translateConflict is translate, with a conflict for whatever says that the object has changed or gone.
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
		return load()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
