// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// apiServer answers what it is sent, and watches with what the test sends.
type apiServer struct {
	*httptest.Server
	received chan *http.Request
	events   chan string
}

func newAPIServer(t *testing.T) *apiServer {
	a := &apiServer{received: make(chan *http.Request, 100), events: make(chan string)}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.received <- r
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, "done")
			return
		}
		w.(http.Flusher).Flush()
		for {
			select {
			case e := <-a.events:
				_, _ = io.WriteString(w, e+"\n")
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(a.Close)
	return a
}

// newProxy returns a proxy in front of an API server, and how it is reached over HTTP/2.
func newProxy(t *testing.T) (*Proxy, *apiServer, *httptest.Server) {
	a := newAPIServer(t)
	target, err := url.Parse(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := New("proxy", target, http.DefaultTransport, 1)
	front := httptest.NewUnstartedServer(p)
	front.EnableHTTP2, front.Config.ConnState, front.Config.ErrorLog = true, p.track, p.pass.ErrorLog
	front.StartTLS()
	t.Cleanup(front.Close)
	return p, a, front
}

const jobs = "/apis/batch/v1/jobs"

// TestRequests: what the client and the API server see of each fault of requests, and that the next request is passed on.
func TestRequests(t *testing.T) {
	for name, c := range map[string]struct {
		fault    Kind
		path     string
		status   int  // 0 if the connection is cut
		wait     bool // whether there is a Retry-After
		received bool
		none     bool // whether the fault does not concern the request
	}{
		"429":                       {TooMany, jobs, 429, false, false, false},
		"429 with Retry-After":      {TooManyWait, jobs, 429, true, false, false},
		"503":                       {Unavailable, jobs, 503, false, false, false},
		"503 with Retry-After":      {UnavailableWait, jobs, 503, true, false, false},
		"500":                       {InternalError, jobs, 500, false, false, false},
		"a lost request":            {LostRequest, jobs, 0, false, false, false},
		"a lost answer":             {LostAnswer, jobs, 0, false, true, false},
		"the second page":           {ExpiredPage, jobs + "?continue=x", 410, false, false, false},
		"the first page":            {ExpiredPage, jobs, 200, false, true, true},
		"a watch from a version":    {ExpiredWatch, jobs + "?watch=true&resourceVersion=7", 410, false, false, false},
		"a list from a version":     {ExpiredWatch, jobs + "?resourceVersion=7", 200, false, true, true},
		"groups":                    {NoDiscovery, "/apis", 503, false, false, false},
		"a group":                   {NoDiscovery, "/apis/batch/v1", 503, false, false, false},
		"the core group":            {NoDiscovery, "/api/v1", 503, false, false, false},
		"schemas":                   {NoDiscovery, "/openapi/v3/apis/batch/v1", 503, false, false, false},
		"objects without discovery": {NoDiscovery, jobs, 200, false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, a, front := newProxy(t)
			p.Inject(Fault{Kind: c.fault, Requests: 1, For: time.Hour})
			status, after := get(t, front, c.path)
			if status != c.status || (after != "") != c.wait || (len(a.received) == 1) != c.received {
				t.Errorf("got %d, Retry-After %q, and the API server received %d requests", status, after, len(a.received))
			}
			if n, counts := p.Counts(); n != 1 || (counts[c.fault] == 1) == c.none {
				t.Errorf("counted %d requests and %v", n, counts)
			}
			p.Stop()
			if status, _ := get(t, front, jobs); status != http.StatusOK {
				t.Errorf("then %d", status)
			}
		})
	}
}

// get returns the status of an answer, 0 for none, and its Retry-After.
func get(t *testing.T, front *httptest.Server, path string) (status int, after string) {
	t.Helper()
	response, err := front.Client().Get(front.URL + path)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		var s metav1.Status
		if err := json.NewDecoder(response.Body).Decode(&s); err != nil || int(s.Code) != response.StatusCode || s.Kind != "Status" {
			t.Errorf("answer %+v, %v", s, err)
		}
	}
	return response.StatusCode, response.Header.Get("Retry-After")
}

