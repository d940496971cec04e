// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
)

const (
	// attemptMost is how long an attempt may take.
	attemptMost = 10 * time.Second
	// readMost is how much of the body of an answer is read, and shownMost how much of that is logged.
	readMost, shownMost = 4096, 200
	// headerMost is how large the header of an answer may be.
	headerMost = 64 << 10
)

// sender sends requests to the receiver, one at a time.
type sender struct {
	Config
	timeout time.Duration
	files   files
	client  *http.Client
}

func newSender(c Config) *sender { return &sender{Config: c, timeout: attemptMost} }

// answer is how an attempt ended.
type answer struct {
	// err is nil if the receiver has accepted the events.
	err error
	// refused says that the same request would be refused again.
	refused bool
	// wait is the header Retry-After, and body the beginning of the body.
	wait, body string
}

// retryAfter returns how long the receiver asks to wait; zero if it does not say.
func (a answer) retryAfter(now time.Time) time.Duration {
	if n, err := strconv.Atoi(a.wait); err == nil {
		return time.Duration(min(n, int(retryAfterMost/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(a.wait); err == nil {
		return at.Sub(now)
	}
	return 0
}

// send sends a batch once. Files are read again each time: they are small, and somebody may have renewed them.
func (s *sender) send(ctx context.Context, body []byte) answer {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.refresh(); err != nil {
		return answer{err: err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return answer{err: withoutURL(err)}
	}
	request.Header.Set("Content-Type", event.ApplicationCloudEventsBatchJSON)
	request.Header.Set("User-Agent", s.UserAgent)
	// Without values it is not sent. It allows the transport to send again what it sent on a connection that the receiver was closing:
	// events have IDs.
	request.Header["Idempotency-Key"] = nil
	if s.files.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.files.token)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return answer{err: s.explain(ctx, err)}
	}
	defer func() { _ = response.Body.Close() }()
	read, _ := io.ReadAll(io.LimitReader(response.Body, readMost)) // The status says enough.
	return answerOf(response, string(read))
}

// answerOf says what a status means.
func answerOf(r *http.Response, body string) answer {
	if len(body) > shownMost {
		body = body[:shownMost]
	}
	a := answer{wait: r.Header.Get("Retry-After"), body: strings.ToValidUTF8(body, "")}
	switch code := r.StatusCode; {
	case code >= 200 && code < 300:
		return answer{}
	case code >= 300 && code < 400:
		a.err = fmt.Errorf("the receiver answered %s and redirects to %s. Winnow follows no redirect, because its credentials would follow too: "+
			"set --notify-url to the right address", status(r), redirected(r))
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		a.err = fmt.Errorf("the receiver answered %s", status(r))
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		a.err, a.refused = fmt.Errorf("the receiver answered %s: check --notify-token-file and --notify-client-cert-file", status(r)), true
	default:
		a.err, a.refused = fmt.Errorf("the receiver answered %s", status(r)), true
	}
	return a
}

// status is the status in words of this program, since a receiver can answer any words.
func status(r *http.Response) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.StatusCode, http.StatusText(r.StatusCode)))
}

// redirected is the host of a redirect. The rest of its URL may contain secrets.
func redirected(r *http.Response) string {
	to, err := r.Location()
	if err != nil {
		return "nowhere"
	}
	return to.Scheme + "://" + to.Host
}

// explain says why there was no answer.
func (s *sender) explain(ctx context.Context, err error) error {
	err = withoutURL(err)
	untrusted := (*tls.CertificateVerificationError)(nil)
	switch {
	case errors.As(err, &untrusted) && s.CAFile == "":
		return fmt.Errorf("the certificate of the receiver is not trusted: %w. If a private authority signed it, set --notify-ca-file", err)
	case errors.As(err, &untrusted):
		return fmt.Errorf("the certificate of the receiver is not trusted: %w. --notify-ca-file must contain the authority that signed it, and "+
			"the certificate must name the host of --notify-url", err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the receiver did not answer within %s", s.timeout)
	}
	return err
}

// withoutURL returns what an error of package http says beside the URL, which may contain secrets.
func withoutURL(err error) error {
	if of := (*url.Error)(nil); errors.As(err, &of) {
		return of.Err
	}
	return err
}
