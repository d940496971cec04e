// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	applyv1 "k8s.io/kube-aggregator/pkg/client/applyconfiguration/apiregistration/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/pki"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	// quiet has no log.
	quiet = klog.NewContext(context.Background(), klog.Logger{})
)

// services keeps one APIService as kube-apiserver does, which writes its status too.
type services struct {
	apiregistration.APIServiceInterface
	stored   *apiregistrationv1.APIService
	writes   int
	answered bool  // by Winnow, when kube-apiserver asks
	err      error // of every request, if any
	now      func() time.Time
}

func (s *services) Get(context.Context, string, metav1.GetOptions) (*apiregistrationv1.APIService, error) {
	switch {
	case s.err != nil:
		return nil, s.err
	case s.stored == nil:
		return nil, apierrors.NewNotFound(apiregistrationv1.Resource("apiservices"), Name)
	}
	status := apiregistrationv1.ConditionFalse
	if s.answered {
		status = apiregistrationv1.ConditionTrue
	}
	s.stored.Status.Conditions = []apiregistrationv1.APIServiceCondition{{
		Type: apiregistrationv1.Available, Status: status, Reason: "FailedDiscoveryCheck", Message: "no route",
	}}
	return s.stored.DeepCopy(), nil
}

func (s *services) Apply(
	_ context.Context, a *applyv1.APIServiceApplyConfiguration, o metav1.ApplyOptions,
) (*apiregistrationv1.APIService, error) {
	if !o.Force || a.ResourceVersion != nil && (s.stored == nil || s.stored.ResourceVersion != *a.ResourceVersion) {
		return nil, apierrors.NewConflict(apiregistrationv1.Resource("apiservices"), Name, errors.New("it has changed"))
	}
	s.writes++
	service := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{
			Name: *a.Name, UID: types.UID(strconv.Itoa(s.writes)), ResourceVersion: strconv.Itoa(s.writes), CreationTimestamp: metav1.NewTime(s.now()),
		},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: *a.Spec.Group, Version: *a.Spec.Version, CABundle: a.Spec.CABundle,
			InsecureSkipTLSVerify: *a.Spec.InsecureSkipTLSVerify,
			Service:               &apiregistrationv1.ServiceReference{Namespace: *a.Spec.Service.Namespace, Name: *a.Spec.Service.Name, Port: a.Spec.Service.Port},
		},
	}
	for _, o := range a.OwnerReferences {
		service.OwnerReferences = append(service.OwnerReferences, metav1.OwnerReference{Kind: *o.Kind, Name: *o.Name, UID: *o.UID})
	}
	if s.stored != nil {
		service.UID, service.CreationTimestamp = s.stored.UID, s.stored.CreationTimestamp
	}
	s.stored = service
	return service, nil
}

func (s *services) Delete(_ context.Context, _ string, o metav1.DeleteOptions) error {
	if s.stored == nil {
		return apierrors.NewNotFound(apiregistrationv1.Resource("apiservices"), Name)
	}
	if p := o.Preconditions; p != nil && (*p.UID != s.stored.UID || *p.ResourceVersion != s.stored.ResourceVersion) {
		return apierrors.NewConflict(apiregistrationv1.Resource("apiservices"), Name, errors.New("it has changed"))
	}
	s.stored = nil
	return nil
}

