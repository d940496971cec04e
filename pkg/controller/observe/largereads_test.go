// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// countedReads counts its reads. Each returns what is available.
type countedReads struct {
	io.Reader
	reads int
}

func (c *countedReads) Read(p []byte) (int, error) {
	c.reads++
	return c.Reader.Read(p)
}

func (c *countedReads) Close() error { return nil }

type answering struct{ *http.Response }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a.Response, nil }

// TestLargeReads: many small reads become one large read of the connection, and none waits for more than is available.
func TestLargeReads(t *testing.T) {
	body, more := net.Pipe()
	counted := &countedReads{Reader: body}
	resp, err := largeReads{answering{&http.Response{Body: counted}}}.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	sent := bytes.Repeat([]byte("frame"), 1000)
	go func() {
		_, _ = more.Write(sent) // The pipe stays open.
	}()
	got := make([]byte, len(sent))
	for i := 0; i < len(got); i += 5 {
		if _, err := io.ReadFull(resp.Body, got[i:i+5]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, sent) || counted.reads != 2 { // The first read waits for any byte, without a buffer.
		t.Errorf("%d bytes in %d reads, equal to what was sent: %v", len(got), counted.reads, bytes.Equal(got, sent))
	}
	if resp.Body.(*readAhead).buffer != nil {
		t.Error("there is a buffer, but nothing in it")
	}
}

// TestReadAhead: whatever pieces arrive and are asked for, all of the body is read, and then its error.
func TestReadAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := make([]byte, rapid.IntRange(0, 3*readSize).Draw(t, "length"))
		for i := range sent {
			sent[i] = byte(i % 251)
		}
		var arrives io.Reader = bytes.NewReader(sent)
		if rapid.Bool().Draw(t, "error with the last bytes") {
			arrives = iotest.DataErrReader(arrives)
		}
		if rapid.Bool().Draw(t, "half of each read") {
			arrives = iotest.HalfReader(arrives)
		}
		r := &readAhead{ReadCloser: io.NopCloser(arrives)}
		var got []byte
		for {
			p := make([]byte, rapid.SampledFrom([]int{4, 1, 100, 512, 5000, readSize, 2 * readSize}).Draw(t, "asked for"))
			n, err := r.Read(p)
			got = append(got, p[:n]...)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || n == 0 {
				t.Fatalf("read %d bytes, error %v", n, err)
			}
		}
		if !bytes.Equal(got, sent) {
			t.Fatalf("got %d bytes, want %d, the same: %v", len(got), len(sent), bytes.Equal(got, sent))
		}
	})
}
