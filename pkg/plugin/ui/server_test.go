// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/explain"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// fakeSource counts approvals. Objects of the namespace "secret" are forbidden.
type fakeSource struct {
	Source
	candidates  []*v1alpha1.CleanupCandidate
	heldWhenDue bool
	finished    []local.Finished
	policies    []Policy
	read        int
	approved    []string
	changed     []string
}

func (f *fakeSource) Place(context.Context) (Place, error) { return Place{Context: "<b>"}, nil }

func (f *fakeSource) Read(_ context.Context, _ string, add func(*v1alpha1.CleanupCandidate, bool)) (Reading, error) {
	f.read++
	for _, c := range f.candidates {
		add(c, f.heldWhenDue)
	}
	return Reading{Notes: []string{"hidden"}, Finished: slices.Clone(f.finished)}, nil
}

func (f *fakeSource) Policies(context.Context, string) ([]Policy, []string, error) {
	return slices.Clone(f.policies), []string{"hidden"}, nil
}

func (f *fakeSource) Explain(_ context.Context, o local.Object) (Explanation, error) {
	if o.Namespace == "secret" {
		return Explanation{}, apierrors.NewForbidden(v1alpha1.Resource("x"), o.Name, nil)
	}
	return Explanation{Words: explain.Words{Title: o.Name}}, nil
}

func (f *fakeSource) Keep(_ context.Context, o local.Object, duration string) error {
	f.changed = append(f.changed, fmt.Sprint("keep ", o, " ", duration))
	return nil
}

func (f *fakeSource) Release(_ context.Context, o local.Object) error {
	f.changed = append(f.changed, fmt.Sprint("release ", o))
	return nil
}

func (f *fakeSource) Approve(_ context.Context, policy types.NamespacedName, ids []string) error {
	f.approved = append(f.approved, policy.String()+" "+strings.Join(ids, ","))
	return nil
}

func newServer(t *testing.T, source Source) *Server {
	t.Helper()
	listener, err := Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s, err := New(source, listener)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	approval = `{"namespace":"team-a","name":"p","holds":["x"]}`
	job      = `{"resource":"jobs.batch","namespace":"team-a","name":"a"}`
	keeping  = `{"resource":"jobs.batch","namespace":"team-a","name":"a","for":"7d"}`
)

