// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"maps"
	"slices"
)

// reading collects the references of one object.
type reading struct {
	object          map[string]any
	namespace, name string   // The namespace is All if the object has none.
	also            []string // other namespaces in which names count, see within
	*collection
}

// collection has the references that were found. If there are too many, they are to everything in their namespaces. An object in a
// namespace reaches no further, whatever is in it: its own namespace, those that it names, and what it names by name. Of an object without
// a namespace, which not everybody may create, too many namespaces are all.
type collection struct {
	all                   map[Reference]struct{}
	own                   string // the namespace of the object; All if it has none
	of                    To     // what counts; references to all else are left out
	anyName, anyNamespace bool
}

// maxReferences bounds the memory for one object. Anybody may create a large one. What remains of an object in a namespace is no larger
// than its text.
const maxReferences = 50_000

func (c *collection) add(to To, namespace, name string) {
	if to &= c.of; to == 0 || name == "" {
		return
	}
	r := Reference{to, namespace, name}
	c.all[c.wider(r)] = struct{}{}
	for len(c.all) > maxReferences && (!c.anyName || c.own == All && !c.anyNamespace) {
		c.anyName, c.anyNamespace = true, c.anyName
		before := c.all
		c.all = map[Reference]struct{}{}
		for r := range before {
			c.all[c.wider(r)] = struct{}{}
		}
	}
}

// wider returns what stands for a reference, if there are too many.
func (c *collection) wider(r Reference) Reference {
	named := r.Namespace == All && r.Name != All // in whichever namespace
	if c.anyName && (!named || c.own == All) {
		r.To, r.Name = c.of, All
	}
	if c.anyNamespace || r.Namespace == All && r.Name == All {
		r.Namespace = c.own
	}
	return r
}

// unknown records that the object may refer to anything that an object of its namespace may refer to.
func (o *reading) unknown(to To) { o.add(to, o.namespace, All) }

func (o *reading) references() []Reference { return slices.SortedFunc(maps.Keys(o.all), Compare) }

var ownerNames = parse("metadata.ownerReferences[].name")

// metadata reads the names of the object, and its owners: deleting an owner deletes the object.
func (o *reading) metadata() error {
	o.namespace = All // until it is known
	metadata, err := field(o.object, "metadata")
	if err != nil {
		return err
	}
	name, err := text(metadata, "name")
	if err != nil {
		return err
	}
	namespace, err := text(metadata, "namespace")
	if err != nil {
		return err
	}
	o.name = name
	if namespace != "" {
		o.namespace, o.own = namespace, namespace
	}
	return ownerNames.walk(o.object, func(owner map[string]any, name any) error {
		if owner["apiVersion"] != "v1" {
			return nil
		}
		return o.named(rule{kind: true}, owner, name)
	})
}

// named adds the reference of a rule to a name, which is a field of parent.
func (o *reading) named(r rule, parent map[string]any, value any) error {
	name, ok := value.(string)
	if !ok {
		return fmt.Errorf("a name is %T, not a string", value)
	}
	namespace := o.namespace
	if r.namespace != "" {
		other, err := text(parent, r.namespace)
		if err != nil {
			return err
		}
		if other != "" {
			namespace = other
		}
	}
	to := r.to
	if r.kind {
		kind, err := text(parent, "kind")
		if err != nil {
			return err
		}
		if to = ofKind[kind]; to == 0 {
			return nil
		}
	}
	if r.everywhere {
		namespace = All
	}
	if isName(name) { // No object has another name.
		o.add(to, namespace, name)
	}
	return nil
}

// text returns a field that is a string; empty if it is not there.
func text(object map[string]any, key string) (string, error) {
	switch value := object[key].(type) {
	case nil:
		return "", nil
	case string:
		return value, nil
	default:
		return "", fmt.Errorf("%s is %T, not a string", key, value)
	}
}

// field returns a field that is an object; nil if it is not there.
func field(object map[string]any, key string) (map[string]any, error) {
	switch value := object[key].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return value, nil
	default:
		return nil, fmt.Errorf("%s is %T, not an object", key, value)
	}
}
