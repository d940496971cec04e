// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// excluded returns why the object is no candidate, whatever the policies say; empty if it may be one.
func (e *Effective) excluded() Reason { return cmp.Or(e.trigger.excluded(e.Fact), e.leftToOwner()) }

// failed returns why it is not known which rule decides, or whether the object has finished; zero if both are known.
func (e *Effective) failed() cause { return cmp.Or(e.expressionFailed(), e.doubt, e.unnoted) }

// unclear returns why it is not known when the object is due; zero if it is known.
func (e *Effective) unclear() cause { return cmp.Or(e.failed(), e.trigger.unclear(e.Fact)) }

// hold returns why the object may not be deleted in its present state; zero if it may. People see the first reason.
func (e *Effective) hold() cause {
	return cmp.Or(
		e.unclear(),
		e.trigger.hold(e.Fact),
		e.annotationMalformed(),
		e.ownerActive(),
		e.uncounted(),
		e.finalizersConflict(),
		e.appliedAgain(),
		e.recreatedAgain(),
	)
}

// leftToOwner returns a reason if the object goes only with its controller.
func (e *Effective) leftToOwner() Reason {
	switch e.owner().State {
	case lifecycle.OwnerRunning, lifecycle.OwnerAbsent:
		return ReasonLeftToOwner
	case lifecycle.OwnerFinished, lifecycle.OwnerInDoubt:
		if e.withOwner {
			return ReasonLeftToOwner
		}
	case lifecycle.OwnerNone, lifecycle.OwnerUnknown:
	}
	return ""
}

// leftTo names the controller to which the object is left and, if the rules would not leave a counted Pod to it, why they leave this one.
func (e *Effective) leftTo() string {
	if e.onceCounted && e.Owner.Detail != "" {
		return e.Controller.String() + ", " + e.Owner.Detail
	}
	return e.Controller.String()
}

func (e *Effective) expressionFailed() cause {
	if e.Failed == "" {
		return cause{}
	}
	return cause{ReasonExpressionError, e.Failed}
}

func (e *Effective) annotationMalformed() cause {
	if e.annotations.malformed == "" {
		return cause{}
	}
	return cause{ReasonInvalidAnnotation, e.annotations.malformed}
}

// ownerActive: the controller may still need the object.
func (e *Effective) ownerActive() cause {
	if state := e.owner().State; state != lifecycle.OwnerUnknown && state != lifecycle.OwnerInDoubt {
		return cause{}
	}
	return cause{ReasonOwnerActive, e.Owner.Detail}
}

func (e *Effective) uncounted() cause {
	if !e.Uncounted {
		return cause{}
	}
	return cause{ReasonUncounted, "the Job controller has not counted this Pod yet"}
}

func (e *Effective) finalizersConflict() cause {
	if !e.Contradictory {
		return cause{}
	}
	return cause{
		ReasonConflictingFinalizers,
		"it has both finalizers orphan and foregroundDeletion, and a delete would remove one of them; remove the one you do not want",
	}
}

// appliedAgain: the tool that applied the object would create it again.
func (e *Effective) appliedAgain() cause {
	if e.Applied == "" || e.managedElsewhere == gc.ManagedElsewhereDelete {
		return cause{}
	}
	return cause{
		ReasonManagedElsewhere,
		e.Applied + ` would create it again; to delete it anyway, set managedElsewhere: Delete in a rule for it`,
	}
}

// recreatedAgain: something created the object again after each deletion.
func (e *Effective) recreatedAgain() cause {
	if !e.Recreated || e.managedElsewhere == gc.ManagedElsewhereDelete {
		return cause{}
	}
	return cause{
		ReasonRecreateLoop,
		"within a minute of each deletion something created it again; stop that, use a new name each time, or " +
			"set managedElsewhere: Delete in a rule for it",
	}
}
