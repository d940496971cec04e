// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// sizeMost limits the size of a test and its files together, because a pipeline may test the branch of a stranger. Decoded, a file takes
// many times its size in memory. About ten thousand objects fit, as "kubectl get -o yaml" prints them.
const sizeMost = 32 << 20

// reader reads a test and its files.
type reader struct{ left int64 } // the bytes that may still be read

// read is os.ReadFile for regular files that are not too large. The limit is on what is read: the size that the system tells is 0 for some
// files without an end.
func (r *reader) read(path string) ([]byte, error) {
	switch info, err := os.Stat(path); { // Before it is opened: to open a pipe can take forever.
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, r.left+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if r.left -= int64(len(content)); r.left < 0 {
		return nil, fmt.Errorf("%s is too large: a test and its files may have at most %d MiB together", path, sizeMost>>20)
	}
	return content, nil
}