// TestDelays: a request or an answer is delayed until faults stop at the latest.
func TestDelays(t *testing.T) {
	for _, kind := range []Kind{SlowRequest, SlowAnswer} {
		t.Run(kind, func(t *testing.T) {
			p, a, front := newProxy(t)
			p.Inject(Fault{Kind: kind, Requests: 1, For: time.Hour})
			got := make(chan int)
			go func() {
				status, _ := get(t, front, jobs)
				got <- status
			}()
			until(t, func() bool { return p.Spans.Behind(time.Now(), "jobs") > 0 })
			if (len(a.received) == 1) != (kind == SlowAnswer) {
				t.Errorf("the API server received %d requests", len(a.received))
			}
			p.Stop()
			if status := <-got; status != http.StatusOK {
				t.Errorf("got %d", status)
			}
		})
	}
}

// TestDeletes: a DELETE is known by its audit ID, with when it was sent and whether its client had an answer at once.
func TestDeletes(t *testing.T) {
	for kind, disturbed := range map[Kind]bool{"": false, LostAnswer: true, ExpiredPage: false} {
		p, a, front := newProxy(t)
		p.Inject(Fault{Kind: kind, Requests: 1, For: time.Hour})
		before := time.Now()
		r, err := http.NewRequest(http.MethodDelete, front.URL+"/apis/batch/v1/namespaces/a/jobs/b", nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := front.Client().Do(r); err == nil {
			_ = response.Body.Close()
		}
		sent, ok := p.Sent((<-a.received).Header.Get("Audit-ID"))
		if !ok || sent.At.Before(before) || sent.Disturbed != disturbed && kind != "" {
			t.Errorf("%s: got %+v, %t", kind, sent, ok)
		}
	}
}

// TestWatches: what a client reads of a watch that a fault concerns.
func TestWatches(t *testing.T) {
	for name, c := range map[string]struct {
		fault Fault
		want  error // that ends the watch; nil if it goes on
	}{
		"frozen":         {Fault{Kind: FrozenWatch, For: time.Millisecond}, nil},
		"of one":         {Fault{Kind: FrozenWatch, For: time.Millisecond, Pick: 3}, nil},
		"frozen and cut": {Fault{Kind: RewoundWatch, For: time.Millisecond}, errCut},
		"cut":            {Fault{Kind: CutWatch}, errCut},
		"ended":          {Fault{Kind: EndedWatch}, io.EOF},
		"all cut":        {Fault{Kind: CutConnections}, errCut},
	} {
		t.Run(name, func(t *testing.T) {
			p, a, front := newProxy(t)
			lines := openWatch(t, front, jobs+"?watch=true")
			a.events <- "one"
			if line, err := lines.ReadString('\n'); line != "one\n" || err != nil {
				t.Fatalf("read %q, %v", line, err)
			}
			p.Inject(c.fault)
			if c.want == nil {
				a.events <- "two"
			}
			wantLine := map[bool]string{true: "two\n"}[c.want == nil]
			line, err := lines.ReadString('\n')
			if line != wantLine || (err == nil) != (c.want == nil) || errors.Is(err, io.EOF) != errors.Is(c.want, io.EOF) {
				t.Errorf("read %q, %v", line, err)
			}
			if _, counts := p.Counts(); counts[c.fault.Kind] != 1 {
				t.Errorf("counted %v", counts)
			}
			until(t, func() bool { return p.Spans.Within(time.Time{}, time.Now(), "jobs") })
		})
	}
}

// TestFrozen: nothing that comes while a watch is frozen is read before it goes on.
func TestFrozen(t *testing.T) {
	p, a, front := newProxy(t)
	lines := openWatch(t, front, jobs+"?watch=true")
	p.Inject(Fault{Kind: FrozenWatch, For: time.Hour})
	a.events <- "one"
	read := make(chan string)
	go func() {
		line, _ := lines.ReadString('\n')
		read <- line
	}()
	if status, _ := get(t, front, jobs); status != http.StatusOK { // The connection goes on.
		t.Errorf("got %d", status)
	}
	select {
	case line := <-read:
		t.Errorf("read %q", line)
	default:
	}
	if p.Spans.Behind(time.Now(), "jobs") == 0 || p.Spans.Behind(time.Now(), "pods") != 0 {
		t.Error("it is not known that the watch is behind")
	}
	p.Stop()
	if line := <-read; line != "one\n" {
		t.Errorf("read %q", line)
	}
}

// TestBookmarks: a watch without bookmarks asks for none, and ends when faults stop. A list that is streamed needs its bookmark.
func TestBookmarks(t *testing.T) {
	for query, want := range map[string]string{
		"watch=true&allowWatchBookmarks=true&resourceVersion=7":      "watch=true&resourceVersion=7",
		"watch=true&allowWatchBookmarks=true&sendInitialEvents=true": "watch=true&allowWatchBookmarks=true&sendInitialEvents=true",
	} {
		p, a, front := newProxy(t)
		p.Inject(Fault{Kind: NoBookmarks, Requests: 1, For: time.Hour})
		lines := openWatch(t, front, jobs+"?"+query)
		if got := (<-a.received).URL.RawQuery; got != want {
			t.Errorf("%s: asked for %s", query, got)
		}
		p.Stop()
		if query == want {
			continue
		}
		if _, err := lines.ReadString('\n'); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func openWatch(t *testing.T, front *httptest.Server, path string) *bufio.Reader {
	t.Helper()
	response, err := front.Client().Get(front.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return bufio.NewReader(response.Body)
}

// TestClock: the Date of answers is an hour off, until faults stop.
func TestClock(t *testing.T) {
	for ahead, want := range map[bool]time.Duration{true: time.Hour, false: -time.Hour} {
		p, _, front := newProxy(t)
		p.Inject(Fault{Kind: WrongClock, For: time.Hour, Ahead: ahead})
		for _, want := range []time.Duration{want, 0} {
			response, err := front.Client().Get(front.URL + jobs)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			date, err := http.ParseTime(response.Header.Get("Date"))
			if off := date.Sub(time.Now().Add(want)).Abs(); err != nil || off > time.Minute {
				t.Errorf("the Date is %v, %v", date, err)
			}
			if want != 0 {
				p.Stop()
			}
		}
	}
}

// TestDraw: a seed draws the same faults each time, and all kinds.
func TestDraw(t *testing.T) {
	draw := func() string {
		var out strings.Builder
		r := rand.New(rand.NewPCG(1, 2))
		for range 500 {
			fmt.Fprintf(&out, "%+v\n", Draw(r))
		}
		return out.String()
	}
	all := draw()
	if all != draw() {
		t.Error("drew other faults")
	}
	for _, k := range Kinds {
		if !strings.Contains(all, "Kind:"+k+" ") {
			t.Errorf("did not draw %q", k)
		}
	}
}

// TestSpans: how old knowledge may be.
func TestSpans(t *testing.T) {
	at := func(seconds int) time.Time { return time.Date(2026, 1, 1, 0, 0, seconds, 0, time.UTC) }
	for name, c := range map[string]struct {
		from, until int // of the span; until is 0 while it lasts
		resource    string
		at, want    int // seconds
	}{
		"before":            {10, 20, "jobs", 9, 0},
		"during":            {10, 20, "jobs", 15, 5},
		"just after":        {10, 20, "jobs", 25, 15},
		"long after":        {10, 20, "jobs", 31, 0},
		"while it lasts":    {10, 0, "jobs", 100, 90},
		"another resource":  {10, 20, "pods", 15, 0},
		"of all of them":    {10, 20, Everything, 15, 5},
		"after all of them": {10, 20, Everything, 31, 0},
	} {
		var s Spans
		end := s.Begin(c.resource, at(c.from))
		if c.until > 0 {
			end(at(c.until))
		}
		if got := s.Behind(at(c.at), "cronjobs", "jobs"); got != time.Duration(c.want)*time.Second {
			t.Errorf("%s: behind by %v, want %d s", name, got, c.want)
		}
		if got := s.Within(at(c.at), at(c.at), "cronjobs", "jobs"); got != (c.want > 0) {
			t.Errorf("%s: within: %t", name, got)
		}
	}
}

// until waits until something is true.
func until(t *testing.T, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextCancel(t.Context(), time.Millisecond, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatal(err)
	}
}
