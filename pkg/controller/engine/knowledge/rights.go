// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

const (
	// askMissingAfter and askAgainAfter are how old an answer may be before the right is asked for again. The API server itself checks each
	// request; only whether an account exists depends on the answer.
	askMissingAfter = 10 * time.Second
	askAgainAfter   = time.Minute
)

// asking are the rights to ask for, in this order.
type asking struct{ urgent, others []deletion.Right }

// NeedRight notes that requests need a right of an account, so that it is asked for. due says that an object waits for the answer.
func (k *Knowledge) NeedRight(ns *memory.Namespace, right deletion.Right, due bool) {
	answer, known := ns.Rights[right]
	switch {
	case !answer.Asked.IsZero(), known && (answer.Urgent || !due):
		return
	case ns.Rights == nil:
		ns.Rights = map[deletion.Right]memory.RightAnswer{}
	}
	ns.Rights[right] = memory.RightAnswer{Urgent: due}
	if due {
		k.asking.urgent = append(k.asking.urgent, right)
	} else {
		k.asking.others = append(k.asking.others, right)
	}
	k.Effects.Rights = true
}

// RightsToAsk returns the next rights to ask for, at most so many.
func (k *Knowledge) RightsToAsk(most int) []deletion.Right {
	var out []deletion.Right
	for _, queue := range []*[]deletion.Right{&k.asking.urgent, &k.asking.others} {
		n := min(len(*queue), most-len(out))
		out = append(out, (*queue)[:n]...)
		*queue = slices.Delete(*queue, 0, n)
	}
	return out
}

// AskAgain has rights asked for again whose answer is old, or failed to come, and forgets rights that no policy needs any more. It does
// nothing while there are rights to ask for.
func (k *Knowledge) AskAgain(now time.Time) {
	if len(k.asking.urgent)+len(k.asking.others) > 0 {
		return
	}
	for _, ns := range k.Namespaces {
		accounts := k.accountsOf(ns)
		for right, answer := range ns.Rights {
			age := now.Sub(answer.Asked) // Long if it was never asked.
			switch {
			case right.Account != "" && !accounts.Has(right.Account), right.Account == "" && answer.Missing == "":
				delete(ns.Rights, right)
			case age >= askAgainAfter, answer.Missing != "" && age >= askMissingAfter:
				k.asking.others = append(k.asking.others, right)
				k.Effects.Rights = true
			}
		}
	}
}

// accountsOf returns the accounts of all policies of a namespace in which rights were asked for; nil for other namespaces.
func (k *Knowledge) accountsOf(ns *memory.Namespace) sets.Set[string] {
	if len(ns.Rights) == 0 {
		return nil
	}
	out := sets.New[string]()
	for _, p := range ns.AllPolicies() {
		out.Insert(k.Account(p))
	}
	return out
}

// SetRight records an answer. If it has changed, holds are applied again in the namespace, and requests that failed for lack of the right
// are tried again.
func (k *Knowledge) SetRight(right deletion.Right, missing string, now time.Time) {
	ns := k.Namespaces[right.Namespace]
	if ns == nil {
		return
	}
	before, known := ns.Rights[right]
	if ns.Rights == nil {
		ns.Rights = map[deletion.Right]memory.RightAnswer{}
	}
	ns.Rights[right] = memory.RightAnswer{Asked: now, Missing: missing}
	if before.Missing == missing && (known && !before.Asked.IsZero() || !before.Urgent && missing == "") {
		return
	}
	for _, rec := range ns.Records {
		if missing == "" && rec.Resource == right.Resource && rec.Extra != nil {
			rec.Extra.Retry.EndUnauthorized()
		}
	}
	k.Invalidate(ns)
	k.TouchHolds([]*memory.Namespace{ns})
}

// Unauthorized returns why requests with a right must wait; empty if they need not.
func (k *Knowledge) Unauthorized(ns *memory.Namespace, right deletion.Right) string {
	answer, known := ns.Rights[right]
	switch {
	case answer.Missing != "":
		return answer.Missing
	case right.Account == "", k.Config.AssumeRights, known && !answer.Asked.IsZero():
		return ""
	}
	return fmt.Sprintf("Winnow is still asking what the ServiceAccount %s/%s may do", right.Namespace, right.Account)
}

// WithoutAccount returns why a policy deletes nothing in a namespace although its rights are not known to be missing: it must name an
// account, and names none; empty if that is not so.
func (k *Knowledge) WithoutAccount(ns *memory.Namespace, p *policy.Policy) string {
	switch {
	case k.Account(p) != "", p.Name == "":
		return ""
	case ns.Bounds.RequireAccount != "":
		return fmt.Sprintf("ClusterCleanupPolicy %q requires an account (spec.guardrails.requireServiceAccount); set spec.serviceAccountName",
			ns.Bounds.RequireAccount)
	case k.Config.RequireAccount:
		return "Winnow runs with --require-service-account; set spec.serviceAccountName"
	}
	return ""
}
