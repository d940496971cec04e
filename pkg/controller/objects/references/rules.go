// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"slices"
	"strings"
)

// rule says where the objects of a resource refer to others, and how.
type rule struct {
	path path
	to   To
	how  how
	// namespace is the field beside a name that has the namespace of the other object; empty if there is none. If an object does not have
	// it, the namespace is its own.
	namespace string
	// kind says that the field "kind" beside a name tells what it names.
	kind bool
	// everywhere says that the other object may be in any namespace.
	everywhere bool
	// unless is a path. If it leads to something, the rule does not apply.
	unless path
}

// how says what a rule finds at its path.
type how uint8

const (
	inName           how = iota // a name
	inWords                     // a value of unknown form; see words
	inAnnotations               // annotations
	inPodAnnotations            // those annotations of a Pod that mention a ConfigMap or Secret
	inText                      // a text, in which spaces separate names too
	inPodText                   // a text of a Pod, if it or the name of its variable mentions a ConfigMap or Secret
	inParameters                // the parameters of a StorageClass
	inAny                       // whatever is there, the object may refer to any other
	inClaimTemplate             // the name of a template for claims, which are named after it, the object and a number
	inUser                      // the name of a user or group, which a ServiceAccount has too
)

// fields returns the paths that a rule reads.
func (r rule) fields() [][]string {
	at := r.path.fixed()
	out := [][]string{at}
	if r.unless != nil {
		out = append(out, r.unless.fixed())
	}
	if len(at) < len(r.path) {
		return out
	}
	beside := func(key string) { out = append(out, append(slices.Clone(at[:len(at)-1]), key)) }
	if r.namespace != "" {
		beside(r.namespace)
	}
	if r.kind {
		beside("kind")
	}
	if r.how == inPodText {
		beside("name")
	}
	return out
}

// find adds what a rule finds in a value, which is a field of parent.
func (o *reading) find(r rule, parent map[string]any, value any) error {
	switch r.how {
	case inName:
		return o.named(r, parent, value)
	case inWords:
		o.words(r.to, value)
	case inAnnotations:
		return o.everywhere(r).annotations(r.to, value, always)
	case inPodAnnotations:
		return o.annotations(r.to, value, mayName)
	case inText, inPodText:
		return o.text(r, parent, value)
	case inParameters:
		return o.parameters(value)
	case inClaimTemplate:
		return o.claimTemplate(value)
	case inUser:
		o.user(value)
	case inAny:
		return fmt.Errorf("%s may select any object", r.path[len(r.path)-1].key)
	}
	return nil
}

// claimTemplate adds what the names of the claims of a StatefulSet have before their numbers.
func (o *reading) claimTemplate(value any) error {
	name, ok := value.(string)
	if !ok {
		return fmt.Errorf("the name of a template is %T, not a string", value)
	}
	o.add(PersistentVolumeClaims, o.namespace, name+"-"+o.name)
	return nil
}

// user adds the ServiceAccount that has the name of a user, "system:serviceaccount:namespace:name", or all that are in a group,
// "system:serviceaccounts:namespace".
func (o *reading) user(value any) {
	name, _ := value.(string)
	if account, ok := strings.CutPrefix(name, "system:serviceaccount:"); ok {
		namespace, name, _ := strings.Cut(account, ":")
		o.add(ServiceAccounts, namespace, name)
	}
	if namespace, ok := strings.CutPrefix(name, "system:serviceaccounts:"); ok {
		o.add(ServiceAccounts, namespace, All)
	}
}

// text adds every name in a text. parent may be the variable that has it as its value.
func (o *reading) text(r rule, parent map[string]any, value any) error {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("%s is %T, not a string", r.path[len(r.path)-1].key, value)
	}
	variable, _ := parent["name"].(string)
	if r.how == inText || mayName(variable, text) {
		o.split(r.to, text)
	}
	return nil
}

// everywhere returns a reading that adds what a rule finds to the same references.
func (o *reading) everywhere(r rule) *reading {
	out := *o
	if r.everywhere {
		out.namespace = All
	}
	return &out
}

// parameters adds the Secrets that a StorageClass names in its parameters. If there is a parameter for the namespace, as CSI drivers have
// it, they are in that namespace. Otherwise they may be in any namespace, because drivers may have other parameters for it. Names can be
// templates, see https://kubernetes-csi.github.io/docs/secrets-and-credentials-storage-class.html. The rules of PersistentVolumeClaims find
// the values of ${pvc.name} and ${pvc.annotations['key']}, and the rules of PersistentVolumes find ${pv.name}. What else a template may
// name is not known.
func (o *reading) parameters(value any) error {
	all, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("parameters are %T, not an object", value)
	}
	for key, value := range all {
		value, ok := value.(string)
		if !ok {
			return fmt.Errorf("parameter %s is not a string", key)
		}
		namespace, _ := all[strings.TrimSuffix(key, "ame")+"amespace"].(string)
		if isLabel(namespace) && isSecretName(key) && isName(value) {
			o.add(Secrets, namespace, value)
			continue
		}
		o.words(both, value)
		key = strings.ToLower(key)
		if strings.Contains(key, "secret") && !strings.HasSuffix(key, "namespace") && strings.Contains(value, "${") && !understood(value) {
			o.unknown(Secrets)
		}
	}
	return nil
}

// isSecretName reports whether a parameter is the name of a Secret: "csi.storage.k8s.io/node-stage-secret-name", "adminSecretName".
func isSecretName(key string) bool {
	return strings.HasSuffix(strings.ReplaceAll(strings.ToLower(key), "-", ""), "secretname")
}

// understood reports whether a template is exactly what a claim or a volume says.
func understood(template string) bool {
	inner, ok := strings.CutPrefix(template, "${")
	inner, closed := strings.CutSuffix(inner, "}")
	if !ok || !closed || strings.ContainsAny(inner, "${}") {
		return false
	}
	return inner == "pvc.name" || inner == "pvc.namespace" || inner == "pv.name" || strings.HasPrefix(inner, "pvc.annotations[")
}
