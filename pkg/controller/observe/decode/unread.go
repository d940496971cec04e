// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// strippedCodecs remove unread fields from protobuf before they decode it, unless match conditions may read them.
type strippedCodecs struct {
	runtime.NegotiatedSerializer
	reading Reading
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c strippedCodecs) SupportedMediaTypes() []runtime.SerializerInfo {
	all := slices.Clone(c.NegotiatedSerializer.SupportedMediaTypes())
	for i := range all {
		all[i].Serializer = strippedDecoder{all[i].Serializer, c.reading}
		all[i] = withEvents(all[i])
	}
	return all
}

type strippedDecoder struct {
	runtime.Serializer
	reading Reading
}

// buffers contain stripped messages. Decoded objects are copies and do not refer to them.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Decode implements runtime.Decoder.
func (d strippedDecoder) Decode(
	data []byte,
	defaults *schema.GroupVersionKind,
	into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if conditions := d.reading.present(); needsAll(data, conditions) {
		object, kind, err := d.Serializer.Decode(data, defaults, into)
		if err != nil {
			return nil, kind, err
		}
		object, err = d.reading.evaluate(object, conditions, len(data))
		if err == nil {
			setContent(object, data, d.reading.unread)
		}
		return object, kind, err
	}
	object, kind, err := d.decode(data)
	if err != nil { // Something else was answered, or it cannot be parsed, of which this returns a better error.
		return d.Serializer.Decode(data, defaults, into)
	}
	return d.reading.reduce(object, kind), &kind, nil
}

// decode decodes an object or a list without what is unread. The Serializer would copy it once more.
func (d strippedDecoder) decode(data []byte) (runtime.Object, schema.GroupVersionKind, error) {
	kind, raw, err := unwrap(data)
	without := d.reading.unread[kind.Kind]
	if err != nil || without == nil {
		return nil, kind, cmp.Or(err, errUnknownKind)
	}
	object, err := d.reading.newObject(kind)
	if err != nil {
		return nil, kind, err
	}
	into, ok := object.(interface{ Unmarshal(data []byte) error })
	if !ok {
		return nil, kind, errUnknownKind
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	stripped, err := leave((*buffer)[:0], raw, without)
	if err != nil {
		return nil, kind, err
	}
	*buffer = stripped
	return object, kind, into.Unmarshal(stripped)
}

var errUnknownKind = errors.New("nothing is known to be unread")

// unwrap returns the kind of what is encoded in protobuf, and its message.
func unwrap(data []byte) (kind schema.GroupVersionKind, raw []byte, err error) {
	unknown, ok := bytes.CutPrefix(data, magic)
	if !ok {
		return kind, nil, errNoProtobuf
	}
	err = eachField(unknown, func(number int, v encodedValue) error {
		switch number {
		case unknownType:
			var t runtime.TypeMeta
			err := t.Unmarshal(v.data)
			kind = schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)
			return err
		case unknownRaw:
			raw = v.data
		}
		return nil
	})
	return kind, raw, err
}

var errNoProtobuf = errors.New("it is not in protobuf")

// needsAll reports whether match conditions may read any field of an encoded object, or of an object of an encoded list.
func needsAll(data []byte, conditions map[string]*lifecycle.Conditions) bool {
	if len(conditions) == 0 {
		return false
	}
	unknown, protobuf := bytes.CutPrefix(data, magic)
	kind, err := field(unknown, unknownType, typeKind)
	if !protobuf || err != nil || bytes.HasSuffix(kind, []byte("List")) {
		return true
	}
	namespace, err := field(unknown, unknownRaw, rawMetadata, metadataNamespace)
	return err != nil || conditions[string(namespace)] != nil
}

// magic is the prefix of an object in protobuf. A runtime.Unknown follows.
var magic = []byte("k8s\x00")

// Fields of runtime.Unknown, of its type, of an object, and of its metadata.
const (
	unknownType, unknownRaw = 1, 2
	typeKind                = 2
	rawMetadata             = 1
	metadataNamespace       = 3
)

// unread are the fields of a message that no fact needs, by their numbers in the .proto files of k8s.io/api. The value is nil if the whole
// field is unread; otherwise it has the unread fields of the field. If others is in the map, every field that is not listed is unread.
type unread map[protowire.Number]unread

// others is the key for all fields that are not listed. read is the value for a field that is read in full. ifMarked is the key in a field
// of the metadata that is read only if what stands before it has a mark: see lifecycle.NeedsManagers.
const (
	others   protowire.Number = 0
	ifMarked protowire.Number = -1
	// digested is the key in an object for everything except its content, whose digest is appended.
	digested protowire.Number = -2
	// ifKnown is the key in annotations of which only those are read whose keys are known.
	ifKnown protowire.Number = -3
)

var read = unread{}

// of returns what is unread of a field: nil if all of it is, and read if nothing is.
func (u unread) of(number protowire.Number) unread {
	if inner, listed := u[number]; listed {
		return inner
	}
	if _, rest := u[others]; rest {
		return nil
	}
	return read
}

