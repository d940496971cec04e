// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/plugin/files"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/version"
)

// Find returns the test files of some paths: the files among them, and below folders all that end with Suffix. It leaves out folders of
// other tools.
func Find(paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		found := len(out)
		err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && name != path && ofOthers(entry.Name()):
				return fs.SkipDir
			case entry.IsDir():
			case name == path, strings.HasSuffix(name, Suffix), strings.HasSuffix(name, otherSuffix):
				out = append(out, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(out) == found {
			return nil, fmt.Errorf("%s has no file whose name ends with %s", path, Suffixes)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// ofOthers reports whether a folder belongs to a tool, such as .git, or has what others wrote.
func ofOthers(folder string) bool {
	return strings.HasPrefix(folder, ".") || folder == "vendor" || folder == "node_modules"
}

// loaded is a test file and the files that it names.
type loaded struct {
	*Test
	local.Manifests
	objects []local.Object // the names of all
}

// load reads a test file.
func load(ctx context.Context, path string, readFile func(string) ([]byte, error)) (*loaded, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, err
	}
	documents, err := files.Documents(content)
	if err != nil {
		return nil, err
	}
	l := &loaded{}
	if documents, err = l.takeTest(documents); err != nil {
		return nil, err
	}
	if err := l.add(ctx, documents); err != nil {
		return nil, err
	}
	for i, name := range l.Files {
		file := name
		if !filepath.IsAbs(name) {
			file = filepath.Join(filepath.Dir(path), name)
		}
		switch err := l.addFile(ctx, file, readFile); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("files[%d]: there is no %s; names are relative to the test file", i, name)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return l, l.complete()
}

func (l *loaded) addFile(ctx context.Context, path string, readFile func(string) ([]byte, error)) error {
	content, err := readFile(path)
	if err != nil {
		return err
	}
	documents, err := files.Documents(content)
	if err != nil {
		return err
	}
	return l.add(ctx, documents)
}

// takeTest decodes the Test among the documents, and returns the others.
func (l *loaded) takeTest(documents [][]byte) (others [][]byte, err error) {
	for _, document := range documents {
		var of metav1.TypeMeta
		switch err := json.Unmarshal(document, &of); {
		case err != nil:
			return nil, err
		case of.Kind != Kind && !strings.HasPrefix(of.APIVersion, testGroup+"/"):
			others = append(others, document)
		case of.Kind != Kind, of.APIVersion != APIVersion:
			return nil, fmt.Errorf("apiVersion and kind of a test are %s and %s, not %s and %s", APIVersion, Kind, of.APIVersion, of.Kind)
		case l.Test != nil:
			return nil, fmt.Errorf("the file has more than one %s; use one file for each", Kind)
		default:
			if l.Test, err = decode(document); err != nil {
				return nil, err
			}
		}
	}
	if l.Test == nil {
		return nil, fmt.Errorf("the file has no document with apiVersion: %s and kind: %s", APIVersion, Kind)
	}
	return others, nil
}

// add adds documents of what the cluster has.
func (l *loaded) add(ctx context.Context, documents [][]byte) error {
	for _, document := range documents {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(document); err != nil {
			return err
		}
		if u.IsList() {
			var list struct {
				Items []json.RawMessage `json:"items"`
			}
			if err := json.Unmarshal(document, &list); err != nil {
				return err
			}
			items := make([][]byte, len(list.Items))
			for i, item := range list.Items {
				items[i] = item
			}
			if err := l.add(ctx, items); err != nil {
				return err
			}
			continue
		}
		if err := l.addObject(ctx, document, u); err != nil {
			return err
		}
	}
	return nil
}

func (l *loaded) addObject(ctx context.Context, document []byte, u *unstructured.Unstructured) error {
	switch {
	case u.GroupVersionKind().Group == testGroup:
		return fmt.Errorf("it has a %s, which only counts in the file that is run; move what both tests need into a third file", u.GetKind())
	case u.GroupVersionKind().GroupKind() == schema.GroupKind{Group: eventsv1.GroupName, Kind: "Event"}:
		return fmt.Errorf("an Event %s has apiVersion: %s; write it with apiVersion: v1, because policies name Events without that group",
			u.GetName(), u.GetAPIVersion())
	case u.GetName() == "":
		return fmt.Errorf("a %s has no metadata.name", u.GetKind())
	}
	if u.GroupVersionKind().Group != v1alpha1.GroupName {
		l.Objects = append(l.Objects, u)
		return checkFields(document, u)
	}
	object, err := files.Decode(ctx, document, l.Namespace)
	switch object := object.(type) {
	case *gc.CleanupPolicy:
		l.Policies = append(l.Policies, object)
	case *gc.ClusterCleanupPolicy:
		l.ClusterPolicies = append(l.ClusterPolicies, object)
	case *gc.ResourceLifecycle:
		l.Lifecycles = append(l.Lifecycles, object)
	}
	return err
}

var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// checkFields fails if an object of Kubernetes has an unknown kind, unknown fields, or values of a wrong type. Of other objects, it checks
// nothing.
func checkFields(document []byte, u *unstructured.Unstructured) error {
	gvk := u.GroupVersionKind()
	switch {
	case !scheme.Scheme.IsGroupRegistered(gvk.Group):
		return nil
	case !scheme.Scheme.Recognizes(gvk):
		return fmt.Errorf("%s %s: Kubernetes has no kind %s in %s, as far as kubectl-winnow %s knows; correct it, or use a newer kubectl-winnow",
			gvk.Kind, u.GetName(), gvk.Kind, gvk.GroupVersion(), version.Get())
	}
	if _, _, err := strict.Decode(document, nil, nil); err != nil {
		return fmt.Errorf("%s %s: %w; if it is a new field of Kubernetes, remove it, or use a newer kubectl-winnow than %s",
			gvk.Kind, u.GetName(), err, version.Get())
	}
	return nil
}

// complete names the objects, and checks that the test names no others.
func (l *loaded) complete() error {
	if len(l.Policies)+len(l.ClusterPolicies) == 0 {
		return errors.New("the test has no policy; write one into the file, or name its file under files")
	}
	if err := l.Complete(l.Namespace); err != nil {
		return err
	}
	for _, u := range l.Objects {
		l.objects = append(l.objects, l.ObjectOf(u))
	}
	for i := range l.Test.Marks {
		m := &l.Test.Marks[i]
		if !slices.Contains(l.objects, m.name()) {
			return fmt.Errorf("marks[%d].object: %w", i, missing(&m.Named, l.objects))
		}
		l.Manifests.Marks = append(l.Manifests.Marks, m.mark())
	}
	for i := range l.Expect {
		if e := &l.Expect[i]; !slices.Contains(l.objects, e.name()) {
			return fmt.Errorf("expect[%d].object: %w", i, missing(&e.Named, l.objects))
		}
	}
	return nil
}

func (m *Mark) mark() local.Mark {
	out := local.Mark{Object: m.name()}
	if m.Since != nil {
		out.Since = m.Since.UTC()
	}
	if m.NoticeGiven != nil {
		out.Notice = policy.Announcement{Given: m.NoticeGiven.UTC(), At: m.NoticeDue.UTC()}
		if m.NoticeAcknowledged != nil {
			out.Notice.Delivered = m.NoticeAcknowledged.UTC()
		}
	}
	return out
}
