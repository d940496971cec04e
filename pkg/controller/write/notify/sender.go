// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
)

const (
	// attemptMost is how long an attempt may take.
	attemptMost = 10 * time.Second
	// readMost is how much of the body of an answer is read, so that the connection can be used again. Nothing of it is logged.
	readMost = 4096
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
	// refused says that the same request would be refused again, and suspect that its events may be the reason why it failed.
	refused, suspect bool
	// wait is the header Retry-After.
	wait string
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
	var sent atomic.Bool
	request = request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { sent.Store(false) },
		WroteHeaders: func() { sent.Store(true) },
	}))
	response, err := s.client.Do(request)
	if err != nil {
		s.client.CloseIdleConnections() // The way may be broken in a way that this host does not notice.
		return answer{err: s.explain(ctx, err), suspect: sent.Load()}
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, readMost) // The status says enough.
	return answerOf(response)
}

// settings are the statuses that mean that something must be set, with where to look. The events are not the reason, so that they wait.
var settings = map[int]string{
	http.StatusUnauthorized:       "check --notify-token-file and --notify-client-cert-file",
	http.StatusForbidden:          "check --notify-token-file and --notify-client-cert-file",
	http.StatusNotFound:           "check the path of --notify-url",
	http.StatusProxyAuthRequired:  "check the proxy in the variable HTTPS_PROXY",
	http.StatusMisdirectedRequest: "check the host of --notify-url",
	http.StatusTooEarly:           "check whether a proxy before the receiver uses early data",
}

// answerOf says what a status means.
func answerOf(r *http.Response) answer {
	a := answer{wait: r.Header.Get("Retry-After"), err: fmt.Errorf("the receiver answered %s", status(r))}
	look, setting := settings[r.StatusCode]
	switch code := r.StatusCode; {
	case code >= 200 && code < 300:
		return answer{}
	case code >= 300 && code < 400:
		a.err = fmt.Errorf("the receiver answered %s and redirects to %s. Winnow follows no redirect, because its credentials would follow too: "+
			"set --notify-url to the right address", status(r), redirected(r))
	case setting:
		a.err = fmt.Errorf("the receiver answered %s: %s", status(r), look)
	case code == http.StatusTooManyRequests:
	case code == http.StatusRequestTimeout, code >= 500:
		a.suspect = true
	default:
		a.refused = true
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
	untrusted, invalid := (*tls.CertificateVerificationError)(nil), x509.CertificateInvalidError{}
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		// The error itself has the time of now, so that it would be logged each time.
		return fmt.Errorf("the certificate of the receiver has expired, or is not valid yet: it is for %s to %s. Renew it, or correct the clock "+
			"of the node", invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
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
