// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync/atomic"
	"time"
)

//go:embed checksums.txt
var checksumFile string

// parseChecksums returns checksums by address.
func parseChecksums(file string) (map[string]string, error) {
	checksums := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(file))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		checksum, address, _ := strings.Cut(line, "  ")
		if raw, err := hex.DecodeString(checksum); err != nil || len(raw) != sha256.Size || !strings.HasPrefix(address, "https://") {
			return nil, fmt.Errorf("checksums.txt: %q is not a SHA-256 checksum and an address", line)
		}
		checksums[address] = checksum
	}
	return checksums, lines.Err()
}

// fetcher fetches official builds.
type fetcher struct {
	client    *http.Client
	checksums map[string]string
	// patience is how long a host may take to answer, and then how long it may send nothing. A closed network that
	// drops what is sent delays a build by this much.
	patience time.Duration
	// limit is for a whole download: one that takes longer is slower than to build.
	limit time.Duration

	received, expected atomic.Int64 // bytes of all downloads
}

func newFetcher(checksums map[string]string) *fetcher {
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 4 * time.Second}).DialContext,
		TLSHandshakeTimeout: 4 * time.Second,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true, // checksums are of files as they are stored
	}
	return &fetcher{client: &http.Client{Transport: transport}, checksums: checksums, patience: 8 * time.Second, limit: 10 * time.Minute}
}

// unavailableError says why there is no official build to be had; the program can be built.
type unavailableError struct{ error }

func (e *unavailableError) Unwrap() error { return e.error }

func unavailable(format string, args ...any) error {
	return &unavailableError{fmt.Errorf(format, args...)}
}

// fetch leaves the official build at p.temporary. Its error is an unavailableError if the program should be built, and
// another one when nothing should be done before somebody has looked.
func (f *fetcher) fetch(ctx context.Context, p program, goos, goarch string) error {
	address := p.address(goos, goarch)
	want := f.checksums[address]
	download := p.temporary() + ".download"
	defer func() { _ = os.Remove(download) }()
	got, err := f.download(ctx, address, download)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf(`wrong checksum of %s from %s:
  got      %s
  expected %s (test/programs/checksums.txt)
The file was changed on its way here, or its publisher replaced it. Set %s=%s to build all programs instead`,
			p, address, got, want, modeVariable, modeBuild)
	}
	if strings.HasSuffix(address, ".tar.gz") {
		return extract(download, p.name, p.temporary())
	}
	return os.Rename(download, p.temporary())
}

// download writes what is at the address to a file, and returns its checksum.
func (f *fetcher) download(ctx context.Context, address, file string) (checksum string, err error) {
	to, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, f.limit, fmt.Errorf("not complete within %s", f.limit))
	defer cancel()
	ctx, hangUp := context.WithCancelCause(ctx)
	defer hangUp(nil)
	silence := time.AfterFunc(f.patience, func() { hangUp(fmt.Errorf("nothing received for %s", f.patience)) })
	defer silence.Stop()
	failed := func(reason error) error {
		if caller.Err() != nil {
			return caller.Err()
		}
		if ctx.Err() != nil {
			reason = context.Cause(ctx)
		} else if inner := (*url.Error)(nil); errors.As(reason, &inner) {
			reason = inner.Err // the rest repeats the address
		}
		return unavailable("%s: %w", address, reason)
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return "", failed(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", failed(errors.New(response.Status))
	}
	f.expected.Add(max(0, response.ContentLength))
	hash := sha256.New()
	body := &observedReader{Reader: response.Body, observe: func(n int) { silence.Reset(f.patience); f.received.Add(int64(n)) }}
	_, err = io.Copy(io.MultiWriter(to, hash), body)
	if body.err != nil {
		return "", failed(body.err)
	}
	return hex.EncodeToString(hash.Sum(nil)), err
}

// progress of all downloads, for the line of progress.
func (f *fetcher) progress() []string {
	if f.expected.Load() == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d MB fetched", f.received.Load()/1e6, f.expected.Load()/1e6)}
}

// observedReader distinguishes errors of reading from errors of writing what was read.
type observedReader struct {
	io.Reader
	observe func(n int)
	err     error
}

func (r *observedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.observe(n)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// extract writes the executable of that name from a .tar.gz to target.
func extract(archive, name, target string) (err error) {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for entries := tar.NewReader(unzipped); ; {
		entry, err := entries.Next()
		if err != nil {
			return fmt.Errorf("looking for %s in its archive: %w", name, err)
		}
		if entry.Typeflag == tar.TypeReg && path.Base(entry.Name) == name {
			return write(target, entries)
		}
	}
}

// write makes target an executable with this content.
func write(target string, content io.Reader) error {
	to, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, content)
	return errors.Join(err, to.Close())
}

// runs reports with an unavailableError that the fetched executable cannot be used on this machine.
func runs(ctx context.Context, p program) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	args := []string{"--version"}
	switch p.name {
	case Kubectl:
		args = []string{"version", "--client"}
	case Helm:
		args = []string{"version"}
	}
	if out, err := exec.CommandContext(ctx, p.temporary(), args...).CombinedOutput(); err != nil {
		return unavailable("the official build of %s does not run here: %w: %s", p, err, out)
	}
	return nil
}
