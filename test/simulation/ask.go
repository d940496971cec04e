// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ask asks replicas about a resource at the same time, and returns an answer of each. It fails if one does not answer within a time.
func ask[T any](
	s *simulation, within time.Duration, read func(*replica, string) (T, error), resource string, replicas ...*replica,
) ([]T, error) {
	type answer struct {
		T   T
		err error
	}
	answers := make([]chan answer, len(replicas))
	for i, r := range replicas {
		answers[i] = make(chan answer, 1)
		go func() {
			of, err := read(r, resource)
			answers[i] <- answer{of, err}
		}()
	}
	s.run(time.Now().Add(within))
	var out []T
	for i := range answers {
		select {
		case a := <-answers[i]:
			if a.err != nil {
				return nil, a.err
			}
			out = append(out, a.T)
		default:
			return nil, fmt.Errorf("a replica has not answered for %v", within)
		}
	}
	return out, nil
}

// list reads all objects of a resource of Winnow, page by page, as a user.
func list[T any](r *replica, resource string) (out []T, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for next := ""; ; {
		code, data, err := r.client.do(ctx, jane, http.MethodGet, policiesPath+"/"+resource+"?continue="+url.QueryEscape(next), nil)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, data)
		}
		var page struct {
			Metadata metav1.ListMeta
			Items    []T
		}
		if err == nil {
			err = json.Unmarshal(data, &page)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, page.Items...)
		if next = page.Metadata.Continue; next == "" {
			return out, nil
		}
	}
}
