// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

// Right is a right that a request needs in a namespace. Account is the ServiceAccount of the namespace as which the request is sent; empty
// for Winnow itself. Resource is "resource.group".
type Right struct{ Verb, Resource, Namespace, Account string }

// Right returns the right that the order needs.
func (o *Order) Right() Right {
	return Right{Verb: VerbOf(o.Deadline != nil), Resource: o.Fact.Resource, Namespace: o.Fact.Namespace, Account: o.Account}
}

// ReadRight returns the right that reading the object of the order needs.
func (o *Order) ReadRight() Right {
	right := o.Right()
	right.Verb = "get"
	return right
}

// VerbOf returns the verb of the request that changes a deadline, or of the one that deletes an object.
func VerbOf(deadline bool) string {
	if deadline {
		return "patch"
	}
	return "delete"
}
