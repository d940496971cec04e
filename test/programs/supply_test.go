// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	apiServerURL = "https://dl.k8s.io/release/v1.37.2/bin/linux/amd64/kube-apiserver"
	kubectlURL   = "https://dl.k8s.io/release/v1.37.2/bin/linux/amd64/kubectl"
	etcdURL      = "https://github.com/etcd-io/etcd/releases/download/v3.7.3/etcd-v3.7.3-linux-amd64.tar.gz"
	kwokURL      = "https://github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-linux-amd64"
)

// official are the files that the hosts have: the programs are scripts that say which they are.
func official(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		apiServerURL: script(APIServer), kubectlURL: script(Kubectl), kwokURL: script(Kwok),
		etcdURL: archive(t, map[string]string{"etcd-v3.7.3-linux-amd64/README.md": "etcd", "etcd-v3.7.3-linux-amd64/etcd": script(Etcd)}),
	}
}

func script(name string) string { return "#!/bin/sh\necho official " + name + "\n" }

const built = "#!/bin/sh\necho built\n"

func archive(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	zipper := gzip.NewWriter(&b)
	w := tar.NewWriter(zipper)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipper.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// world is a cache folder, a server instead of all hosts, and a go command that builds scripts.
type world struct {
	*supplier
	wanted []program
	hosts  http.HandlerFunc
	out    bytes.Buffer

	lock     sync.Mutex
	requests []string // addresses
	builds   []string // packages
}

func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	w := &world{}
	w.hosts = func(rw http.ResponseWriter, r *http.Request) {
		content, ok := files["https://"+r.Host+r.URL.Path]
		if !ok {
			http.NotFound(rw, r)
			return
		}
		_, _ = io.WriteString(rw, content)
	}
	var err error
	if w.wanted, err = plan(".", t.TempDir(), newest(), []string{Etcd, APIServer, Kubectl, Kwok}); err != nil {
		t.Fatal(err)
	}
	checksums := map[string]string{}
	for address, content := range files {
		sum := sha256.Sum256([]byte(content))
		checksums[address] = hex.EncodeToString(sum[:])
	}
	f := newFetcher(checksums)
	f.client.Transport = w.serve(t)
	f.patience = time.Minute
	w.supplier = &supplier{fetcher: f, builder: &builder{command: w.goCommand}, goos: "linux", goarch: "amd64"}
	return w
}

// serve starts a server of HTTPS, and returns a transport that finds every host there.
func (w *world) serve(t *testing.T) http.RoundTripper {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.lock.Lock()
		w.requests = append(w.requests, "https://"+r.Host+r.URL.Path)
		w.lock.Unlock()
		w.hosts(rw, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that are cut
	server.StartTLS()
	t.Cleanup(server.Close)
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.ServerName = "example.com" // as its certificate says
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	return transport
}

func (w *world) goCommand(_ context.Context, _ place, stderr io.Writer, args ...string) (string, error) {
	if args[0] == "list" {
		return "example.com/a\nexample.com/b", nil
	}
	folder := args[slices.Index(args, "-o")+1]
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") || !strings.Contains(arg, "/cmd/") && !strings.HasSuffix(arg, "/v3") {
			continue
		}
		w.lock.Lock()
		w.builds = append(w.builds, arg)
		w.lock.Unlock()
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(folder, executable(arg)), []byte(built), 0o755); err != nil {
			return "", err
		}
	}
	_, err := fmt.Fprint(stderr, "go: downloading example.com/a v1.0.0\nexample.com/a\nexam", "ple.com/b\n")
	return "", err
}

func (w *world) supplyAll(ctx context.Context) error {
	return w.supply(ctx, &w.out, w.wanted, Build{})
}

