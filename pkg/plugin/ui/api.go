// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// api answers the requests of the page.
type api struct {
	source    Source
	snapshots *snapshots
}

func (a *api) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/place", answer(func(r *http.Request) (any, error) { return a.source.Place(r.Context()) }))
	mux.HandleFunc("GET /api/overview", answer(a.overview))
	mux.HandleFunc("GET /api/candidates", answer(a.candidates))
	mux.HandleFunc("GET /api/explanation", answer(a.explanation))
	mux.HandleFunc("GET /api/policies", answer(a.policies))
	mux.HandleFunc("GET /api/records", answer(a.records))
	mux.HandleFunc("POST /api/preview", answer(a.preview))
	mux.HandleFunc("POST /api/approve", answer(a.approve))
	mux.HandleFunc("POST /api/keep", answer(a.keep))
	mux.HandleFunc("POST /api/release", answer(a.release))
}

// badRequest is an error of the page, and not of the cluster.
type badRequest struct{ error }

// Unwrap lets errors.As see why.
func (b badRequest) Unwrap() error { return b.error }

// answer writes what a function returns as JSON.
func answer(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := f(r)
		status := http.StatusOK
		if err != nil {
			value, status = map[string]string{"error": err.Error()}, statusOf(err)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(value) // If it fails, nobody reads it any more.
	}
}

// statusOf returns the status of an error: the API server's status if it has sent one.
func statusOf(err error) int {
	var status apierrors.APIStatus
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.As(err, new(badRequest)):
		return http.StatusBadRequest
	case errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest:
		return int(status.Status().Code)
	}
	return http.StatusBadGateway
}

// overview answers with a snapshot that is at most as many seconds old as the page asks for.
func (a *api) overview(r *http.Request) (any, error) {
	age, err := number(r, "age")
	if err != nil {
		return nil, err
	}
	s, err := a.snapshots.get(r.Context(), r.FormValue("namespace"), time.Duration(age)*time.Second)
	if err != nil {
		return nil, err
	}
	return s.overview, nil
}

// candidatesMost is how many candidates one answer has.
const candidatesMost = 500

// page is a part of the candidates that a filter selects.
type page struct {
	// Version says which snapshot it is of.
	Version int64  `json:"version"`
	Total   int    `json:"total"`
	Rows    []*row `json:"rows"`
}

func (a *api) candidates(r *http.Request) (any, error) {
	offset, err := number(r, "offset")
	if err != nil {
		return nil, err
	}
	limit, err := number(r, "limit")
	if err != nil {
		return nil, err
	}
	s, err := a.snapshots.get(r.Context(), r.FormValue("namespace"), anyAge)
	if err != nil {
		return nil, err
	}
	selected, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	rows := s.filter(selected)
	offset = min(offset, len(rows))
	return page{s.overview.Version, len(rows), rows[offset:min(len(rows), offset+min(limit, candidatesMost))]}, nil
}

func (a *api) explanation(r *http.Request) (any, error) {
	o := local.Object{Resource: r.FormValue("resource"), Namespace: r.FormValue("namespace"), Name: r.FormValue("name")}
	if err := expectNamed(o); err != nil {
		return nil, err
	}
	return a.source.Explain(r.Context(), o)
}

// expectNamed fails if a part of the name of an object is missing.
func expectNamed(o local.Object) error {
	if o.Resource == "" || o.Namespace == "" || o.Name == "" {
		return badRequest{errors.New("name a resource, a namespace and an object")}
	}
	return nil
}

func (a *api) keep(r *http.Request) (any, error) {
	var in struct {
		local.Object
		For string
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if err := expectNamed(in.Object); err != nil {
		return nil, err
	}
	return struct{}{}, a.source.Keep(r.Context(), in.Object, in.For)
}

func (a *api) release(r *http.Request) (any, error) {
	var o local.Object
	if err := decode(r, &o); err != nil {
		return nil, err
	}
	if err := expectNamed(o); err != nil {
		return nil, err
	}
	return struct{}{}, a.source.Release(r.Context(), o)
}

// policiesMost is how many policies the page shows. A browser does not stay fluid with ten thousand of them and their YAML.
const policiesMost = 200

// policies are those that wait for approval, and then the others.
type policies struct {
	Policies []Policy `json:"policies"`
	// Total and Waiting also count the policies that are not shown.
	Total   int      `json:"total"`
	Waiting int      `json:"waiting"`
	Notes   []string `json:"notes,omitempty"`
}

func (a *api) policies(r *http.Request) (any, error) {
	all, notes, err := a.source.Policies(r.Context(), r.FormValue("namespace"))
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b Policy) int { return cmp.Compare(len(b.Holds), len(a.Holds)) })
	out := policies{Policies: all, Total: len(all), Notes: notes}
	for out.Waiting < len(all) && len(all[out.Waiting].Holds) > 0 {
		out.Waiting++
	}
	if len(all) > policiesMost {
		out.Policies = all[:policiesMost]
		out.Notes = append(out.Notes,
			fmt.Sprintf("There are %d policies. Only %d of them are shown: choose a namespace.", len(all), policiesMost))
	}
	return out, nil
}

// records answers with what was deleted in so many seconds before now.
func (a *api) records(r *http.Request) (any, error) {
	within, err := number(r, "within")
	if err != nil {
		return nil, err
	}
	return a.source.Records(r.Context(), r.FormValue("namespace"), time.Now().Add(-time.Duration(within)*time.Second))
}

func (a *api) preview(r *http.Request) (any, error) {
	var in struct{ Namespace, Text string }
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	return a.source.Preview(r.Context(), in.Namespace, in.Text)
}

func (a *api) approve(r *http.Request) (any, error) {
	var in struct {
		Namespace, Name string
		Holds           []string
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if in.Name == "" || len(in.Holds) == 0 {
		return nil, badRequest{errors.New("name a policy and its holds")}
	}
	return struct{}{}, a.source.Approve(r.Context(), types.NamespacedName{Namespace: in.Namespace, Name: in.Name}, in.Holds)
}

// decode decodes the body of a request.
func decode(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return badRequest{err}
	}
	return nil
}

// number returns a parameter that is a number; 0 if it is left out.
func number(r *http.Request, name string) (int, error) {
	text := r.FormValue(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, badRequest{fmt.Errorf("%s is %q, and not a number", name, text)}
	}
	return n, nil
}
