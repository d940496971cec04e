// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
)

const (
	// maxName is how long the name of an object may be, and maxLabel the name of a namespace.
	maxName, maxLabel = 253, 63
	// maxText is longer than any value that only names objects. What is longer is a text, a certificate or a script.
	maxText = 1024
	// maxNamespaces is in how many other namespaces a name may be. If there are more, everything in them may be used.
	maxNamespaces = 8
)

// Undeclared returns a Reader for custom resources of which it is not known how they refer to ConfigMaps and Secrets. Whatever a string in
// such an object may name counts as used:
//
//   - each string as a whole, and each part of it between characters that names cannot have. So the common forms are found: "ns/name",
//     "ns:name" (Rancher), "secret://name", "a,b" and "${secrets:ns/name:key}" (Strimzi), "name:/path" (Flink), and "name.ns" in fields
//     that speak of Secrets (Ambassador). Strings with spaces are prose and name nothing, unless they are commands or scripts;
//   - in the namespaces that stand beside or above it too, see within;
//   - the keys of maps, and what follows a dot in them: "spark.kubernetes.driver.secrets.name" (Spark). Field names cannot be told from
//     keys, so they count too;
//   - the object's own name, because many operators use the Secret that has the name of the custom resource (External Secrets, Strimzi);
//   - its annotations, see annotations.
//
// Labels do not count: they select objects, and cannot hold every name.
func Undeclared() *Reader {
	return newReader(func(o *reading) error {
		o.add(o.of, o.namespace, o.name)
		o.content(func(o *reading, _ string, value any) { o.words(o.of, value) })
		return o.everyAnnotation()
	}, [][]string{{}})
}

// content calls read with each field of the object but its kind and metadata.
func (o *reading) content(read func(o *reading, key string, value any)) {
	in := o.within(o.object)
	for key, value := range o.object {
		if key != "apiVersion" && key != "kind" && key != "metadata" {
			read(in, key, value)
		}
	}
}

var everyAnnotation = parse(annotationsPath)

func (o *reading) everyAnnotation() error {
	return everyAnnotation.walk(o.object, func(parent map[string]any, value any) error {
		return o.find(rule{to: o.of, how: inAnnotations}, parent, value)
	})
}

// within returns a reading for what is in an object. If fields of it have namespaces, the names in it count in these namespaces too,
// however deep they are: {name: s, namespace: ns}, {secretName: s, secretNamespace: ns}.
func (o *reading) within(object map[string]any) *reading {
	var also []string
	for key, value := range object {
		key = strings.ToLower(key)
		if !strings.HasSuffix(key, "namespace") && !strings.HasSuffix(key, "namespaces") {
			continue
		}
		values, ok := value.([]any)
		if !ok {
			values = []any{value}
		}
		for _, v := range values {
			if namespace, ok := v.(string); ok && isLabel(namespace) {
				also = append(also, namespace)
			}
		}
	}
	if len(also) == 0 || o.namespace == All {
		return o
	}
	also = append(also, o.also...)
	slices.Sort(also)
	if also = slices.Compact(also); len(also) > maxNamespaces {
		for _, namespace := range also {
			o.add(o.of, namespace, All)
		}
		return o
	}
	out := *o
	out.also = also
	return &out
}

// words adds every name in a value.
func (o *reading) words(to To, value any) {
	switch value := value.(type) {
	case string:
		o.word(to, value)
	case []any:
		for _, v := range value {
			o.words(to, v)
		}
	case map[string]any:
		o = o.within(value)
		for key, v := range value {
			o.key(to, key)
			o.words(to, v)
			o.byKey(to, key, v)
		}
	}
}

// byKey adds what the name of a field says of its value: commands and scripts are no prose, and a Secret can be given as "name.ns".
func (o *reading) byKey(to To, key string, value any) {
	switch text, _ := value.(string); {
	case key == "command", key == "args", key == "env", key == "script", key == "source":
		o.texts(to, value)
	case text != "" && mentions(key) != 0:
		dot := strings.LastIndexByte(text, '.')
		if name, namespace := text[:max(dot, 0)], text[dot+1:]; isName(name) && isLabel(namespace) {
			o.add(to, namespace, name)
		}
	}
}

// texts adds every name in the texts in a value, in which spaces separate names too.
func (o *reading) texts(to To, value any) {
	switch value := value.(type) {
	case string:
		o.split(to, value)
	case []any:
		for _, v := range value {
			o.texts(to, v)
		}
	case map[string]any:
		for _, v := range value {
			o.texts(to, v)
		}
	}
}

