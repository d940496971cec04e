// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"hash/maphash"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

var contentSeed = maphash.MakeSeed()

// digest returns the digest of what an object is to do. It is never zero, which stands for an unknown one.
func digest(content []byte) lifecycle.Digest {
	return lifecycle.Digest(maphash.Bytes(contentSeed, content)) | 1
}

// All but what an object is to do: what its containers run, without what the API server and the scheduler add, such as labels with the UID,
// the node, and mounts of tokens.
var (
	allButContainers = unread{others: nil, 2: {9: nil}, 20: {9: nil}} // containers and initContainers without volumeMounts
	contentOfPod     = unread{others: nil, 2: allButContainers}
	contentOfJob     = unread{others: nil, 2: {others: nil, 6: {others: nil, 2: allButContainers}}} // spec.template.spec
)

// selfLink is the number of the field of metadata that lifecycle.SetContent sets.
const selfLink protowire.Number = 4

// contentOf returns the digest of an encoded object without what does not belong to its content; zero if it cannot be parsed.
func contentOf(object []byte, without *stripping) lifecycle.Digest {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	content, err := leave((*buffer)[:0], object, without)
	if err != nil {
		return 0
	}
	*buffer = content
	return digest(content)
}

// appendContent appends the digest of an object to the same object without its unread fields, unless it has none: decoders merge what they
// find twice.
func appendContent(to, object []byte, without *stripping) []byte {
	if without == nil {
		return to
	}
	d := contentOf(object, without)
	if d == 0 {
		return to
	}
	stored := d.String()
	to = protowire.AppendTag(to, rawMetadata, protowire.BytesType)
	to = protowire.AppendVarint(to, uint64(protowire.SizeTag(selfLink)+protowire.SizeBytes(len(stored))))
	to = protowire.AppendTag(to, selfLink, protowire.BytesType)
	return protowire.AppendString(to, stored)
}

// setContent stores the digest of an object that was decoded whole.
func setContent(object runtime.Object, data []byte, kinds map[string]*stripping) {
	m, isObject := object.(metav1.Object)
	kind, raw, err := unwrap(data)
	if without := kinds[kind.Kind]; isObject && err == nil && without != nil && without.content != nil {
		lifecycle.SetContent(m, contentOf(raw, without.content))
	}
}
