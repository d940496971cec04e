// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	v1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/serverdate"
)

// quiet has no log.
var quiet = klog.NewContext(context.Background(), klog.Logger{})

// roundTrip answers without a server.
type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// secrets keeps one Secret as the API server does: writers need the state that they have read.
type secrets struct {
	v1.SecretInterface
	stored *corev1.Secret
	writes int
	err    error     // of every request, if any
	server time.Time // the Date of answers, if they have one
}

func (s *secrets) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*corev1.Secret, error) {
	if !s.server.IsZero() {
		answer := roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{Header: http.Header{"Date": {s.server.UTC().Format(http.TimeFormat)}}}, nil
		})
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://winnow", nil)
		if err != nil {
			return nil, err
		}
		if _, err := serverdate.NewReader(answer).RoundTrip(request); err != nil { //nolint:bodyclose // There is no body.
			return nil, err
		}
	}
	switch {
	case s.err != nil:
		return nil, s.err
	case s.stored == nil:
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), "winnow")
	}
	return s.stored.DeepCopy(), nil
}

func (s *secrets) Update(_ context.Context, secret *corev1.Secret, _ metav1.UpdateOptions) (*corev1.Secret, error) {
	if s.stored == nil || s.stored.ResourceVersion != secret.ResourceVersion {
		return nil, apierrors.NewConflict(corev1.Resource("secrets"), "winnow", errors.New("it has changed"))
	}
	return s.store(secret.Data), nil
}

func (s *secrets) Apply(_ context.Context, a *applycorev1.SecretApplyConfiguration, o metav1.ApplyOptions) (*corev1.Secret, error) {
	if s.stored != nil || o.Force || len(a.OwnerReferences) != 1 {
		return nil, apierrors.NewConflict(corev1.Resource("secrets"), "winnow", errors.New("owned by another manager"))
	}
	return s.store(a.Data), nil
}

func (s *secrets) store(data map[string][]byte) *corev1.Secret {
	s.writes++
	s.stored = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(s.writes)}, Data: data}
	return s.stored
}

func owner(context.Context) (*applymetav1.OwnerReferenceApplyConfiguration, error) {
	return applymetav1.OwnerReference().WithKind("Role").WithName("winnow:certificates"), nil
}

// replica is a Keeper whose Run is played by its test.
type replica struct {
	*Keeper
	leading bool
	wakes   int
	missed  int  // checks in a row
	ready   bool // whether clients have accepted it; before, they send it no requests
}

func (r *replica) Enqueue() { r.wakes++ }

