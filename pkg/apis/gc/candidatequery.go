// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Kinds of policies, as candidates name them.
const (
	KindCleanupPolicy        = "CleanupPolicy"
	KindClusterCleanupPolicy = "ClusterCleanupPolicy"
)

// Field selectors of candidates, besides metadata.name and metadata.namespace.
const (
	FieldObject   = "object" // "resource.group/name"
	FieldResource = "resource"
	FieldState    = "state"
	FieldPolicy   = "policy" // the name, of either kind
)

// CandidateStates are the states of candidates.
var CandidateStates = []CandidateState{
	CandidateWaiting, CandidateNotified, CandidateDue, CandidateHeld, CandidateTerminating, CandidateKept,
}

// +k8s:deepcopy-gen=false

// CandidateQuery says which candidates to return. It is never served.
type CandidateQuery struct {
	// Namespace is empty for all namespaces.
	Namespace string
	// Resources are those that the caller may see.
	Resources sets.Set[string]
	Labels    labels.Selector
	Fields    fields.Selector
	// All also selects objects that are no candidates.
	All bool
	// After is where the page before ended.
	After CandidatePosition
	// Limit is how many to return at most; 0 for all.
	Limit int
}

// +k8s:deepcopy-gen=false

// CandidatePosition is the place of a candidate in the order of lists. It means the same on every replica.
type CandidatePosition struct {
	Namespace string
	UID       types.UID
}

// Compare compares two positions.
func (p CandidatePosition) Compare(o CandidatePosition) int {
	return cmp.Or(cmp.Compare(p.Namespace, o.Namespace), cmp.Compare(p.UID, o.UID))
}

// +k8s:deepcopy-gen=false

// CandidatePage is a part of a list of candidates. It is never served.
type CandidatePage struct {
	Items []CleanupCandidate
	// Next is where the page ends, if more candidates follow; nil otherwise.
	Next *CandidatePosition
	// Hidden is how many candidates were left out, because the caller may not list their resource, whatever the selectors. Each page counts
	// the hidden candidates of the namespaces that begin on it.
	Hidden int
}

// The text about hidden candidates, before and after their number.
const hiddenBefore, hiddenAfter = "hidden candidates: ", ". You may not list their resources: "

// HiddenCandidates says how many candidates a page leaves out, because the caller lacks permissions.
func HiddenCandidates(n int, permissions string) string {
	return fmt.Sprint(hiddenBefore, n, hiddenAfter, permissions)
}

// ParseHiddenCandidates returns what HiddenCandidates was told, and whether the text is one of its texts.
func ParseHiddenCandidates(text string) (n int, permissions string, ok bool) {
	text, begins := strings.CutPrefix(text, hiddenBefore)
	number, permissions, continues := strings.Cut(text, hiddenAfter)
	n, err := strconv.Atoi(number)
	return n, permissions, begins && continues && err == nil
}

// NoPolicyAbout says why there is no candidate of a resource in a namespace, or with "" in any.
func NoPolicyAbout(resource, namespace string) string {
	return fmt.Sprintf("Winnow deletes no %s %s: no policy is about them, or the cluster does not serve them",
		resource, InNamespace(namespace))
}

// UnknownObject says that an object, "resource.group/name", is not known in a namespace, or with "" in any.
func UnknownObject(object, namespace string) string {
	return fmt.Sprintf("Winnow knows no %s %s: it is gone, or not observed yet", object, InNamespace(namespace))
}

// InNamespace names a namespace in a sentence; "" is any.
func InNamespace(namespace string) string {
	if namespace == "" {
		return "in any namespace"
	}
	return "in namespace " + namespace
}
