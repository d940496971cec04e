// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load is a client that reads, writes and watches policies through kube-apiserver at a steady rate, repeats nothing, and keeps what
// fails.
package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

const (
	policies = 20 // that are written in turn, as by people who do not wait for each other
	inFlight = 20 // maximum number of requests, so that a busy machine gets fewer of them and not later ones
)

// Result is what came of a load.
type Result struct {
	Requests, Watches int
	Written, Seen     int // changes of the policy that were answered with success, and those that watches have reported
	Failures          []string
}

func (r Result) String() string {
	return fmt.Sprintf(
		"%d requests and %d watches, %d failed; %d changes written, %d seen", r.Requests, r.Watches, len(r.Failures), r.Written, r.Seen,
	)
}

// Load is a load on the policies of a namespace.
type Load struct {
	client *http.Client
	url    string // of the policies of the namespace

	lock   sync.Mutex
	result Result
	seen   map[string]bool // by written change, whether a watch has reported it
}

// New returns a load on the policies of a namespace, which it may create.
func New(config *rest.Config, namespace string) (*Load, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("%s/apis/%s/namespaces/%s/cleanuppolicies", config.Host, v1alpha1.SchemeGroupVersion, namespace)
	return &Load{client: client, url: url, seen: map[string]bool{}}, nil
}

// Start runs the load in the background, until the function that it returns is called.
func (l *Load) Start(ctx context.Context, rate int) (end func() (Result, error)) {
	ctx, stop := context.WithCancel(ctx)
	type outcome struct {
		result Result
		err    error
	}
	ended := make(chan outcome, 1)
	go func() {
		result, err := l.Run(ctx, rate)
		ended <- outcome{result, err}
	}()
	return func() (Result, error) {
		stop()
		got := <-ended
		return got.result, got.err
	}
}

// Run sends rate requests a second until ctx ends, reads and writes in turn, and watches meanwhile.
func (l *Load) Run(ctx context.Context, rate int) (Result, error) {
	version, err := l.create(ctx)
	if err != nil {
		return Result{}, err
	}
	var running errgroup.Group
	running.SetLimit(inFlight)
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan struct{})
	go func() { defer close(watched); l.watch(watching, version) }()
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			running.Go(func() error { l.request(context.WithoutCancel(ctx), i); return nil })
		}
	}
	_ = running.Wait() // Requests keep their errors themselves.
	l.await(time.Minute)
	stopWatching()
	<-watched
	l.lock.Lock()
	defer l.lock.Unlock()
	for change, seen := range l.seen {
		if l.result.Written++; seen {
			l.result.Seen++
		} else {
			l.result.Failures = append(l.result.Failures, "no watch has reported change "+change)
		}
	}
	return l.result, nil
}

// await waits until watches have reported every change, or until it is too late.
func (l *Load) await(most time.Duration) {
	for begin := time.Now(); time.Since(begin) < most; time.Sleep(20 * time.Millisecond) {
		l.lock.Lock()
		missing := false
		for _, seen := range l.seen {
			missing = missing || !seen
		}
		l.lock.Unlock()
		if !missing {
			return
		}
	}
}

// create creates the policies, and returns the version from which a watch sees what is written to them.
func (l *Load) create(ctx context.Context) (version string, err error) {
	for i := range policies {
		object := v1alpha1.CleanupPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "CleanupPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: name(3 * i)},
		}
		body, err := json.Marshal(object)
		if err != nil {
			return "", err
		}
		answer, err := l.do(ctx, http.MethodPost, l.url, "application/json", body)
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal(answer, &object); err != nil {
			return "", err
		}
		version = object.ResourceVersion
	}
	return version, nil
}

// name of the policy that request i is about.
func name(i int) string { return fmt.Sprintf("load-%d", i/3%policies) }

// request reads or writes.
func (l *Load) request(ctx context.Context, i int) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var err error
	change := fmt.Sprint(i)
	switch i % 3 {
	case 0:
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{"change":"%s"}}}`, change)
		_, err = l.do(ctx, http.MethodPatch, l.url+"/"+name(i), "application/merge-patch+json", body)
	case 1:
		_, err = l.do(ctx, http.MethodGet, l.url+"/"+name(i), "", nil)
	case 2:
		_, err = l.do(ctx, http.MethodGet, l.url, "", nil)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.result.Requests++
	switch {
	case err != nil:
		l.fail(fmt.Errorf("request %d: %w", i, err))
	case i%3 == 0:
		if !l.seen[change] { // A watch may be faster than the answer.
			l.seen[change] = false
		}
	}
}

// fail keeps a failure. The lock is held.
func (l *Load) fail(err error) {
	l.result.Failures = append(l.result.Failures, time.Now().Format("15:04:05.000 ")+err.Error())
}

func (l *Load) do(ctx context.Context, method, url, contentType string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := l.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s", method, response.Status, answer)
	}
	return answer, err
}

// watch watches from a version on, and again from the last one when a watch ends, as every client does.
func (l *Load) watch(ctx context.Context, version string) {
	for ctx.Err() == nil {
		query := "?watch=true&allowWatchBookmarks=true&resourceVersion=" + version
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+query, nil)
		if err != nil {
			return
		}
		response, err := l.client.Do(request)
		l.lock.Lock()
		l.result.Watches++
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s", response.Status)
			_ = response.Body.Close()
		}
		if err != nil {
			if ctx.Err() == nil {
				l.fail(fmt.Errorf("watch: %w", err))
			}
			l.lock.Unlock()
			continue
		}
		l.lock.Unlock()
		version = l.follow(ctx, response.Body, version)
		_ = response.Body.Close()
	}
}

// follow reads the events of a watch until it ends, and returns the last version.
func (l *Load) follow(ctx context.Context, body io.Reader, version string) string {
	events := json.NewDecoder(body)
	for {
		var event struct {
			Type   string
			Object v1alpha1.CleanupPolicy
		}
		if err := events.Decode(&event); err != nil {
			if err != io.EOF && ctx.Err() == nil { // A watch that ends cleanly ends with EOF itself.
				l.lock.Lock()
				l.fail(fmt.Errorf("watch ended: %w", err))
				l.lock.Unlock()
			}
			return version
		}
		l.lock.Lock()
		if event.Type == "ERROR" {
			l.fail(fmt.Errorf("watch reported an error"))
		} else {
			version = event.Object.ResourceVersion
			if change := event.Object.Annotations["change"]; change != "" {
				l.seen[change] = true
			}
		}
		l.lock.Unlock()
	}
}
