// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package references finds the ConfigMaps and Secrets that objects refer to, and counts these references. For reports, it finds more; see
// Reported. What it cannot read counts as a reference to everything that the object may refer to, so that nothing is taken for unused in
// doubt. The package is pure.
package references

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/winnow-dev/winnow/pkg/expressions"
)

// To is the set of resources that a reference may be to.
type To uint8

// Secrets and ConfigMaps can be combined.
const (
	Secrets To = 1 << iota
	ConfigMaps

	both = Secrets | ConfigMaps
)

// These are for reports alone, see Reported. References to them have no Key.
const (
	PersistentVolumeClaims To = 4 << iota
	ServiceAccounts
	Services

	reported = PersistentVolumeClaims | ServiceAccounts | Services
)

// All is the Namespace of a reference to objects in every namespace, and the Name of one to every object of a namespace.
const All = "*"

// Reference says that an object uses another. Optional references count too.
type Reference struct {
	To To
	// Namespace is All for a reference from an object without a namespace that names none.
	Namespace string
	// Name is All if it is not known which objects are used.
	Name string
}

// Compare orders references.
func Compare(a, b Reference) int {
	return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Key stands for a Reference in eight bytes. Two references may have the same Key by chance. Then an object counts as used that is not.
type Key uint64

// Key returns the key of a reference. Its last bits are To.
func (r Reference) Key() Key {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.Namespace + "/" + r.Name)) // It never fails.
	return Key(h.Sum64()&^uint64(both)) | Key(r.To)
}

// Place returns what the keys of a Secret and of a ConfigMap with the same namespace and name have in common.
func (k Key) Place() Key { return k &^ Key(both) }

// To returns what the reference is to.
func (k Key) To() To { return To(k) & both }

// Keys returns the keys of references, sorted, each once.
func Keys(refs []Reference) []Key {
	keys := make([]Key, 0, len(refs))
	for _, r := range refs {
		keys = append(keys, r.Key())
	}
	slices.Sort(keys)
	return slices.Clip(slices.Compact(keys))
}

// KeysOf returns the keys of all references that make an object used: first of those that name it, then of those that may be to any object.
func KeysOf(to To, namespace, name string) (named, unknown [4]Key) {
	i := 0
	for _, to := range []To{to, both} {
		for _, namespace := range []string{namespace, All} {
			named[i] = Reference{to, namespace, name}.Key()
			unknown[i] = Reference{to, namespace, All}.Key()
			i++
		}
	}
	return named, unknown
}

// Reader finds the references of the objects of one resource. It is immutable.
type Reader struct {
	fields [][]string
	read   func(*reading) error
	of     To // what it finds references to
	self   To // what the objects themselves are; 0 if they are neither ConfigMaps nor Secrets
}

// Fields returns the paths of an object that are read, as expressions.Union returns them. A path through a list leads into its elements.
func (r *Reader) Fields() [][]string { return r.fields }

// To returns what the Reader may find references to.
func (r *Reader) To() To { return r.of }

// References returns the references of an object that has at least Fields, sorted, each once. The error says what could not be read. Then
// the object may refer to everything in its own namespace, and by any name in it to other namespaces.
func (r *Reader) References(object map[string]any) ([]Reference, error) {
	o := &reading{object: object, collection: &collection{all: map[Reference]struct{}{}, own: All, of: r.of}}
	err := o.metadata()
	if err == nil {
		err = r.read(o)
	}
	switch {
	case err != nil:
		o.unknown(o.of)
		o.namespace = All
		o.words(o.of, o.object)
	case o.anyName:
		err = fmt.Errorf("it has more than %d names", maxReferences)
	default:
		o.forget(r.self)
	}
	return o.references(), err
}

func newReader(read func(*reading) error, fields ...[][]string) *Reader {
	owned := [][]string{{"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "ownerReferences"}}
	return &Reader{fields: expressions.Union(append(fields, owned)...), read: read, of: both}
}
