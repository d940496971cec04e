// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/fake"
	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

func copyOf(name, content string) *v1alpha1.CleanupCopy {
	out := &v1alpha1.CleanupCopy{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "uid"}}
	out.Status.Object.Name, out.Status.Content = name, content
	return out
}

// TestRestorable: what is left of an object: the name, the labels, the annotations and the content.
func TestRestorable(t *testing.T) {
	const full = `{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {
		"name": "w", "namespace": "a", "generateName": "w-", "uid": "u", "resourceVersion": "7", "generation": 3, "selfLink": "/x",
		"creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z", "deletionGracePeriodSeconds": 0,
		"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "ou", "controller": true}],
		"finalizers": ["example.com/clean"], "managedFields": [{"manager": "kubectl"}], "somethingNew": {"x": 1},
		"labels": {"a": "b"}, "annotations": {"c": "d"}},
		"spec": {"size": 9007199254740993, "unknown": [1.5, null, {"deep": true}]}, "status": {"phase": "Done"}}`
	const left = `{"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": {"name": "w", "namespace": "a", "labels": {"a": "b"}, "annotations": {"c": "d"}},
		"spec": {"size": 9007199254740993, "unknown": [1.5, null, {"deep": true}]}, "status": {"phase": "Done"}}`
	named := func(name string) string {
		encoded, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %s, "namespace": "a"}}`, encoded)
	}
	with := func(metadata, rest string) string {
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w", "namespace": "a"%s}%s}`, metadata, rest)
	}
	for name, c := range map[string]struct {
		name, content string
		want          string // JSON
		fails         string
	}{
		"everything":            {"w", full, left, ""},
		"odd characters":        {"we:ird.näme%2F\u001b[31m", named("we:ird.näme%2F\u001b[31m"), named("we:ird.näme%2F\u001b[31m"), ""},
		"with items":            {"w", with("", `, "items": [{"kind": "Secret"}]`), with("", `, "items": [{"kind": "Secret"}]`), ""},
		"labels that are wrong": {"w", with(`, "labels": ["x"], "annotations": "y"`, ""), with("", ""), ""},
		"empty labels":          {"w", with(`, "labels": {}, "annotations": null`, ""), with("", ""), ""},
		"no metadata":           {"w", `{"apiVersion": "v1", "kind": "ConfigMap"}`, "", "no metadata"},
		"metadata as a text":    {"w", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": "w"}`, "", "no metadata"},
		"no kind":               {"w", `{"metadata": {"name": "w", "namespace": "a"}}`, "", "cannot be read"},
		"no JSON":               {"w", "apiVersion: v1", "", "cannot be read"},
		"nothing":               {"w", "", "", "cannot be read"},
		"a list":                {"w", "[]", "", "cannot be read"},
		"cut off":               {"w", full[:len(full)-1], "", "cannot be read"},
		"another name":          {"x", full, "", "another object"},
		"another namespace":     {"w", strings.Replace(full, `"namespace": "a"`, `"namespace": "b"`, 1), "", "another object"},
		"without a name":        {"", with(`, "name": ""`, ""), "", "another object"},
		"deeper than JSON goes": {"w", with("", `, "x": `+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)), "", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Restorable(copyOf(c.name, c.content))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			encoded, err := got.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, c.want), decoded(t, string(encoded))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, text string) (out map[string]any) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber() // No digit may change.
	if err := decoder.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTwentyKinds: objects of many kinds keep everything but their metadata, byte for byte once it is in order.
func TestTwentyKinds(t *testing.T) {
	for i := range 20 {
		spec := fmt.Sprintf(`{"n":%d,"f":%d.5,"s":"\u2028\u0000é","b":%t,"l":[%s],"m":{"k":null}}`, i, i, i%2 == 0, strings.Repeat(`{},`, i)+"0")
		content := fmt.Sprintf(`{"apiVersion":"g%d.example.com/v%d","kind":"Kind%d","metadata":{"name":"w","namespace":"a","uid":"u"},"spec":%s}`,
			i, i, i, spec)
		got, err := Restorable(copyOf("w", content))
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := got.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decoded(t, strings.Replace(content, `,"uid":"u"`, "", 1)), decoded(t, string(encoded))); diff != "" {
			t.Errorf("kind %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestDoubt: only a record of the deletion of the same state says that the copy is what was deleted.
func TestDoubt(t *testing.T) {
	object := v1alpha1.RecordObject{Resource: "configmaps", Name: "c", UID: "u", ResourceVersion: "7"}
	other := object
	other.ResourceVersion = "8"
	for name, c := range map[string]struct {
		known []v1alpha1.RecordObject
		err   error
		want  string
	}{
		"deleted":                  {[]v1alpha1.RecordObject{object}, nil, ""},
		"deleted, among others":    {[]v1alpha1.RecordObject{other, object}, nil, ""},
		"deleted in another state": {[]v1alpha1.RecordObject{other}, nil, "resourceVersion 8, and not 7"},
		"no record":                {nil, nil, "no record says"},
		"no answer":                {nil, errors.New("down"), "does not say"},
	} {
		client := fake.NewClientset()
		client.PrependReactor("list", "cleanuprecords", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if options := action.(clienttesting.ListActionImpl).ListOptions; options.FieldSelector != "metadata.name=u" || action.GetNamespace() != "a" {
				t.Errorf("the field selector is %s", options.FieldSelector)
			}
			list := &v1alpha1.CleanupRecordList{}
			for _, known := range c.known {
				list.Items = append(list.Items, v1alpha1.CleanupRecord{Status: v1alpha1.CleanupRecordStatus{Object: known}})
			}
			return true, list, c.err
		})
		found := copyOf("c", "")
		found.Status.Object = object
		if got := Doubt(t.Context(), client.GcV1alpha1(), found); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestNewest: of several copies under a name the newest counts, on whatever page it is.
func TestNewest(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("list", "cleanupcopies", func(action clienttesting.Action) (bool, runtime.Object, error) {
		options := action.(clienttesting.ListActionImpl).ListOptions
		if options.FieldSelector != "object=configmaps/c" {
			t.Errorf("the field selector is %s", options.FieldSelector)
		}
		list := &v1alpha1.CleanupCopyList{}
		pages := map[string][]int{"": {3, 1}, "2": {}, "3": {2}}
		for _, minutes := range pages[options.Continue] {
			c := v1alpha1.CleanupCopy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(minutes)}}
			c.Status.Object.UID, c.Status.CopyTime = types.UID(fmt.Sprint(minutes)), metav1.NewMicroTime(plugintest.Now.Add(-time.Duration(minutes)*time.Minute))
			list.Items = append(list.Items, c)
		}
		list.Continue = map[string]string{"": "2", "2": "3"}[options.Continue]
		return true, list, nil
	})
	object := local.Object{Resource: "configmaps", Namespace: "a", Name: "c"}
	for uid, want := range map[types.UID]string{"": "1", "2": "2", "3": "3", "4": ""} {
		got, err := Newest(t.Context(), client.GcV1alpha1(), object, uid)
		if err != nil || (got == nil) != (want == "") || got != nil && got.Name != want {
			t.Errorf("UID %q: got %+v, %v", uid, got, err)
		}
	}
}
