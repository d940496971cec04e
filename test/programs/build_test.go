// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBuildsWhatItCannotFetch: kube-apiserver alone cannot be fetched.
func TestBuildsWhatItCannotFetch(t *testing.T) {
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	status := func(code int) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(code) }
	}
	begin := func(rw http.ResponseWriter) {
		rw.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(rw, "#!/bin/sh")
		rw.(http.Flusher).Flush()
	}
	for name, test := range map[string]struct {
		host   http.HandlerFunc
		change func(*world)
		reason string
	}{
		"not found":      {host: status(404), reason: "404 Not Found"},
		"forbidden":      {host: status(403), reason: "403 Forbidden"},
		"bad gateway":    {host: status(502), reason: "502 Bad Gateway"},
		"cut off":        {host: abort, reason: "EOF"},
		"cut off inside": {host: func(rw http.ResponseWriter, r *http.Request) { begin(rw); abort(rw, r) }, reason: "unexpected EOF"},
		"silent": {
			host:   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			change: func(w *world) { w.fetcher.patience = 100 * time.Millisecond }, reason: "nothing received for 100ms",
		},
		"stalled": {
			host:   func(rw http.ResponseWriter, r *http.Request) { begin(rw); <-r.Context().Done() },
			change: func(w *world) { w.fetcher.patience = 100 * time.Millisecond }, reason: "nothing received for 100ms",
		},
		"too slow": {
			host:   func(rw http.ResponseWriter, r *http.Request) { begin(rw); <-r.Context().Done() },
			change: func(w *world) { w.fetcher.limit = 100 * time.Millisecond }, reason: "not complete within 100ms",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, official(t))
			files := w.hosts
			// The others are there, so that they are never what runs into a limit.
			for _, p := range w.wanted {
				if p.name != APIServer {
					if err := errors.Join(os.MkdirAll(filepath.Dir(p.target), 0o755), os.WriteFile(p.target, []byte(script(p.name)), 0o755)); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.hosts = files
			if test.host != nil {
				w.hosts = test.host
			}
			if test.change != nil {
				test.change(w)
			}
			if err := w.supplyAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := allOfficial()
			want[APIServer] = built
			if got, left := w.contents(t); !maps.Equal(got, want) || len(left) > 0 {
				t.Errorf("got %q, left %q", got, left)
			}
			if !slices.Equal(w.builds, []string{"k8s.io/kubernetes/cmd/kube-apiserver"}) {
				t.Errorf("built %q", w.builds)
			}
			for _, want := range []string{
				"Cannot fetch the official builds of Kubernetes v1.37.2: ", test.reason + ".\n",
				"Building Kubernetes v1.37.2 from Go modules.", "2 of 2 packages compiled\n",
			} {
				if !strings.Contains(w.out.String(), want) {
					t.Errorf("said %q, want %q", &w.out, want)
				}
			}
		})
	}
}

// TestBuildsTogetherWhatHasNoChecksum: what is built in the same workspace is not fetched either.
func TestBuildsTogetherWhatHasNoChecksum(t *testing.T) {
	for _, test := range []struct {
		kubernetes, unpinned string
		want                 map[string]string
	}{
		{"1.37", apiServerURL, map[string]string{Etcd: built, APIServer: built, Kubectl: built, Kwok: built}},
		{"1.36", etcdURL, map[string]string{Etcd: built, APIServer: script(APIServer), Kubectl: script(Kubectl), Kwok: built}},
	} {
		t.Run(test.kubernetes, func(t *testing.T) {
			files := official(t)
			for _, name := range []string{APIServer, Kubectl} {
				files["https://dl.k8s.io/release/v1.36.3/bin/linux/amd64/"+name] = script(name)
			}
			w := newWorld(t, files)
			var err error
			if w.wanted, err = plan(".", t.TempDir(), test.kubernetes, []string{Etcd, APIServer, Kubectl, Kwok}); err != nil {
				t.Fatal(err)
			}
			delete(w.fetcher.checksums, test.unpinned)
			if err := w.supplyAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, left := w.contents(t); !maps.Equal(got, test.want) || len(left) > 0 {
				t.Errorf("got %q, left %q", got, left)
			}
			if !strings.HasPrefix(w.out.String(), "No checksum is pinned of the official builds of ") {
				t.Errorf("said %q", &w.out)
			}
		})
	}
}

// TestBuildsBesideInOneCommand: one go command compiles each package once, and gives the version to the programs of Kubernetes alone.
func TestBuildsBesideInOneCommand(t *testing.T) {
	w := newWorld(t, official(t))
	beside := Build{Output: "bin", Packages: []string{"./cmd/apiserver", "./hack/demo"}}
	jobs, err := buildJobs(w.wanted, ".", beside)
	if err != nil {
		t.Fatal(err)
	}
	stamps, err := kubernetesLdflags("v1.37.2")
	want := slices.Concat(buildFlags, []string{
		"-ldflags=" + stamps, "go.etcd.io/etcd/server/v3", "k8s.io/kubernetes/cmd/kube-apiserver",
		"k8s.io/kubernetes/cmd/kubectl", "sigs.k8s.io/kwok/cmd/kwok", "./cmd/apiserver", "./hack/demo",
	})
	if err != nil || len(jobs) != 1 || !slices.Equal(jobs[0].args, want) || jobs[0].place != workspace(".") {
		t.Errorf("got %+v, %v, want one job with %q", jobs, err, want)
	}
	if w.wanted, err = plan(".", t.TempDir(), "1.34", []string{Etcd, APIServer}); err != nil {
		t.Fatal(err)
	}
	if jobs, err = buildJobs(w.wanted, ".", beside); err != nil || len(jobs) != 2 {
		t.Errorf("with an older Kubernetes: got %+v, %v", jobs, err)
	}
}

func TestBuildsAllWithoutAHost(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"unreachable": func(w *world) {
			w.fetcher.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.DNSError{Err: "no such host", Name: "dl.k8s.io"}
			}
		},
		"told to build": func(w *world) { w.fetcher = nil },
		"official builds that do not run here": func(w *world) {
			for address := range official(t) {
				content := "no executable"
				if address == etcdURL {
					content = archive(t, map[string]string{"etcd": content})
				}
				sum := sha256.Sum256([]byte(content))
				w.fetcher.checksums[address] = hex.EncodeToString(sum[:])
				files := w.hosts
				w.hosts = func(rw http.ResponseWriter, r *http.Request) {
					if "https://"+r.Host+r.URL.Path == address {
						_, _ = io.WriteString(rw, content)
						return
					}
					files(rw, r)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, official(t))
			change(w)
			if err := w.supplyAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, left := w.contents(t)
			if want := map[string]string{Etcd: built, APIServer: built, Kubectl: built, Kwok: built}; !maps.Equal(got, want) ||
				len(left) > 0 {
				t.Errorf("got %q, left %q", got, left)
			}
			if !strings.Contains(w.out.String(), "Building etcd v3.7.3, Kubernetes v1.37.2 and kwok v0.8.0 from Go modules.") {
				t.Errorf("said %q", &w.out)
			}
			if name == "unreachable" && !strings.Contains(w.out.String(), "lookup dl.k8s.io: no such host") {
				t.Errorf("said %q", &w.out)
			}
		})
	}
}
