// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
)

// Faults returns the one policy or ResourceLifecycle of a text, or everything that is wrong with it.
func Faults(ctx context.Context, content []byte, namespace string) (runtime.Object, []error) {
	documents, err := Documents(content)
	switch {
	case err != nil:
		return nil, []error{err}
	case len(documents) != 1:
		return nil, []error{errors.New("write one policy or one ResourceLifecycle")}
	}
	object, err := Decode(ctx, documents[0], namespace)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		return nil, strict.Errors()
	}
	if err != nil {
		return nil, []error{err}
	}
	return object, nil
}

var (
	unknownField = regexp.MustCompile(`^(?:unknown|duplicate) field "([^"]+)"`)
	lineNumber   = regexp.MustCompile(`\bline (\d+)`)
	// step is one step of the path of a field: ".name" or "[key]".
	step = regexp.MustCompile(`^\.?([^.\[\]]+)|^\[([^\]]*)\]`)
)

// UnknownField returns the field that a message about an unknown field names; empty if it is another message.
func UnknownField(message string) string {
	if found := unknownField.FindStringSubmatch(message); found != nil {
		return found[1]
	}
	return ""
}

// Lines knows on which line of a text each field is.
type Lines struct{ root *yamlv3.Node }

// NewLines returns the lines of the first document that is not empty.
func NewLines(content []byte) Lines {
	reader := yamlv3.NewDecoder(bytes.NewReader(content))
	for {
		var document yamlv3.Node
		if err := reader.Decode(&document); err != nil {
			return Lines{}
		}
		if len(document.Content) == 1 && document.Content[0].Tag != "!!null" {
			return Lines{document.Content[0]}
		}
	}
}

// Of returns the line of a field, or of the field around it if it is missing. Without a field, it returns the line that the message names.
// 0 means that the line is not known.
func (l Lines) Of(field, message string) int {
	if field == "" || l.root == nil {
		if found := lineNumber.FindStringSubmatch(message); found != nil {
			line, _ := strconv.Atoi(found[1]) // Only digits match.
			return line
		}
		return 0
	}
	at, line := l.root, 0
	for rest := field; rest != "" && at != nil; {
		found := step.FindStringSubmatch(rest)
		if found == nil {
			return line
		}
		rest = rest[len(found[0]):]
		var next int
		if at, next = child(at, strings.Trim(found[1]+found[2], `"`)); next > 0 {
			line = next
		}
	}
	return line
}

// child returns what a node has under a name or an index, and on which line it begins.
func child(of *yamlv3.Node, name string) (*yamlv3.Node, int) {
	if of.Kind == yamlv3.AliasNode {
		of = of.Alias
	}
	if of.Kind == yamlv3.SequenceNode {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(of.Content) {
			return of.Content[i], of.Content[i].Line
		}
	}
	if of.Kind == yamlv3.MappingNode {
		for i := 0; i+1 < len(of.Content); i += 2 {
			if of.Content[i].Value == name {
				return of.Content[i+1], of.Content[i].Line
			}
		}
	}
	return nil, 0
}