// contents of the executables that are there, and the names of all files that should not be.
func (w *world) contents(t *testing.T) (executables map[string]string, left []string) {
	t.Helper()
	executables = map[string]string{}
	for _, p := range w.wanted {
		info, err := os.Stat(p.target)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		content, readErr := os.ReadFile(p.target)
		if err != nil || readErr != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s: %v, %v, %v", p.target, info, err, readErr)
		}
		executables[p.name] = string(content)
	}
	err := filepath.WalkDir(filepath.Dir(filepath.Dir(w.wanted[0].target)), func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.Contains(path, ".tmp") {
			left = append(left, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return executables, left
}

func allOfficial() map[string]string {
	return map[string]string{Etcd: script(Etcd), APIServer: script(APIServer), Kubectl: script(Kubectl), Kwok: script(Kwok)}
}

func TestFetchesOnce(t *testing.T) {
	w := newWorld(t, official(t))
	for range 2 {
		if err := w.supplyAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got, left := w.contents(t)
	if !maps.Equal(got, allOfficial()) || len(left) > 0 || len(w.builds) > 0 {
		t.Errorf("got %q, left %q, built %q", got, left, w.builds)
	}
	slices.Sort(w.requests)
	if want := slices.Sorted(maps.Keys(official(t))); !slices.Equal(w.requests, want) {
		t.Errorf("requests %q, want %q", w.requests, want)
	}
	if want := "Fetching the official builds of etcd v3.7.3, Kubernetes v1.37.2 and kwok v0.8.0.\n0s: 0 of 0 MB fetched\n"; w.out.String() != want {
		t.Errorf("said %q, want %q", &w.out, want)
	}
}

func TestFollowsRedirects(t *testing.T) {
	w := newWorld(t, official(t))
	files := w.hosts
	w.hosts = func(rw http.ResponseWriter, r *http.Request) {
		if r.Host == "cdn.example.com" {
			r.Host = "dl.k8s.io"
			files(rw, r)
			return
		}
		if r.Host == "dl.k8s.io" {
			http.Redirect(rw, r, "https://cdn.example.com"+r.URL.Path, http.StatusFound)
			return
		}
		files(rw, r)
	}
	err := w.supplyAll(t.Context())
	if got, _ := w.contents(t); err != nil || !maps.Equal(got, allOfficial()) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestConcurrentCallersFetchOnce(t *testing.T) {
	w := newWorld(t, official(t))
	other := &supplier{fetcher: w.fetcher, builder: w.builder, goos: w.goos, goarch: w.goarch}
	waiting := make(chan struct{})
	var once sync.Once
	files := w.hosts
	w.hosts = func(rw http.ResponseWriter, r *http.Request) {
		<-waiting // until the other one waits for the lock
		files(rw, r)
	}
	said := writerFunc(func(b []byte) (int, error) {
		if strings.HasPrefix(string(b), "Waiting for another process") {
			once.Do(func() { close(waiting) })
		}
		return len(b), nil
	})
	var group sync.WaitGroup
	for _, s := range []*supplier{w.supplier, other} {
		group.Go(func() {
			if err := s.supply(t.Context(), said, w.wanted, Build{}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got, _ := w.contents(t); !maps.Equal(got, allOfficial()) || len(w.requests) != 4 {
		t.Errorf("got %q after the requests %q", got, w.requests)
	}
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestWrongChecksumIsAnError: nothing of it is used, and nothing is built in its place.
func TestWrongChecksumIsAnError(t *testing.T) {
	for name, content := range map[string]string{
		"another program":          script("malice"),
		"truncated":                script(APIServer)[:20],
		"a page of a login portal": "<html>Log in to use this network</html>",
	} {
		t.Run(name, func(t *testing.T) {
			files := official(t)
			w := newWorld(t, files)
			files[apiServerURL] = content
			err := w.supplyAll(t.Context())
			sum := sha256.Sum256([]byte(content))
			for _, want := range []string{
				"wrong checksum of kube-apiserver v1.37.2 from " + apiServerURL, "got      " + hex.EncodeToString(sum[:]),
				"expected " + w.fetcher.checksums[apiServerURL], "Set WINNOW_PROGRAMS=build to build all programs instead",
			} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
			got, left := w.contents(t)
			if got[APIServer] != "" || len(w.builds) > 0 || len(left) > 0 {
				t.Errorf("there is %q, left %q, built %q", got, left, w.builds)
			}
		})
	}
}

func TestArchiveWithoutTheProgramIsAnError(t *testing.T) {
	files := official(t)
	files[etcdURL] = archive(t, map[string]string{"etcd-v3.7.3-linux-amd64/README.md": "etcd"})
	w := newWorld(t, files)
	if err := w.supplyAll(t.Context()); err == nil || !strings.Contains(err.Error(), "looking for etcd in its archive: EOF") {
		t.Errorf("got %v", err)
	}
}

// TestSlowIsNotSilent: time passes only while everything waits.
func TestSlowIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := strings.Repeat("x", 20)
		f := &fetcher{patience: 8 * time.Second, limit: 10 * time.Minute, client: &http.Client{Transport: transportFunc(
			func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(&slowReader{ctx: r.Context(), rest: content})}, nil
			})}}
		begin := time.Now()
		checksum, err := f.download(t.Context(), kwokURL, filepath.Join(t.TempDir(), "kwok"))
		sum := sha256.Sum256([]byte(content))
		if err != nil || checksum != hex.EncodeToString(sum[:]) || time.Since(begin) != 20*7*time.Second {
			t.Errorf("got %q, %v after %s", checksum, err, time.Since(begin))
		}
		f.limit = time.Minute
		var unavailable *unavailableError
		if _, err := f.download(t.Context(), kwokURL, filepath.Join(t.TempDir(), "kwok")); !errors.As(err, &unavailable) {
			t.Errorf("slower than the limit: %v", err)
		}
	})
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// slowReader has a byte every seven seconds.
type slowReader struct {
	ctx  context.Context
	rest string
}

func (r *slowReader) Read(b []byte) (int, error) {
	if r.rest == "" {
		return 0, io.EOF
	}
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case <-time.After(7 * time.Second):
	}
	n := copy(b[:1], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestEndsWithItsCaller(t *testing.T) {
	w := newWorld(t, official(t))
	ctx, cancel := context.WithCancel(t.Context())
	w.hosts = func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}
	if err := w.supplyAll(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got, left := w.contents(t); len(got) > 0 || len(left) > 0 || len(w.builds) > 0 {
		t.Errorf("there is %q, left %q, built %q", got, left, w.builds)
	}
}
