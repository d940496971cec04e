// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package continuetoken makes the tokens with which clients ask for the next page of a list that is not read from etcd.
package continuetoken

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// Encode returns the token with which the page after a position begins.
func Encode(after any) string {
	encoded, _ := json.Marshal(after) // Positions have only texts and times, which can always be encoded.
	return base64.RawURLEncoding.EncodeToString(encoded)
}

// Decode returns the position of a token; the zero value for no token. noun says in the error what is listed, such as "records".
func Decode[T comparable](token, noun string) (T, error) {
	var after, none T
	if token == "" {
		return none, nil
	}
	encoded, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(encoded, &after)
	}
	if err != nil || after == none {
		return after, fmt.Errorf("the continue token is not one of a list of %s; list again without it", noun)
	}
	return after, nil
}
