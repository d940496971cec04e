// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// entry is a file of an archive, or a folder if its name ends with a slash.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// tarOf returns an archive that depends on its entries and the time alone: no owner, umask or clock of this machine gets in.
func tarOf(entries []entry, modified time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, e := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: modified, Format: tar.FormatPAX,
		}
		if e.name[len(e.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buffer.Bytes(), err
}

// tarGzOf is tarOf, compressed.
func tarGzOf(entries []entry, modified time.Time) ([]byte, error) {
	content, err := tarOf(entries, modified)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	w, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(content)
	err = errors.Join(err, w.Close())
	return buffer.Bytes(), err
}

// entriesOf returns the files and folders below a folder in lexical order, with names that begin with prefix. Scripts can be run.
func entriesOf(dir, prefix string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		name := path.Join(prefix, filepath.ToSlash(relative))
		if d.IsDir() {
			if name != "." {
				entries = append(entries, entry{name: name + "/", mode: 0o755})
			}
			return nil
		}
		content, err := os.ReadFile(file)
		entries = append(entries, entry{name: name, mode: modeOf(content), content: content})
		return err
	})
	return entries, err
}

func modeOf(content []byte) int64 {
	if bytes.HasPrefix(content, []byte("#!")) {
		return 0o755
	}
	return 0o644
}

// opener is a file in memory.
func opener(content []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}

// archiveProgram writes a program and other files into a .tar.gz.
func archiveProgram(args []string, modified time.Time) error {
	if len(args) < 2 {
		return errors.New("archive needs the name of the archive and the name of the program")
	}
	if _, err := inspect(args[1]); err != nil {
		return err
	}
	var entries []entry
	for i, file := range args[1:] {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		e := entry{name: filepath.Base(file), mode: 0o644, content: content}
		if i == 0 {
			e.mode = 0o755
		}
		entries = append(entries, e)
	}
	content, err := tarGzOf(entries, modified)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[0], content, 0o644)
}
