// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// TestExplain: errors of libraries and of the API server get a way out. Others say it themselves.
func TestExplain(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "missing"))
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	refused := &url.Error{Op: "Get", URL: "https://example.com:6443/api?timeout=32s", Err: errors.New("connection refused")}
	const (
		silent = "this cluster has Winnow, but it does not answer; whoever runs it can see why: kubectl get apiservice v1alpha1.gc.winnow.dev"
		nobody = "the cluster does not accept your credentials; log in again, or choose another user or context: kubectl config get-contexts"
	)
	unavailable := apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "get", v1alpha1.Resource("cleanupcandidates"), "", "", 0, true)
	for name, c := range map[string]struct {
		server string // --server
		err    error
		want   string
	}{
		"nothing is configured": {"", fmt.Errorf("asking: %w", refused), "there is no kubeconfig that names a cluster; set KUBECONFIG, or use --kubeconfig"},
		"no answer": {
			"https://example.com:6443", fmt.Errorf("asking: %w", refused),
			"cannot reach the API server https://example.com:6443: connection refused; to see the cluster and user of your kubeconfig: " +
				"kubectl config view --minify",
		},
		"nobody":                 {"", apierrors.NewUnauthorized("x"), nobody},
		"silent":                 {"", fmt.Errorf("asking: %w", local.ErrSilent), silent},
		"silent about something": {"", fmt.Errorf("listing: %w", unavailable), silent},
		"another API is silent":  {"", apierrors.NewServiceUnavailable("x"), "x"},
		"no permission": {
			"", apierrors.NewForbidden(jobs, "a", errors.New(`User "vic" cannot get resource "jobs"`)),
			`jobs.batch "a" is forbidden: User "vic" cannot get resource "jobs"; to see what you may do: kubectl auth can-i --list -n default`,
		},
		"a quota": {"", apierrors.NewForbidden(jobs, "a", errors.New("exceeded quota")), `jobs.batch "a" is forbidden: exceeded quota`},
		"another": {"", errors.New("nothing was approved"), "nothing was approved"},
	} {
		s := New(genericiooptions.NewTestIOStreamsDiscard())
		*s.Flags.APIServer = c.server
		if got := s.Explain(c.err); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
	s := New(genericiooptions.NewTestIOStreamsDiscard())
	*s.Flags.Context = "nowhere"
	_, err := s.Flags.ToRESTConfig()
	if want := `context "nowhere" does not exist; to see the contexts: kubectl config get-contexts`; err == nil || s.Explain(err) != want {
		t.Errorf("a missing context: got %s, want %s", s.Explain(err), want)
	}
	_, err = s.Namespace()
	if err == nil || !strings.HasSuffix(s.Explain(err), "nowhere; to see the contexts: kubectl config get-contexts") {
		t.Errorf("a missing context, for its namespace: %s", s.Explain(err))
	}
}