// key adds every name in a key, and those that begin after a dot in it.
func (o *reading) key(to To, key string) {
	o.word(to, key)
	if strings.Contains(key, "/") {
		return
	}
	for _, rest, dotted := strings.Cut(key, "."); dotted; _, rest, dotted = strings.Cut(rest, ".") {
		if len(rest) <= maxName { // Otherwise the time would grow with the square of the length.
			o.word(to, rest)
		}
	}
}

// word adds the names in a string that is no prose.
func (o *reading) word(to To, value string) {
	if value = strings.TrimSpace(value); to != 0 && len(value) <= maxText && !strings.ContainsFunc(value, unicode.IsSpace) {
		o.split(to, value)
	}
}

// mentioned adds every name in a field, and in the fields below it, whose own names speak of a Secret or ConfigMap, and each name beside
// one of these kinds. to is what the fields above it speak of.
func (o *reading) mentioned(to To, key string, value any) {
	to |= mentions(key)
	switch value := value.(type) {
	case string:
		if to != 0 {
			o.word(to, value)
		}
	case []any:
		for _, v := range value {
			o.mentioned(to, "", v)
		}
	case map[string]any:
		o = o.within(value)
		if kind, _ := value["kind"].(string); kind != "" {
			name, _ := value["name"].(string)
			o.word(ofKind[kind], name)
		}
		for key, v := range value {
			o.mentioned(to, key, v)
		}
	}
}

// ofKind has what objects of a kind are; both if it is not known.
var ofKind = map[string]To{
	"Secret": Secrets, "ConfigMap": ConfigMaps, "": both,
	"PersistentVolumeClaim": PersistentVolumeClaims, "ServiceAccount": ServiceAccounts,
}

// split adds the names that stand in a text between characters that names cannot have. A name after "ns/" or "ns:" is one in that namespace
// too.
func (o *reading) split(to To, value string) {
	before := "" // the word that ends right before a slash or colon
	for value != "" {
		end := strings.IndexFunc(value, func(c rune) bool { return !isWord(c) })
		if end < 0 {
			end = len(value)
		}
		word := value[:end]
		if isName(word) {
			o.add(to, o.namespace, word)
			for _, namespace := range o.also {
				o.add(to, namespace, word)
			}
			if before != "" {
				o.add(to, before, word)
			}
		}
		before = ""
		if end == len(value) {
			return
		}
		if (value[end] == '/' || value[end] == ':') && isLabel(word) {
			before = word
		}
		value = value[end+1:]
	}
}

// isWord reports whether a character is part of a word. Words with capitals or underscores are words, but no names.
func isWord(c rune) bool {
	return c == '-' || c == '.' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c > unicode.MaxASCII
}

// isName reports whether ConfigMaps and Secrets can have the name: it is a DNS subdomain (RFC 1123).
func isName(s string) bool {
	if len(s) > maxName {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if !isPart(part) {
			return false
		}
	}
	return true
}

// isPart reports whether a word has only small letters, digits and hyphens, and begins and ends with a letter or digit.
func isPart(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case c != '-' || i == 0 || i == len(s)-1:
			return false
		}
	}
	return s != ""
}

// isLabel reports whether a namespace can have the name.
func isLabel(s string) bool { return len(s) <= maxLabel && isPart(s) }

// ignored are the annotations that refer to nothing.
var ignored = map[string]bool{
	corev1.LastAppliedConfigAnnotation: true, // It is a copy of the object.
	"kubernetes.io/description":        true, // It is prose. That of kube-root-ca.crt is in every namespace.
}

// annotations adds every name in annotations. They often are JSON, so spaces separate names too. Many controllers read names from them: of
// Ingresses (nginx.ingress.kubernetes.io/auth-secret: ns/name), of Services in Linode's cloud (tls-secret-name in JSON), of templates
// (ENC[k8s_secret@ns/name/key], Datadog), and of Secrets that copy another (reflector.v1.k8s.emberstack.com/reflects: ns/name).
func (o *reading) annotations(to To, value any, counts func(key, value string) bool) error {
	all, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("annotations are %T, not an object", value)
	}
	for key, value := range all {
		value, ok := value.(string)
		if !ok {
			return fmt.Errorf("annotation %s is not a string", key)
		}
		if !ignored[key] && counts(key, value) {
			o.split(to, value)
		}
	}
	return nil
}

func always(_, _ string) bool { return true }

// mayName reports whether a value, or the key that it has, says that it is about a ConfigMap or Secret.
func mayName(key, value string) bool { return mentions(key)|mentions(value) != 0 }

// mentions returns what a text speaks of.
func mentions(s string) (to To) {
	s = strings.ToLower(s)
	if strings.Contains(s, "secret") || strings.Contains(s, "credential") {
		to |= Secrets
	}
	if strings.Contains(s, "configmap") || strings.Contains(s, "config-map") || strings.Contains(s, "config_map") {
		to |= ConfigMaps
	}
	return to
}
