// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// eventDecoder decodes the events of a watch, but not their objects, and does not copy those: client-go has them decoded before it reads
// the next event into the same memory. The serializers of Kubernetes make one copy in protobuf and several in JSON.
type eventDecoder struct {
	runtime.Serializer
	decode func(data []byte, into *metav1.WatchEvent) error
}

// withEvents returns a serializer whose watches have an eventDecoder.
func withEvents(info runtime.SerializerInfo) runtime.SerializerInfo {
	if decode := eventFrom[info.MediaType]; decode != nil && info.StreamSerializer != nil {
		stream := *info.StreamSerializer
		stream.Serializer = eventDecoder{stream.Serializer, decode}
		info.StreamSerializer = &stream
	}
	return info
}

// Decode implements runtime.Decoder.
func (d eventDecoder) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	var event metav1.WatchEvent
	wanted, ok := into.(*metav1.WatchEvent)
	if !ok || d.decode(data, &event) != nil { // The Serializer returns a better error.
		return d.Serializer.Decode(data, defaults, into)
	}
	*wanted = event
	return wanted, &watchEventKind, nil
}

var watchEventKind = metav1.SchemeGroupVersion.WithKind("WatchEvent")

var eventFrom = map[string]func([]byte, *metav1.WatchEvent) error{
	runtime.ContentTypeProtobuf: eventFromProtobuf, runtime.ContentTypeJSON: eventFromJSON,
}

// Fields of metav1.WatchEvent, and of runtime.RawExtension.
const (
	eventType, eventObject = 1, 2
	extensionRaw           = 1
)

func eventFromProtobuf(data []byte, into *metav1.WatchEvent) error {
	return eachField(data, func(number int, v encodedValue) (err error) {
		switch number {
		case eventType:
			into.Type = string(v.data)
		case eventObject:
			into.Object.Raw, err = field(v.data, extensionRaw)
		}
		return err
	})
}

func eventFromJSON(data []byte, into *metav1.WatchEvent) error {
	s := &scanner{data: data}
	err := s.object(func(key []byte) error {
		s.next()
		value, err := s.skip()
		switch string(key) {
		case "type":
			if bytes.IndexByte(value, '\\') >= 0 || len(value) < 2 {
				return errors.New("no type of an event is written like this")
			}
			into.Type = string(value[1 : len(value)-1])
		case "object":
			into.Object.Raw = value
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.end()
}