// TestRequests: a request needs the token and a name of this machine, and one that changes something must come from the page itself.
func TestRequests(t *testing.T) {
	source := &fakeSource{}
	s := newServer(t, source)
	host := s.hosts[0]
	port := host[strings.LastIndex(host, ":"):]
	asPage := http.Header{"Origin": {"http://" + host}, "Content-Type": {"application/json"}}
	with := func(name, value string) http.Header {
		h := asPage.Clone()
		if h.Set(name, value); value == "" {
			h.Del(name)
		}
		return h
	}
	for name, c := range map[string]struct {
		method, host, path, body string
		header                   http.Header
		want                     int
	}{
		"the page":                 {path: "TOKEN/", want: 200},
		"a script":                 {path: "TOKEN/app.js", want: 200},
		"a file that is not there": {path: "TOKEN/server.go", want: 404},
		"a path that leads up":     {path: "TOKEN/../server.go", want: 307},
		"without the token":        {path: "", want: 404},
		"a script without it":      {path: "app.js", want: 404},
		"a part of the token":      {path: s.token[:10] + "/", want: 404},
		"no slash after it":        {path: "TOKEN", want: 404},
		"an answer":                {path: "TOKEN/api/place", want: 200},
		"an answer without it":     {path: "api/place", want: 404},
		"another answer":           {path: "TOKEN/api/secrets", want: 404},
		"localhost":                {path: "TOKEN/", host: "localhost" + port, want: 200},
		"IPv6":                     {path: "TOKEN/", host: "[::1]" + port, want: 200},
		"a rebound name":           {path: "TOKEN/", host: "rebound.example" + port, want: 403},
		"a name that begins so":    {path: "TOKEN/", host: "localhost.example" + port, want: 403},
		"another port":             {path: "TOKEN/", host: "127.0.0.1:1", want: 403},
		"no port":                  {path: "TOKEN/", host: "127.0.0.1", want: 403},

		"of another site": {path: "TOKEN/api/place", header: http.Header{"Sec-Fetch-Site": {"cross-site"}}, want: 403},
		"of another port": {path: "TOKEN/api/place", header: http.Header{"Sec-Fetch-Site": {"same-site"}}, want: 403},
		"of the page":     {path: "TOKEN/api/place", header: http.Header{"Sec-Fetch-Site": {"same-origin"}}, want: 200},
		"typed":           {path: "TOKEN/", header: http.Header{"Sec-Fetch-Site": {"none"}, "Sec-Fetch-Dest": {"document"}}, want: 200},
		"a link":          {path: "TOKEN/", header: http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Dest": {"document"}}, want: 200},
		"a frame":         {path: "TOKEN/", header: http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Dest": {"iframe"}}, want: 403},

		"approve":                        {method: "POST", path: "TOKEN/api/approve", body: approval, header: asPage, want: 200},
		"approve without the token":      {method: "POST", path: "api/approve", body: approval, header: asPage, want: 404},
		"approve without an origin":      {method: "POST", path: "TOKEN/api/approve", body: approval, header: with("Origin", ""), want: 403},
		"approve of another origin":      {method: "POST", path: "TOKEN/api/approve", body: approval, header: with("Origin", "http://127.0.0.1:1"), want: 403},
		"approve of another scheme":      {method: "POST", path: "TOKEN/api/approve", body: approval, header: with("Origin", "https://"+host), want: 403},
		"approve of no origin":           {method: "POST", path: "TOKEN/api/approve", body: approval, header: with("Origin", "null"), want: 403},
		"approve of another name":        {method: "POST", path: "TOKEN/api/approve", body: approval, header: with("Origin", "http://localhost"+port), want: 403},
		"approve of another site":        {method: "POST", path: "TOKEN/api/approve", body: approval, header: with("Sec-Fetch-Site", "same-site"), want: 403},
		"approve as a form":              {method: "POST", path: "TOKEN/api/approve", body: approval, header: with("Content-Type", "text/plain"), want: 415},
		"approve by GET":                 {path: "TOKEN/api/approve", header: asPage, want: 404},
		"approve by PUT":                 {method: "PUT", path: "TOKEN/api/approve", body: approval, header: asPage, want: 405},
		"approve by DELETE":              {method: "DELETE", path: "TOKEN/api/approve", header: asPage, want: 405},
		"approve no holds":               {method: "POST", path: "TOKEN/api/approve", body: `{"name":"p"}`, header: asPage, want: 400},
		"approve with an unknown field":  {method: "POST", path: "TOKEN/api/approve", body: `{"name":"p","holds":["x"],"all":true}`, header: asPage, want: 400},
		"keep":                           {method: "POST", path: "TOKEN/api/keep", body: keeping, header: asPage, want: 200},
		"keep of another origin":         {method: "POST", path: "TOKEN/api/keep", body: keeping, header: with("Origin", "http://127.0.0.1:1"), want: 403},
		"keep by GET":                    {path: "TOKEN/api/keep", header: asPage, want: 404},
		"keep nothing":                   {method: "POST", path: "TOKEN/api/keep", body: `{"for":"7d"}`, header: asPage, want: 400},
		"release":                        {method: "POST", path: "TOKEN/api/release", body: job, header: asPage, want: 200},
		"release with an unknown field":  {method: "POST", path: "TOKEN/api/release", body: keeping, header: asPage, want: 400},
		"release nothing":                {method: "POST", path: "TOKEN/api/release", body: `{}`, header: asPage, want: 400},
		"the editor's library":           {path: "TOKEN/vendor/codemirror/codemirror.js", want: 200},
		"a time that is not a number":    {path: "TOKEN/api/candidates?from=x", want: 400},
		"too large a body":               {method: "POST", path: "TOKEN/api/preview", body: `{"text":"` + strings.Repeat("x", bodyMost) + `"}`, header: asPage, want: 413},
		"an offset that is not a number": {path: "TOKEN/api/candidates?offset=x", want: 400},
		"a negative one":                 {path: "TOKEN/api/candidates?offset=-1", want: 400},
		"an object without a name":       {path: "TOKEN/api/explanation?resource=pods&namespace=a", want: 400},
		"an object":                      {path: "TOKEN/api/explanation?resource=pods&namespace=a&name=b", want: 200},
		"what is forbidden":              {path: "TOKEN/api/explanation?resource=pods&namespace=secret&name=b", want: 403},
	} {
		t.Run(name, func(t *testing.T) {
			source.approved, source.changed = nil, nil
			method, to := c.method, c.host
			if method == "" {
				method = http.MethodGet
			}
			if to == "" {
				to = host
			}
			r := httptest.NewRequestWithContext(t.Context(), method, "http://"+to+"/"+strings.ReplaceAll(c.path, "TOKEN", s.token), strings.NewReader(c.body))
			for key, values := range c.header {
				r.Header[key] = values
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			answer, _ := io.ReadAll(w.Body)
			if w.Code != c.want {
				t.Errorf("status %d, want %d: %s", w.Code, c.want, answer)
			}
			if approved := len(source.approved) > 0; approved != (name == "approve") {
				t.Errorf("approved: %v", source.approved)
			}
			if changed := len(source.changed) > 0; changed != (name == "keep" || name == "release") {
				t.Errorf("changed: %v", source.changed)
			}
			checkHeaders(t, w.Header())
			if strings.Contains(string(answer), s.token) {
				t.Errorf("the answer has the token: %s", answer)
			}
		})
	}
}

// TestManyPolicies: those that wait for approval come first, and all of them are counted.
func TestManyPolicies(t *testing.T) {
	source := &fakeSource{}
	for i := range policiesMost + 50 {
		p := Policy{Name: fmt.Sprint("p-", i)}
		if i%100 == 99 {
			p.Holds = make([]Hold, i)
		}
		source.policies = append(source.policies, p)
	}
	s := newServer(t, source)
	get := func() policies {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"api/policies", nil)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var out policies
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := get()
	if len(got.Policies) != policiesMost || got.Total != 250 || got.Waiting != 2 || len(got.Notes) != 2 || !strings.Contains(got.Notes[1], "250 policies") {
		t.Errorf("%d policies of %d, %d wait, %q", len(got.Policies), got.Total, got.Waiting, got.Notes)
	}
	for i, want := range []string{"p-199", "p-99", "p-0", "p-1"} {
		if name := got.Policies[i].Name; name != want {
			t.Errorf("policy %d is %s, want %s", i, name, want)
		}
	}
	source.policies = source.policies[:150]
	if got = get(); len(got.Policies) != 150 || got.Total != 150 || got.Waiting != 1 || len(got.Notes) != 1 {
		t.Errorf("%d policies of %d, %d wait, %q", len(got.Policies), got.Total, got.Waiting, got.Notes)
	}
	source.policies = []Policy{}
	if got = get(); got.Policies == nil || got.Total != 0 {
		t.Errorf("without policies: %+v", got)
	}
}

// checkHeaders: each answer has all of them, refusals too.
func checkHeaders(t *testing.T, h http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "",
	} {
		if got := h.Get(name); got != want && (name != "Cache-Control" || got != "") { // http.FileServer removes it if there is no such file.
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	policy := h.Get("Content-Security-Policy")
	for _, part := range []string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'", "base-uri 'none'", "form-action 'none'",
		"frame-ancestors 'none'", "require-trusted-types-for 'script'",
	} {
		if !strings.Contains(policy, part) {
			t.Errorf("the content security policy %q lacks %q", policy, part)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("the content security policy is %q", policy)
	}
}

// TestPort80: browsers leave this port out, of the address and of where a request comes from.
func TestPort80(t *testing.T) {
	s, err := New(&fakeSource{}, onPort{80})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"127.0.0.1": 200, "127.0.0.1:80": 200, "localhost": 200, "[::1]": 200, "rebound.example": 403, "::1": 403} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/"+s.token+"/api/approve", strings.NewReader(approval))
		r.Host = host
		r.Header.Set("Origin", "http://"+host)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: status %d, want %d: %s", host, w.Code, want, w.Body)
		}
	}
}

// onPort is a listener that is asked only for its port.
type onPort struct{ port int }

func (o onPort) Addr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: o.port} }
func (o onPort) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (o onPort) Close() error              { return nil }

