// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// startRegistry returns the host of an empty registry on loopback, behind a handler of the test.
func startRegistry(t *testing.T, around func(http.Handler) http.Handler, options ...registry.Option) string {
	t.Helper()
	// The test reads the credentials of nobody else.
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("REGISTRY_AUTH_FILE", filepath.Join(t.TempDir(), "auth.json"))
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	server := httptest.NewServer(around(registry.New(append(options, registry.Logger(log.New(io.Discard, "", 0)))...)))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func open(h http.Handler) http.Handler { return h }

func TestPushedImageIsPulledByDigest(t *testing.T) {
	for name, referrers := range map[string]bool{"OCI 1.1": true, "a registry without referrers": false} {
		t.Run(name, func(t *testing.T) {
			host := startRegistry(t, open, registry.WithReferrersSupport(referrers))
			output := built(t, programs)
			local, _, err := readLayout(output)
			if err != nil {
				t.Fatal(err)
			}
			digest, err := local.Digest()
			if err != nil {
				t.Fatal(err)
			}
			image, err := push(t.Context(), output, host+"/team/winnow")
			if err != nil {
				t.Fatal(err)
			}
			if want := host + "/team/winnow@" + digest.String(); image != want {
				t.Errorf("push says %s, want %s", image, want)
			}
			checkPulled(t, image, host+"/team/winnow:"+testVersion)
			checkReferrers(t, image, output)
			if _, err := push(t.Context(), output, host+"/team/winnow"); err != nil {
				t.Errorf("pushed again: %v", err)
			}
		})
	}
}

func checkPulled(t *testing.T, image, tag string) {
	t.Helper()
	pulled, err := remote.Index(reference(t, image))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(pulled); err != nil {
		t.Error(err)
	}
	tagged, err := remote.Head(reference(t, tag))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(image, tagged.Digest.String()) {
		t.Errorf("%s is %s, want %s", tag, tagged.Digest, image)
	}
}

func reference(t *testing.T, image string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// checkReferrers finds the provenance by the image, and each SBOM by the image of its platform.
func checkReferrers(t *testing.T, image, output string) {
	t.Helper()
	index, err := remote.Index(reference(t, image))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	f := filesOf(output, testVersion)
	repo := reference(t, image).Context()
	expected := map[string]string{image: f.provenance}
	for _, m := range manifest.Manifests {
		expected[repo.Digest(m.Digest.String()).Name()] = f.sbom(*m.Platform)
	}
	for subject, file := range expected {
		referrers, err := remote.Referrers(reference(t, subject).(name.Digest))
		if err != nil {
			t.Fatal(err)
		}
		found, err := referrers.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Manifests) != 1 {
			t.Fatalf("%s has %d referrers", subject, len(found.Manifests))
		}
		checkReferrer(t, repo, found.Manifests[0], file)
	}
}

func checkReferrer(t *testing.T, repo name.Repository, found v1.Descriptor, file string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := remote.Image(repo.Digest(found.Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := artifact.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	mediaType := sbomType
	if strings.HasSuffix(file, "-provenance.json") {
		mediaType = provenanceType
	}
	layers, err := artifact.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.ArtifactType != mediaType || len(layers) != 1 {
		t.Fatalf("the referrer for %s is %+v", file, manifest)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the referrer is not %s", file)
	}
}

// only lets one user in.
func only(user, password string, refused int) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if u, p, _ := r.BasicAuth(); u == user && p == password {
				h.ServeHTTP(w, r)
				return
			}
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(refused)
		})
	}
}

func TestCredentialsAreThoseOfDocker(t *testing.T) {
	host := startRegistry(t, only("vic", "secret", http.StatusUnauthorized))
	output := built(t, programs)
	for password, want := range map[string]string{
		"secret": "", "wrong": `Log in with "docker login ` + host + `"`,
	} {
		auth := base64.StdEncoding.EncodeToString([]byte("vic:" + password))
		config := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, auth)
		if err := writeFiles(os.Getenv("DOCKER_CONFIG"), map[string]string{"config.json": config}); err != nil {
			t.Fatal(err)
		}
		_, err := push(t.Context(), output, host+"/winnow")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("with the password %s, the error is %v, want %q", password, err, want)
		}
		if err != nil && strings.Contains(err.Error(), auth) {
			t.Errorf("the error tells the credentials: %v", err)
		}
	}
}

func TestWhatIsNotPushed(t *testing.T) {
	host := startRegistry(t, only("nobody", "may push", http.StatusForbidden))
	output := built(t, programs)
	for name, c := range map[string]struct{ output, repository, want string }{
		"no repository":                {output, "", "set REPOSITORY, for example"},
		"a repository and tag":         {output, host + "/winnow:v1", "without a tag"},
		"no registry":                  {output, "winnow", "REPOSITORY must be a registry and a path"},
		"no image":                     {t.TempDir(), host + "/winnow", `run "make image" first`},
		"a registry that refuses":      {output, host + "/winnow", "The registry refused"},
		"a registry that is not there": {output, "127.0.0.1:1/winnow", "pushing to 127.0.0.1:1/winnow"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := push(t.Context(), c.output, c.repository); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}
