// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unused finds PersistentVolumeClaims, ServiceAccounts and Services that nothing uses. It only reads, and what it cannot read
// counts as a use.
package unused

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
)

// Finder takes in objects that may be unused, then what may refer to them, and says which are unused.
type Finder struct {
	subjects []*subject
	// named are the subjects by what a reference to them has as its namespace and name. The namespace can be references.All.
	named map[references.Reference][]*subject
	// parts are the claims by parts of their names, such as "kafka" of "data-kafka-0", in their namespaces.
	parts      map[references.Reference][]*subject
	namespaces map[string][]*subject
	gaps       []Gap
	blind      references.To // what may be in use by something that could not be read
}

// subject is an object that may be unused.
type subject struct {
	Object
	to       references.To
	pod      string          // a Pod that has not finished and names the claim; empty if there is none
	selector labels.Selector // of the Pods of a Service
	said     *corev1.PersistentVolumeClaimCondition
	last     string // the last user, which may name it several times
}

// Gap is something that could not be read, so that it may refer to anything.
type Gap struct {
	// Where is the place, such as "in namespace team-a".
	Where     string   `json:"where,omitempty"`
	Resources []string `json:"resources"`
	Why       string   `json:"why"`
}

// String returns the gap as a sentence for people.
func (g Gap) String() string {
	const most = 5
	names := strings.Join(g.Resources[:min(most, len(g.Resources))], ", ")
	if more := len(g.Resources) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("cannot list %s %s, so what only they may refer to counts as used: %s", names, g.Where, g.Why)
}

// NewFinder returns a Finder without objects.
func NewFinder() *Finder {
	return &Finder{
		named: map[references.Reference][]*subject{}, parts: map[references.Reference][]*subject{}, namespaces: map[string][]*subject{},
	}
}

// add adds a subject, and the names by which others may refer to it.
func (f *Finder) add(s *subject, aliases ...string) {
	f.subjects = append(f.subjects, s)
	f.namespaces[s.Namespace] = append(f.namespaces[s.Namespace], s)
	names := append([]string{s.Name}, aliases...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		for _, namespace := range []string{s.Namespace, references.All} {
			key := references.Reference{To: s.to, Namespace: namespace, Name: name}
			f.named[key] = append(f.named[key], s)
		}
	}
}

// Cannot notes that a resource could not be read, which may refer to some objects.
func (f *Finder) Cannot(resource, where, why string, to references.To) {
	f.blind |= to
	i := slices.IndexFunc(f.gaps, func(g Gap) bool { return g.Where == where && g.Why == why })
	if i < 0 {
		i = len(f.gaps)
		f.gaps = append(f.gaps, Gap{Where: where, Why: why})
	}
	f.gaps[i].Resources = append(f.gaps[i].Resources, resource)
}

// Refer takes in an object of a resource that may refer to subjects.
func (f *Finder) Refer(r *kinds.Referrer, o *unstructured.Unstructured) {
	by := r.Resource() + "/" + o.GetName()
	if o.GetNamespace() == "" {
		by += " (cluster-scoped)"
	}
	refs, err := r.Reader.References(o.Object)
	for _, ref := range refs {
		for _, s := range f.find(ref) {
			who := by
			if o.GetNamespace() != "" && o.GetNamespace() != s.Namespace {
				who += " in " + o.GetNamespace()
			}
			if ref.Name == references.All && (err != nil || ref.To != references.ServiceAccounts) { // Bindings name the group of all of them.
				who += " (may refer to everything: " + whyAll(err) + ")"
			}
			s.use(who, r.Resource() == "pods" && !finished(o))
		}
	}
	if r.OfCustomResource() {
		f.partNames(by, o)
	}
	f.selected(by, podLabels(r.Resource(), o), o.GetNamespace())
}

func whyAll(err error) string {
	if err == nil {
		return "it names too many namespaces"
	}
	return err.Error()
}