// start starts a replica.
func start(t fataler, s *secrets, clock *clocktesting.FakeClock, l Lifetimes, leading bool, trusted func(*x509.Certificate) bool) *replica {
	t.Helper()
	r := &replica{leading: leading}
	var err error
	r.Keeper, err = New(quiet, Config{
		Secrets: s, Secret: "winnow", Owner: owner, Names: names, Lifetimes: l, Leading: func() bool { return r.leading }, Trusted: trusted,
		Instance: "replica", Clock: clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.AddListener(r)
	return r
}

type fataler interface {
	Helper()
	Fatal(...any)
}

func (r *replica) servesWith(s *secrets) bool {
	certPEM, keyPEM := r.CurrentCertKeyContent()
	return string(certPEM) == string(s.stored.Data[Certificate]) && string(keyPEM) == string(s.stored.Data[Key])
}

// TestSecret: replicas serve with what is in the Secret. The one that leads renews it, and replaces it when it is lost.
func TestSecret(t *testing.T) {
	s, clock := &secrets{}, clocktesting.NewFakeClock(noon)
	leader, follower := start(t, s, clock, defaults, true, everything), start(t, s, clock, defaults, false, everything)
	check := func(what string, replicas ...*replica) {
		t.Helper()
		for _, r := range replicas {
			if err := r.check(quiet); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		for _, r := range []*replica{leader, follower} {
			if !r.servesWith(s) {
				t.Errorf("%s: a replica serves with another certificate", what)
			}
		}
	}
	check("installed", leader, follower)
	if s.writes != 1 {
		t.Errorf("%d writes for one installation", s.writes)
	}
	clock.Step(5 * day)
	check("due", follower) // waits for the leader
	check("renewed", leader, follower)
	if s.writes != 2 || leader.wakes != 1 || follower.wakes != 1 {
		t.Errorf("%d writes; told %d and %d times of a new certificate", s.writes, leader.wakes, follower.wakes)
	}

	for name, lose := range map[string]func(){
		"deleted": func() { s.stored = nil },
		"emptied": func() { s.store(nil) },
		"garbled": func() { s.store(map[string][]byte{Certificate: []byte("x"), Key: []byte("y"), "note": []byte("mine")}) },
	} {
		before := string(leader.CAPEM())
		lose()
		if err := follower.check(quiet); err == nil || !strings.Contains(err.Error(), "the replica that leads will replace it") {
			t.Errorf("%s: a follower says %v", name, err)
		}
		check(name, leader, follower)
		if string(leader.CAPEM()) != before {
			t.Errorf("%s: the leader made another authority, though it knew the last one", name)
		}
	}
	if leader.wakes != 1 {
		t.Errorf("told %d times of a new certificate", leader.wakes)
	}
}

// TestStart: a replica that starts takes what it finds, whether it is due or not, and replaces what nobody could serve with.
func TestStart(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon.Add(6 * day))
	due := first(t).data
	for name, c := range map[string]struct {
		data   map[string][]byte
		writes int
	}{
		"due":             {due, 1},
		"without a key":   {map[string][]byte{Authorities: due[Authorities], Certificate: due[Certificate], Key: due[Key]}, 1},
		"not a thing":     {nil, 2},
		"not this server": {map[string][]byte{Authorities: []byte("-"), AuthorityKey: []byte("-"), Certificate: []byte("-"), Key: []byte("-")}, 2},
	} {
		s := &secrets{}
		s.store(c.data)
		r := start(t, s, clock, defaults, false, nothing)
		if s.writes != c.writes || !r.servesWith(s) {
			t.Errorf("%s: %d writes, want %d", name, s.writes, c.writes)
		}
	}
	failing := &secrets{err: apierrors.NewForbidden(corev1.Resource("secrets"), "winnow", errors.New("no"))}
	if _, err := New(t.Context(), Config{Secrets: failing, Secret: "winnow", Clock: clock}); err == nil || !strings.Contains(err.Error(), "reading Secret winnow") {
		t.Errorf("got %v", err)
	}
}

// TestReplacedSecret: a good Secret of another authority, from a backup perhaps, is served only when clients trust it.
func TestReplacedSecret(t *testing.T) {
	s, clock, trust := &secrets{}, clocktesting.NewFakeClock(noon), false
	r := start(t, s, clock, defaults, true, func(*x509.Certificate) bool { return trust })
	s.store(first(t).data)
	look := func() {
		if err := r.check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, trust = range []bool{false, true} {
		if look(); r.servesWith(s) {
			t.Error("served at once")
		}
		clock.Step(defaults.settling())
		if look(); r.servesWith(s) != trust {
			t.Errorf("trusted: %v; served: %v", trust, r.servesWith(s))
		}
		if !strings.Contains(string(r.CAPEM()), string(s.stored.Data[Authorities])) {
			t.Error("clients are not told of the authority")
		}
	}
}

// world is what TestRenewals draws: replicas with one Secret, and a client that learns late which authorities to trust.
type world struct {
	secrets  *secrets
	clock    *clocktesting.FakeClock
	replicas []*replica
	bundle   []*x509.Certificate // of the APIService
	client   []*x509.Certificate // what the client trusts, which is what the bundle was some time ago
}

var short = Lifetimes{Authority: 200 * time.Minute, Serving: 120 * time.Minute}

func (w *world) trusted(c *x509.Certificate) bool {
	for _, b := range w.bundle {
		if b.Equal(c) {
			return true
		}
	}
	return false
}

// register adds the authorities of a replica to the APIService, as a registrar does.
func (w *world) register(r *replica) {
	for _, c := range Parse(map[string][]byte{Authorities: r.CAPEM()}).authorities {
		if !w.trusted(c) {
			w.bundle = append(w.bundle, c)
		}
	}
}

// verified returns an error if the client does not accept a replica that is ready.
func (w *world) verified() error {
	for i, r := range w.replicas {
		certPEM, keyPEM := r.CurrentCertKeyContent()
		m := Parse(map[string][]byte{Certificate: certPEM, Key: keyPEM})
		err := verify(m, w.client, w.clock.Now())
		if r.ready = r.ready || err == nil; r.ready && err != nil {
			return fmt.Errorf("replica %d: %w", i, err)
		}
	}
	return nil
}

// event does something to the Secret or to the replicas, or nothing.
func (w *world) event(t *rapid.T) {
	switch rapid.IntRange(0, 7).Draw(t, "event") {
	case 0:
		w.secrets.stored = nil
	case 1:
		w.secrets.store(map[string][]byte{Certificate: []byte("?")})
	case 2:
		next := rapid.IntRange(0, 2).Draw(t, "leader")
		for i, r := range w.replicas {
			r.leading = i == next
		}
	case 3:
		i := rapid.IntRange(0, 2).Draw(t, "restarts")
		w.replicas[i] = start(t, w.secrets, w.clock, short, w.replicas[i].leading, w.trusted)
	}
}

// TestRenewals: whatever happens to the Secret and to replicas, the client accepts every replica at every time, certificates are renewed, and a
// few authorities at most are trusted.
func TestRenewals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{secrets: &secrets{}, clock: clocktesting.NewFakeClock(noon)}
		for i := range 3 {
			w.replicas = append(w.replicas, start(t, w.secrets, w.clock, short, i == 0, w.trusted))
			w.register(w.replicas[i])
		}
		w.client = w.bundle
		const step, steps = 5 * time.Minute, 60
		for i := range steps {
			if i%4 == 0 { // Replicas have the time to repair and to read it in between.
				w.event(t)
			}
			w.client = w.bundle
			w.clock.Step(step)
			for i, r := range w.replicas {
				if late := rapid.IntRange(0, 3).Draw(t, "late") == 0; late && r.missed < 1 {
					r.missed++
				} else {
					r.missed = 0
					_ = r.check(quiet) // A follower may find the Secret lost.
					w.register(w.replicas[i])
				}
			}
			if err := w.verified(); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(w.bundle); n < 2 || n > 4 { // one every 133 minutes or so
			t.Errorf("there have been %d authorities", n)
		}
	})
}

// TestWrongClock: a kube-apiserver whose clock is wrong has certificates renewed, but in a way that the others accept. A replica keeps what is
// valid by its own clock until the clients trust, and can use, what follows.
func TestWrongClock(t *testing.T) {
	for name, wrong := range map[string]time.Duration{
		"ahead by days": 14 * day, "ahead by years": 3 * 365 * day, "behind by days": -14 * day, "behind by years": -3 * 365 * day,
	} {
		t.Run(name, func(t *testing.T) {
			s, clock, trust := &secrets{}, clocktesting.NewFakeClock(noon), false
			trusted := func(*x509.Certificate) bool { return trust }
			r := start(t, s, clock, defaults, true, trusted)
			first, _ := r.CurrentCertKeyContent()
			s.server = noon.Add(wrong) // Nothing that there is, is valid there.
			if err := r.check(quiet); err != nil {
				t.Fatal(err)
			}
			if now, _ := r.CurrentCertKeyContent(); string(now) != string(first) {
				t.Error("serves with what nobody trusts yet, though the last certificate is valid elsewhere")
			}
			trust = true
			for range 3 {
				clock.Step(time.Minute)
				s.server = s.server.Add(time.Minute)
				if err := r.check(quiet); err != nil {
					t.Fatal(err)
				}
			}
			writes := s.writes
			if err := r.check(quiet); err != nil || s.writes != writes {
				t.Errorf("written again, though nothing is due: %v", err)
			}
			now, _ := r.CurrentCertKeyContent()
			m := Parse(s.stored.Data)
			if string(now) == string(first) || !r.servesWith(s) {
				t.Error("the certificate was not renewed")
			}
			for _, at := range []time.Time{clock.Now(), s.server} {
				if err := verify(m, m.authorities, at); err != nil {
					t.Errorf("at %s: %v", at, err)
				}
			}
		})
	}
}
