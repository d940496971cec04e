// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"iter"

	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// alwaysProtected are the namespaces in which nothing is ever deleted.
var alwaysProtected = []string{"kube-system", "kube-public", "kube-node-lease"}

// Config configures an Engine.
type Config struct {
	// Protected namespaces are added to alwaysProtected.
	Protected []string
	// HoldAbove is how many objects of a namespace one change may make due at once where no cluster policy sets a limit, and
	// HoldAboveTotal how many in all namespaces that the change reaches. A negative number means no limit.
	HoldAbove, HoldAboveTotal int
	// StartSuspended stops every deletion in namespaces that no enforcing cluster policy selects.
	StartSuspended bool
	// DefaultAccount is the ServiceAccount of the namespace as which requests are sent for policies that name none; empty for Winnow itself.
	// RequireAccount demands an account of every policy.
	DefaultAccount string
	RequireAccount bool
	// Notifies says that there is a receiver of notifications.
	Notifies bool
	// AssumeRights says that an account has every right that is not known to be missing.
	AssumeRights bool
	// Spent adds work to the current call, and reports whether the budget of the call is spent, so that it must return. The work for an
	// object is one, plus one for each policy that is asked about the object. If Spent is nil, there is no budget.
	Spent func(work int) bool
}

// Effects says what the caller must do because of the events since the last TakeEffects.
type Effects struct {
	// Due is set if the dispatch has something to do: objects may have become ready for deletion, Next may return another time, TakeGone has
	// deletions to return, or a consistent read may agree with memory now.
	Due bool
	// Coverage is set if Coverage may return something else.
	Coverage bool
	// Conditions is set if Conditions may return something else.
	Conditions bool
	// Work is set if there is work for Step.
	Work bool
	// Reread is set if BeginReread returns namespaces.
	Reread bool
	// Rights is set if RightsToAsk returns rights.
	Rights bool
}

// Reading is a calculation that takes longer than a call may. It pauses when the budget of a call is spent, so that others can call the
// engine before the caller goes on. Its result is complete when it ends.
type Reading = iter.Seq[struct{}]

// Kinds returns the table of the resources that are known.
func (m *Memory) Kinds() *kinds.Table { return m.Table }

// Spent adds work to the current call, and reports whether its budget is spent.
func (m *Memory) Spent(work int) bool { return m.Config.Spent != nil && m.Config.Spent(work) }

// Proceed adds work to the current call, pauses if its budget is spent, and reports whether a Reading may go on.
func (m *Memory) Proceed(work int, pause func(struct{}) bool) bool {
	return !m.Spent(work) || pause(struct{}{})
}

// OlderVersion reports whether a resource version is older than another one of the same collection.
func OlderVersion(rv, other string) bool {
	return freshness.ParseVersion(rv) < freshness.ParseVersion(other)
}
