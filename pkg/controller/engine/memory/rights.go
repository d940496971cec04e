// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// RightAnswer is what is known of a right.
type RightAnswer struct {
	// Asked is when the answer came; zero if the right is still to be asked for.
	Asked time.Time
	// Missing says what is missing, and how to grant it; empty if the right is there.
	Missing string
	// Urgent is set if an object that is due waits for the first answer.
	Urgent bool
}

// Account returns the ServiceAccount as which requests for a policy are sent; empty for Winnow itself.
func (m *Memory) Account(p *policy.Policy) string { return cmp.Or(p.Account, m.Config.DefaultAccount) }

// RightFor returns the right that a request for a record and a policy needs.
func (m *Memory) RightFor(rec *Record, p *policy.Policy, verb string) deletion.Right {
	return deletion.Right{Verb: verb, Resource: rec.Resource, Namespace: rec.NS.Name, Account: m.Account(p)}
}