// authority is a new one, valid for an hour from noon.
func authority(t *testing.T) (*x509.Certificate, []byte) {
	t.Helper()
	a, err := pki.NewAuthority("winnow-ca", noon, noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return a.Certificate, a.CertPEM()
}

// fixture is a Registrar whose Run is played by its test.
type fixture struct {
	*Registrar
	services *services
	clock    *clocktesting.FakeClock
	leading  bool
	ready    error
	asked    error // what kube-apiserver says when it is asked for Winnow's API
	owner    string
	leaving  bool
	caPEM    []byte
}

func newFixture(t *testing.T) *fixture {
	_, caPEM := authority(t)
	f := &fixture{
		services: &services{answered: true}, clock: clocktesting.NewFakeClock(noon), leading: true, caPEM: caPEM, owner: "role",
	}
	f.services.now = f.clock.Now
	f.restart()
	return f
}

// restart begins anew without memory, as another replica does.
func (f *fixture) restart() {
	own := func() []byte { return f.caPEM }
	f.Registrar = New(Config{
		APIServices: f.services, Namespace: "winnow-system", Service: "winnow", Port: 443,
		Owner: func(context.Context) (*ownerReference, error) {
			if f.owner == "" {
				return nil, nil
			}
			return applymetav1.OwnerReference().WithAPIVersion("v1").WithKind("ClusterRole").WithName("role").WithUID(types.UID(f.owner)), nil
		},
		Leaving: func(context.Context) (bool, error) { return f.leaving, nil },
		Ask:     func(context.Context) error { return f.asked },
		CAPEM:   own, ServingCAPEM: own,
		Leading: func() bool { return f.leading }, Ready: func(context.Context) error { return f.ready }, Clock: f.clock,
	})
}

// check looks, and returns the error in words.
func (f *fixture) look() string {
	if err := f.Registrar.check(quiet); err != nil {
		return err.Error()
	}
	return ""
}

// TestCreate: the APIService is created by the replica that leads, once it is ready, and again when somebody deletes it.
func TestCreate(t *testing.T) {
	f := newFixture(t)
	f.leading = false
	if f.look(); f.services.stored != nil {
		t.Error("created by a replica that does not lead")
	}
	f.leading, f.ready = true, errors.New("[-]storage failed")
	if why := f.look(); f.services.stored != nil || !strings.Contains(why, "not creating it before this replica is ready: [-]storage failed") {
		t.Errorf("created by a replica that is not ready: %q", why)
	}
	f.ready = nil
	for range 2 {
		if why := f.look(); why != "" || f.services.stored == nil {
			t.Fatalf("not created: %q", why)
		}
		spec, owners := f.services.stored.Spec, f.services.stored.OwnerReferences
		if spec.Group != "gc.winnow.dev" || spec.Version != "v1alpha1" || spec.Service.Name != "winnow" || *spec.Service.Port != 443 || len(spec.CABundle) == 0 {
			t.Errorf("created: %+v", spec)
		}
		if len(owners) != 1 || owners[0].UID != "role" {
			t.Errorf("its owners: %+v", owners)
		}
		f.services.stored = nil
	}
}

// TestAuthorities: every replica adds the authority of its certificate to those that are trusted, and removes only what has expired.
func TestAuthorities(t *testing.T) {
	f := newFixture(t)
	first := parse(f.caPEM)[0]
	if f.Trusted(first) || f.Readiness().Check(nil) == nil {
		t.Error("trusted before anything is known")
	}
	if f.look(); !f.Trusted(first) || f.Readiness().Check(nil) != nil {
		t.Error("not trusted while there is no APIService")
	}
	var second *x509.Certificate
	second, f.caPEM = authority(t)
	f.leading = false
	f.look()
	if f.look(); !f.Trusted(first) || !f.Trusted(second) || !f.Available() {
		t.Errorf("trusted: %d authorities", len(parse(f.services.stored.Spec.CABundle)))
	}
	writes := f.services.writes
	if f.look(); f.services.writes != writes {
		t.Error("written though nothing was missing")
	}
	f.clock.Step(2 * time.Hour) // Both have expired, and a third one comes.
	third, err := pki.NewAuthority("winnow-ca", f.clock.Now(), f.clock.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	f.caPEM = third.CertPEM()
	f.look()
	if got := parse(f.services.stored.Spec.CABundle); len(got) != 1 || !got[0].Equal(third.Certificate) {
		t.Errorf("%d authorities are trusted", len(got))
	}
}

// TestRepair: the replica that leads repairs what leads elsewhere, or is not verified.
func TestRepair(t *testing.T) {
	port := int32(8443)
	for name, spoil := range map[string]func(*apiregistrationv1.APIServiceSpec){
		"another namespace": func(s *apiregistrationv1.APIServiceSpec) { s.Service.Namespace = "elsewhere" },
		"another Service":   func(s *apiregistrationv1.APIServiceSpec) { s.Service.Name = "other" },
		"another port":      func(s *apiregistrationv1.APIServiceSpec) { s.Service.Port = &port },
		"no Service":        func(s *apiregistrationv1.APIServiceSpec) { s.Service = nil },
		"not verified":      func(s *apiregistrationv1.APIServiceSpec) { s.InsecureSkipTLSVerify = true },
	} {
		f := newFixture(t)
		f.look()
		spoil(&f.services.stored.Spec)
		f.leading = false
		if f.look(); f.services.writes != 1 {
			t.Errorf("%s: written by a replica that does not lead", name)
		}
		f.leading = true
		if f.look(); !f.reachesWinnow(f.services.stored) {
			t.Errorf("%s: not repaired", name)
		}
	}
}

// TestOwner: the owner is repaired, and who cannot read it does not remove it.
func TestOwner(t *testing.T) {
	f := newFixture(t)
	f.owner = ""
	f.look()
	for _, step := range []struct{ owner, want string }{{"", ""}, {"role", "role"}, {"", "role"}, {"new-role", "new-role"}} {
		f.owner = step.owner
		_, f.caPEM = authority(t) // so that it is written in any case
		f.look()
		got := ""
		for _, o := range f.services.stored.OwnerReferences {
			got += string(o.UID)
		}
		if got != step.want {
			t.Errorf("with %q, it is owned by %q", step.owner, got)
		}
	}
	writes := f.services.writes
	f.owner = "third-role"
	if f.look(); f.services.writes != writes+1 {
		t.Error("not written for the owner alone")
	}
}

// TestTakeBack: an APIService that kube-apiserver cannot follow is taken back after a minute, and tried again later and later. One that has
// answered is not.
func TestTakeBack(t *testing.T) {
	for name, spoil := range map[string]func(*fixture){
		"not available": func(f *fixture) { f.services.answered = false },
		"not trusted": func(f *fixture) {
			f.asked = fmt.Errorf("%w: x509: certificate signed by unknown authority", errUntrusted)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			spoil(f)
			f.look()
			for _, paused := range []time.Duration{1, 2, 4, 8, 10, 10} {
				f.look()
				f.clock.Step(arriving - time.Second)
				if why := f.look(); f.services.stored == nil {
					t.Fatalf("taken back too early: %q", why)
				}
				f.clock.Step(time.Second)
				why := f.look()
				if f.services.stored != nil || !strings.Contains(why, "the next try is in "+(paused*time.Minute).String()+": ") {
					t.Fatalf("not taken back: %q", why)
				}
				f.clock.Step(paused*time.Minute - time.Second)
				if f.look(); f.services.stored != nil {
					t.Error("tried again too early")
				}
				f.clock.Step(time.Second)
				if f.look(); f.services.stored == nil {
					t.Fatal("not tried again")
				}
			}
			f.services.answered, f.asked = true, nil
			f.look()
			f.services.answered = false
			f.clock.Step(time.Hour)
			if f.look(); f.services.stored == nil {
				t.Error("taken back though it has answered")
			}
		})
	}
}

// TestTakeBackOfAnother: a replica takes back what one before it has created just now, and not what is there for long.
func TestTakeBackOfAnother(t *testing.T) {
	for age, want := range map[time.Duration]bool{arriving: true, pause: false} {
		f := newFixture(t)
		f.services.answered = false
		f.look()
		f.clock.Step(age)
		f.restart()
		f.look()
		f.clock.Step(arriving)
		if f.look(); (f.services.stored == nil) != want {
			t.Errorf("created %s ago, taken back: %v", age, f.services.stored == nil)
		}
	}
}

// TestNewLeader: a replica that has seen an APIService when it was new, and leads much later, does not take it for new. One that leads soon has
// a whole minute to reach it.
func TestNewLeader(t *testing.T) {
	f := newFixture(t)
	f.look()
	f.restart()
	f.leading = false
	f.look()
	f.clock.Step(pause - time.Second)
	f.look()
	f.leading, f.services.answered = true, false
	if f.look(); f.services.stored == nil {
		t.Fatal("taken back at the first look")
	}
	f.leading = false
	f.clock.Step(time.Second)
	f.look()
	f.leading = true
	f.clock.Step(time.Hour)
	if f.look(); f.services.stored == nil {
		t.Error("an old one is taken back")
	}
}

// TestReachedByAnother: one kube-apiserver may reach Winnow, and the one that is asked may not.
func TestReachedByAnother(t *testing.T) {
	f := newFixture(t)
	f.asked = apierrors.NewServiceUnavailable("no route")
	f.look()
	f.look()
	f.clock.Step(arriving)
	if f.look(); f.services.stored == nil {
		t.Error("taken back though it is available")
	}
}

// TestLeaderNotReady: if the replica that leads does not create the APIService for longer than it may pause, another one does.
func TestLeaderNotReady(t *testing.T) {
	f := newFixture(t)
	f.leading = false
	f.look()
	f.clock.Step(pause + arriving - time.Second)
	if f.look(); f.services.stored != nil {
		t.Fatal("created too early")
	}
	f.clock.Step(time.Second)
	if f.look(); f.services.stored == nil {
		t.Fatal("not created")
	}
	f.look()
	f.services.stored = nil
	if f.look(); f.services.stored != nil {
		t.Error("created again at once")
	}
}

// TestUninstalled: once the ClusterRole that owned the APIService is gone, nobody creates one that nothing would delete.
func TestUninstalled(t *testing.T) {
	f := newFixture(t)
	f.look()
	f.services.stored, f.owner = nil, ""
	if why := f.look(); f.services.stored != nil || !strings.Contains(why, "Winnow is being uninstalled") {
		t.Errorf("created: %v; %q", f.services.stored != nil, why)
	}
	f.owner = "new-role"
	if f.look(); f.services.stored == nil {
		t.Error("not created for another installation")
	}
}

// TestNamespaceDeleted: while Winnow's namespace is being deleted, the APIService goes and does not come back.
func TestNamespaceDeleted(t *testing.T) {
	f := newFixture(t)
	f.look()
	f.leading, f.leaving = false, true
	for range 2 {
		if why := f.look(); f.services.stored != nil || why != "" {
			t.Errorf("it is there: %v; %q", f.services.stored != nil, why)
		}
		f.leading = true
	}
}

func TestUnreadable(t *testing.T) {
	f := newFixture(t)
	f.services.err = apierrors.NewForbidden(apiregistrationv1.Resource("apiservices"), Name, errors.New("no"))
	if why := f.look(); !strings.Contains(why, "reading it") || f.services.writes > 0 {
		t.Errorf("got %q", why)
	}
}
