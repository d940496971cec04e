// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// TestReferrersInAnotherForm: what cannot be understood at all may refer to everything.
func TestReferrersInAnotherForm(t *testing.T) {
	tr := tracker.New(memory.Config{}, nil)
	o := New(Config{Tracker: tr, Clock: clocktesting.NewFakeClock(testbuilders.Now)})
	k := tableOf(kinds.Builtin(), "", nil, configMaps).Referrers[0]
	got := o.newReferrerReader(k).read(&corev1.ConfigMap{})
	if len(got) != 1 || got[0].Source != "configmaps" || len(got[0].Keys) != 1 {
		t.Errorf("got %+v", got)
	}
}

// referrerLog is a tracker that notes what it is told of referrers.
type referrerLog struct {
	Tracker
	log      []string
	overfull string // namespace
}

func (l *referrerLog) IsOverfull(namespace string) bool { return l.overfull == namespace }

func (l *referrerLog) ObservingReferrers(source string, why error, _ time.Time) {
	l.log = append(l.log, fmt.Sprintf("%s: %v", source, why))
}

func (l *referrerLog) SetReferring(all []knowledge.Referring, _ time.Time) {
	for _, of := range all {
		l.log = append(l.log, fmt.Sprintf("%s refers to %d", of.Name, len(of.Keys)))
	}
}

func (l *referrerLog) RemoveReferrer(_ string, uid types.UID, _ time.Time) {
	l.log = append(l.log, string(uid)+" is gone")
}

func (l *referrerLog) BeginReferrers(string, time.Time) { l.log = append(l.log, "a list") }

// TestUnchangedReferrers: the tracker is told of an object when it is new, or refers to something else than before, and of all objects of a
// list.
func TestUnchangedReferrers(t *testing.T) {
	log := &referrerLog{}
	o := New(Config{Tracker: log, Clock: clocktesting.NewFakeClock(testbuilders.Now)})
	r := o.newReferrerReader(tableOf(kinds.Builtin(), "", nil, pods).Referrers[0])
	ran := func(pod *corev1.Pod) *corev1.Pod {
		pod.ResourceVersion, pod.Status.Message = "8", "runs"
		return pod
	}
	event := func(e watch.EventType, pod *corev1.Pod) func() {
		act := r.upsert
		if e == watch.Deleted {
			act = r.remove
		}
		return func() { act(asReceived(t, r.k, pod)) }
	}
	a, b := mounting("a", "mounted"), testbuilders.Pod("a").Obj()
	for i, step := range []struct {
		do   func()
		want string
	}{
		{event(watch.Added, a), "a refers to 1"},
		{event(watch.Modified, ran(a.DeepCopy())), ""},
		{event(watch.Modified, b), "a refers to 0"},
		{event(watch.Modified, ran(b.DeepCopy())), ""},
		{event(watch.Modified, a), "a refers to 1"},
		{event(watch.Added, mounting("other", "mounted")), "other refers to 1"},
		{event(watch.Modified, a), ""},
		{event(watch.Deleted, a), "uid-a is gone"},
		{event(watch.Added, a), "a refers to 1"},
		{func() { r.beginList().Add([]runtime.Object{asReceived(t, r.k, a)}, testbuilders.Now) }, "a list, a refers to 1"},
		{event(watch.Modified, a), "a refers to 1"},
		{event(watch.Modified, a), ""},
		{func() { r.upsert(running(runs, "a", "x")) }, "a refers to 0"}, // What is not encoded is not compared.
		{func() { r.upsert(running(runs, "a", "x")) }, "a refers to 0"},
		{event(watch.Modified, a), "a refers to 1"},
		{event(watch.Modified, a), ""},
		{func() { log.overfull = testbuilders.Home }, ""},
		{event(watch.Modified, a), "a refers to 1"}, // There may have been no room for it.
		{func() { log.overfull = "" }, ""},
		{event(watch.Modified, a), ""},
	} {
		log.log = nil
		if step.do(); strings.Join(log.log, ", ") != step.want {
			t.Errorf("step %d: the tracker is told %q, not %q", i, log.log, step.want)
		}
	}
}

// TestUndecodableReferrer: what cannot be decoded may refer to everything, until it can be decoded.
func TestUndecodableReferrer(t *testing.T) {
	log := &referrerLog{}
	r := New(Config{Tracker: log}).newReferrerReader(tableOf(kinds.Builtin(), "", nil, pods).Referrers[0])
	name, noName := []byte("\n\x01v"), []byte("\x0f\x01v") // The name of a volume, and a field of no type.
	broken := asReceived(t, r.k, mounting("a", "mounted"), func(data []byte) []byte { return bytes.Replace(data, name, noName, 1) })
	all := r.read(broken)
	if len(all) != 1 || all[0].UID != "uid-a" || !slices.Equal(all[0].Keys, decode.Unreadable(r.k, nil)[0].Keys) {
		t.Errorf("it refers to %+v", all)
	}
	if all := r.read(asReceived(t, r.k, mounting("a", "mounted"))); len(all) != 1 || all[0].UID != "uid-a" || len(all[0].Keys) != 1 {
		t.Errorf("then it refers to %+v", all)
	}
}

// asReceived returns an object as the API server sends it in a watch, after some changes.
func asReceived(t *testing.T, k *kinds.Referrer, object runtime.Object, changes ...func([]byte) []byte) runtime.Object {
	t.Helper()
	reading := decode.ReferrerReading(k)
	codecs, _ := reading.Codecs("")
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	object.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	data, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), object)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		data = change(data)
	}
	out, err := runtime.Decode(info.Serializer, data)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
