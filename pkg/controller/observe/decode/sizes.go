// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of every list.
const (
	listMetadata = 1
	listItems    = 2
)

// ItemSizes returns the sizes of the items of an encoded list; nil if it cannot be parsed.
func ItemSizes(data []byte) []int {
	unknown, isProtobuf := bytes.CutPrefix(data, magic)
	if !isProtobuf {
		return itemSizesJSON(data)
	}
	list, err := field(unknown, unknownRaw)
	if err != nil {
		return nil
	}
	var out []int
	err = eachField(list, func(number int, v encodedValue) error {
		if number == listItems && v.wire == protowire.BytesType {
			out = append(out, len(v.data))
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return out
}

func itemSizesJSON(data []byte) []int {
	var out []int
	s := &scanner{data: data}
	err := s.object(func(key []byte) error {
		if string(key) != "items" {
			_, err := s.skip()
			return err
		}
		return s.array(func() error {
			item, err := s.skip()
			out = append(out, len(item))
			return err
		})
	})
	if err != nil {
		return nil
	}
	return out
}