var (
	unreadOf = map[string]*stripping{
		"Job": unreadJob.compile(), "JobList": unread{2: unreadJob}.compile(),
		"CronJob": unreadCronJob.compile(), "CronJobList": unread{2: unreadCronJob}.compile(),
		"Pod": unreadPod.compile(), "PodList": unread{2: unreadPod}.compile(),
	}
	// annotations that facts do not need, and all of managedFields but the managers
	unreadMetadata  = unread{12: {ifKnown: nil}, 17: {1: read, others: nil, ifMarked: nil}}
	unreadCondition = unread{
		3: nil, 5: nil, 6: nil, // lastProbeTime, reason, message
	}
	unreadJobCondition = unread{
		3: nil, 6: nil, // lastProbeTime, message
	}
	unreadJob = unread{
		digested: contentOfJob,
		1:        unreadMetadata,
		2: {
			4:  nil,
			6:  nil,
			9:  nil,
			11: {1: {1: read, others: nil}},
			16: nil,
			17: nil,
		}, // selector, template, completionMode, all of podFailurePolicy but the actions of its rules, successPolicy, scheduling
		3: {1: unreadJobCondition, 7: nil, 8: nil, 10: nil}, // conditions; completedIndexes, uncountedTerminatedPods, failedIndexes
	}
	unreadCronJob = unread{1: unreadMetadata, 2: nil} // spec
	unreadPod     = unread{
		digested: contentOfPod,
		1:        unreadMetadata,
		2:        {3: read, 5: read, others: nil}, // all of the spec but restartPolicy and activeDeadlineSeconds
		3: {
			2: unreadCondition, 8: unreadContainer, 10: unreadContainer, 13: unreadContainer,
			15: nil, 19: nil, 20: nil, 21: nil, 22: nil, // of claims, resources and volumes
		},
	}
	unreadContainer = unread{
		1: nil, 3: nil, 6: nil, 7: nil, 8: nil, 10: nil, 11: nil, 12: nil, 13: nil, 14: nil, // name, lastState, images, container, resources
	}
)

// stripping is unread in the form in which it is looked up for each field of each object.
type stripping struct {
	of   [32]*stripping // by number; nil for what is unread
	rest *stripping     // for all higher numbers
	// read says that all is read. ifMarked and ifKnown are the keys of the same names, and content is the value of digested.
	read, ifMarked, ifKnown bool
	content                 *stripping
}

// compile returns nil if all is unread.
func (u unread) compile() *stripping {
	if u == nil {
		return nil
	}
	s := &stripping{read: len(u) == 0, content: u[digested].compile()}
	_, s.ifMarked = u[ifMarked]
	if _, s.ifKnown = u[ifKnown]; s.read || s.ifKnown {
		return s
	}
	for number := range s.of {
		s.of[number] = u.of(protowire.Number(number)).compile()
	}
	s.rest = u.of(protowire.Number(len(s.of))).compile()
	return s
}

// field returns what is unread of a field.
func (s *stripping) field(number int) *stripping {
	if number < len(s.of) {
		return s.of[number]
	}
	return s.rest
}

// leave appends a message without its unread fields.
func leave(to, message []byte, without *stripping) ([]byte, error) {
	start, whole := len(to), message
	asked, marked := false, false
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		one, inner := message[:n], without.field(int(number))
		message = message[n:]
		if inner != nil && inner.ifMarked && !asked {
			asked, marked = true, lifecycle.NeedsManagers(to[start:])
		}
		switch {
		case inner == nil, inner.ifMarked && !marked, inner.ifKnown && !isKnown(one):
		case inner.read, inner.ifKnown, kind != protowire.BytesType:
			to = append(to, one...)
		default:
			var err error
			if to, err = leaveInner(to, one, inner); err != nil {
				return nil, err
			}
		}
	}
	return appendContent(to, whole, without.content), nil
}

// isKnown reports whether the key of an annotation is one of those that are read.
func isKnown(annotation []byte) bool {
	_, _, tag := protowire.ConsumeTag(annotation)
	entry, _ := protowire.ConsumeBytes(annotation[tag:])
	key, err := field(entry, entryKey)
	_, known := knownAnnotations[string(key)]
	return known || err != nil
}

// Fields of an entry of a map.
const entryKey, entryValue = 1, 2

var knownAnnotations = always.fields["metadata"]["annotations"]

// leaveInner appends a field that is a message itself. Its length is known only after its own unread fields are removed.
func leaveInner(to, one []byte, without *stripping) ([]byte, error) {
	_, _, tag := protowire.ConsumeTag(one)
	value, n := protowire.ConsumeBytes(one[tag:])
	lengthAt, valueAt := len(to)+tag, len(to)+tag+n-len(value)
	to, err := leave(append(to, one[:len(one)-len(value)]...), value, without)
	if err != nil {
		return nil, err
	}
	var length [10]byte
	return slices.Replace(to, lengthAt, valueAt, protowire.AppendVarint(length[:0], uint64(len(to)-valueAt))...), nil
}

// field returns the value of a field in a message; nil if there is none.
func field(message []byte, path ...protowire.Number) ([]byte, error) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		if number == path[0] && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(message)
			value, _ := protowire.ConsumeBytes(message[tag:])
			if len(path) == 1 {
				return value, nil
			}
			return field(value, path[1:]...)
		}
		message = message[n:]
	}
	return nil, nil
}
