// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Kind is what goes wrong.
type Kind = string

// The kinds. All of them can come from a real API server, or from the network in front of it.
const (
	TooMany         Kind = "429"
	TooManyWait     Kind = "429 with Retry-After"
	Unavailable     Kind = "503"
	UnavailableWait Kind = "503 with Retry-After"
	InternalError   Kind = "500"
	LostRequest     Kind = "request lost"
	LostAnswer      Kind = "answer lost"
	SlowRequest     Kind = "request delayed"
	SlowAnswer      Kind = "answer delayed"
	ExpiredPage     Kind = "410 in paging"
	ExpiredWatch    Kind = "410 for a watch"
	NoDiscovery     Kind = "discovery failed"
	// NoBookmarks begins watches without bookmarks, which an API server may leave out.
	NoBookmarks Kind = "watch without bookmarks"

	// These concern watches that are open.

	FrozenWatch Kind = "watch frozen"
	// RewoundWatch freezes watches and cuts them. Each begins again at the older version that its client has.
	RewoundWatch Kind = "watch frozen and cut"
	CutWatch     Kind = "watch cut"
	EndedWatch   Kind = "watch ended"

	// These concern everything.

	CutConnections Kind = "all connections cut"
	WrongClock     Kind = "Date an hour off"
)

// Kinds are all of them.
var Kinds = []Kind{
	TooMany, TooManyWait, Unavailable, UnavailableWait, InternalError, LostRequest, LostAnswer, SlowRequest, SlowAnswer, ExpiredPage,
	ExpiredWatch, NoDiscovery, NoBookmarks, FrozenWatch, RewoundWatch, CutWatch, EndedWatch, CutConnections, WrongClock,
}

const (
	// SlowMost is the longest delay of a request or an answer.
	SlowMost = 20 * time.Second
	// requestsMost is how many requests one fault concerns at most.
	requestsMost = 20
	// frozenMost is longer than Winnow trusts a silent watch.
	frozenMost = 2 * time.Minute
	clockOff   = time.Hour
	clockFor   = time.Minute
	// armedFor is how long a fault waits for requests that it can concern.
	armedFor = 30 * time.Second
)

// Fault is one thing that goes wrong.
type Fault struct {
	Kind Kind
	// Requests is how many requests it concerns at most, if it concerns requests.
	Requests int
	// For is how long it lasts at most.
	For time.Duration
	// Ahead says for WrongClock that the clock is ahead, or else behind.
	Ahead bool
	// Pick chooses the watches that it concerns: those of one resource, or all if it is 0.
	Pick int
}

// Draw draws a fault.
func Draw(r *rand.Rand) Fault {
	f := Fault{Kind: Kinds[r.IntN(len(Kinds))], Requests: 1 + r.IntN(requestsMost), For: armedFor, Ahead: r.IntN(2) == 0, Pick: r.IntN(30)}
	switch f.Kind {
	case NoDiscovery:
		f.Requests = 1000
	case NoBookmarks:
		f.For = frozenMost
	case FrozenWatch, RewoundWatch:
		f.For = time.Duration(r.Int64N(int64(frozenMost)))
	case WrongClock:
		f.For = clockFor
	}
	return f
}

// concerns reports whether a fault can concern a request.
func (f Fault) concerns(info *request.RequestInfo, query url.Values) bool {
	switch f.Kind {
	case ExpiredPage:
		return info.Verb == "list" && query.Get("continue") != ""
	case ExpiredWatch:
		version := query.Get("resourceVersion")
		return info.Verb == "watch" && version != "" && version != "0"
	case NoBookmarks: // A list that is streamed ends with a bookmark.
		return info.Verb == "watch" && query.Get("allowWatchBookmarks") == "true" && query.Get("sendInitialEvents") != "true"
	case NoDiscovery:
		return isDiscovery(info.Path)
	}
	return true
}

// isDiscovery reports whether a path says which resources the cluster serves.
func isDiscovery(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch parts[0] {
	case "openapi":
		return true
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	}
	return false
}

var infoFactory = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// infoOf says what a request is about.
func infoOf(r *http.Request) *request.RequestInfo {
	info, err := infoFactory.NewRequestInfo(r)
	if err != nil {
		return &request.RequestInfo{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
	}
	return info
}