// TestSlowAnswers: an answer may take as long as the cluster takes, but nobody may take long to ask.
func TestSlowAnswers(t *testing.T) {
	if s := newHTTPServer(t.Context(), nil); s.WriteTimeout != 0 || s.ReadTimeout == 0 || s.ReadHeaderTimeout == 0 || s.IdleTimeout == 0 {
		t.Errorf("the server has the limits %+v", s)
	}
}

// TestTokens: each server has another one, of at least 128 bits.
func TestTokens(t *testing.T) {
	a, b := newServer(t, nil), newServer(t, nil)
	if a.token == b.token || len(a.token) < 26 || !strings.HasPrefix(a.URL(), "http://127.0.0.1:") || !strings.HasSuffix(a.URL(), "/"+a.token+"/") {
		t.Errorf("%s and %s", a.URL(), b.URL())
	}
}

// TestAssets: the files have no scripts, styles and handlers in the markup, name no other site, and make no elements from text. Those of
// other projects may name sites in comments.
func TestAssets(t *testing.T) {
	files := 0
	err := fs.WalkDir(embedded, "assets", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		content, err := embedded.ReadFile(path)
		text := strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", "")
		never := []string{
			"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "localStorage", "document.cookie",
		}
		if !strings.HasPrefix(path, "assets/vendor/") {
			never = append(never, "http://", "https://", "style=", "onclick", "onload", "javascript:", "<script>", "<style")
		}
		for _, never := range never {
			if strings.Contains(text, never) {
				t.Errorf("%s has %q", path, never)
			}
		}
		return err
	})
	if err != nil || files < 15 {
		t.Error(files, err)
	}
}

// TestVendored: each folder of files of another project has their licence.
func TestVendored(t *testing.T) {
	folders, err := fs.Glob(embedded, "assets/vendor/*/*.js")
	if err != nil || len(folders) == 0 {
		t.Fatal(folders, err)
	}
	for _, file := range folders {
		if _, err := fs.Stat(embedded, path.Join(path.Dir(file), "LICENSE")); err != nil {
			t.Error(err)
		}
	}
}

// TestListensOnThisMachineOnly: the page has the permissions of its user, so other machines must not reach it.
func TestListensOnThisMachineOnly(t *testing.T) {
	listener, err := Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if at, ok := listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		t.Errorf("listens on %v", listener.Addr())
	}
}

// TestServeEnds: Ctrl-C ends the page at once, and nothing is left on the port.
func TestServeEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := Listen(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(&fakeSource{}, listener)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, listener, s) }()
	get := func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL(), nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if get() == nil {
		t.Error("the page is still served")
	}
}