// find returns the subjects that a reference may be to.
func (f *Finder) find(r references.Reference) (out []*subject) {
	all := f.subjects
	switch {
	case r.Name != references.All:
		for _, to := range []references.To{references.PersistentVolumeClaims, references.ServiceAccounts, references.Services} {
			if r.To&to != 0 {
				out = append(out, f.named[references.Reference{To: to, Namespace: r.Namespace, Name: r.Name}]...)
			}
		}
		return out
	case r.Namespace != references.All:
		all = f.namespaces[r.Namespace]
	}
	for _, s := range all {
		if r.To&s.to != 0 {
			out = append(out, s)
		}
	}
	return out
}

// partNames takes in that a custom resource may use the claims whose names contain its own. Many operators name claims so, and name them
// nowhere else.
func (f *Finder) partNames(by string, o *unstructured.Unstructured) {
	for _, s := range f.parts[references.Reference{Namespace: o.GetNamespace(), Name: o.GetName()}] {
		s.use(by, false)
	}
}

// selected takes in that Services select Pods, or the Pods of a template, by their labels.
func (f *Finder) selected(by string, pods labels.Set, namespace string) {
	if len(pods) == 0 {
		return
	}
	for _, s := range f.namespaces[namespace] {
		if s.selector != nil && s.selector.Matches(pods) {
			s.use(by, false)
		}
	}
}

// podLabels returns the labels of a Pod, or of those that a template makes.
func podLabels(resource string, o *unstructured.Unstructured) labels.Set {
	path, ok := references.PodTemplates[resource]
	if !ok && resource != "pods" {
		return nil
	}
	found, _, _ := unstructured.NestedStringMap(o.Object, append(slices.Clone(path), "metadata", "labels")...)
	return found
}

// finished reports whether a Pod has ended, in the sense of the condition Unused of claims: one that is being deleted has, if none of its
// containers runs.
func finished(pod *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	switch {
	case phase == string(corev1.PodSucceeded), phase == string(corev1.PodFailed):
		return true
	case pod.GetDeletionTimestamp() == nil:
		return false
	}
	for _, field := range references.ContainerStatuses {
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", field)
		for _, s := range statuses {
			status, _ := s.(map[string]any)
			state, _, _ := unstructured.NestedMap(status, "state")
			if state["terminated"] == nil && state["waiting"] == nil {
				return false
			}
		}
	}
	return true
}

// shownUsers is how many users of an object are named.
const shownUsers = 3

// use notes a user of the subject. running says that it is a Pod that has not finished.
func (s *subject) use(by string, running bool) {
	if running {
		s.pod = cmp.Or(s.pod, by)
	}
	if by == s.last {
		return
	}
	s.last = by
	if s.Users++; len(s.UsedBy) < shownUsers {
		s.UsedBy = append(s.UsedBy, by)
	}
}

// stem returns the name of a claim without the number that StatefulSets and many operators add.
func stem(name string) string {
	at := strings.LastIndexByte(name, '-')
	if at <= 0 || at == len(name)-1 || strings.Trim(name[at+1:], "0123456789") != "" {
		return name
	}
	return name[:at]
}

// maxParts bounds the memory for one name.
const maxParts = 500

// partsOf returns the parts of a name that begin and end at a hyphen or at its ends.
func partsOf(name string) (out []string) {
	words := strings.Split(name, "-")
	for i := range words {
		for j := i + 1; j <= len(words) && len(out) < maxParts; j++ {
			out = append(out, strings.Join(words[i:j], "-"))
		}
	}
	return out
}

// kept returns what keeps an object although nothing refers to it.
func kept(m *metav1.ObjectMeta, tool string) (out []string) {
	for i := range m.OwnerReferences {
		o := &m.OwnerReferences[i]
		out = append(out, fmt.Sprintf("its owner %s/%s", o.Kind, o.Name))
	}
	for _, finalizer := range m.Finalizers {
		if finalizer != protection {
			out = append(out, "finalizer "+finalizer)
		}
	}
	if tool != "" {
		out = append(out, tool+" applied it")
	}
	return out
}

// protection is the finalizer that Kubernetes itself gives every claim.
const protection = "kubernetes.io/pvc-protection"
