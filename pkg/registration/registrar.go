// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registration keeps the APIService, by which kube-apiserver sends requests for gc.winnow.dev to Winnow.
//
// An APIService that nobody answers for keeps every namespace of the cluster from being deleted, because the namespace controller cannot
// know that nothing of its API is left. So a Registrar, in every replica, creates it last, and takes it back if kube-apiserver does not
// reach Winnow; and a Guard, which runs beside them, withdraws it once no replica has answered for a while.
package registration

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/healthz"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	applyv1 "k8s.io/kube-aggregator/pkg/client/applyconfiguration/apiregistration/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/logonce"
	"github.com/winnow-dev/winnow/pkg/pki"
)

// Name is the name of the APIService.
const Name = "v1alpha1." + gc.GroupName

type ownerReference = applymetav1.OwnerReferenceApplyConfiguration

const (
	fieldManager = "winnow"
	every        = 5 * time.Second // how often the APIService is read
	// arriving is how long a new APIService may be unavailable before it is taken back. The next try is as long after that, and then each
	// twice as long as the last, up to pause.
	arriving, pause = time.Minute, 10 * time.Minute
)

// Config is what a Registrar works with.
type Config struct {
	APIServices apiregistration.APIServiceInterface
	// Namespace, Service and Port are where kube-apiserver reaches Winnow.
	Namespace, Service string
	Port               int32
	// Ask requests Winnow's API from kube-apiserver.
	Ask func(context.Context) error
	// Owner is the object with which the APIService goes; nil if there is none.
	Owner func(context.Context) (*ownerReference, error)
	// Leaving reports whether the namespace is being deleted.
	Leaving func(context.Context) (bool, error)
	// CAPEM returns the authorities by which kube-apiserver is to verify Winnow, and ServingCAPEM those that it needs for this replica.
	CAPEM, ServingCAPEM func() []byte
	// Leading reports whether this replica leads, and Ready why it should get no requests yet.
	Leading func() bool
	Ready   func(context.Context) error
	Clock   clock.PassiveClock
}

// Registrar keeps the APIService while its replica leads. In all replicas, it adds the authority of the replica's certificate to those that
// kube-apiserver trusts.
type Registrar struct {
	config  Config
	seen    atomic.Pointer[sight]
	uid     types.UID // of the APIService that was seen last
	created time.Time // since when this replica leads and this one is new and has not answered yet; zero if it has, or is not new
	paused  time.Duration
	next    time.Time // when this replica may create one
	absent  time.Time // since when there is none; zero if there is one
	owned   bool      // whether there was ever an owner
	errors  logonce.Errors
}

// sight is what was read last.
type sight struct {
	service *apiregistrationv1.APIService // nil if there is none
	trusted []*x509.Certificate           // of its caBundle
}

// New returns a Registrar, which Run starts.
func New(c Config) *Registrar { return &Registrar{config: c} }

// Trusted reports whether kube-apiserver verifies certificates with this authority, or does not send requests at all. It is false before
// Run has read the APIService.
func (r *Registrar) Trusted(authority *x509.Certificate) bool {
	seen := r.seen.Load()
	return seen != nil && (seen.service == nil || contains(seen.trusted, authority))
}

// Available reports whether kube-apiserver sends requests to Winnow, as it was last seen.
func (r *Registrar) Available() bool {
	seen := r.seen.Load()
	return seen != nil && seen.service != nil && available(seen.service)
}

// Readiness fails until kube-apiserver trusts the certificate of this replica.
func (r *Registrar) Readiness() healthz.HealthChecker {
	return healthz.NamedCheck("certificate-trusted", func(*http.Request) error {
		for _, authority := range parse(r.config.ServingCAPEM()) {
			if !r.Trusted(authority) {
				return fmt.Errorf("caBundle of APIService %s does not contain the authority of this replica's certificate yet", Name)
			}
		}
		return nil
	})
}

// Run keeps the APIService until ctx ends.
func (r *Registrar) Run(ctx context.Context) {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		r.errors.Log(ctx, r.check(ctx), "Cannot keep the APIService, trying again", "name", Name)
	}, every)
	leaveAtLast(ctx, r.config.APIServices, r.config.Leaving)
}

func (r *Registrar) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*every)
	defer cancel()
	if left, err := leave(ctx, r.config.APIServices, r.config.Leaving); left || err != nil {
		return err
	}
	service, err := r.config.APIServices.Get(ctx, Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading it: %w", err)
	}
	if err != nil {
		r.seen.Store(&sight{})
		return r.create(ctx)
	}
	r.absent = time.Time{}
	seen := &sight{service, parse(service.Spec.CABundle)}
	r.seen.Store(seen)
	r.recognize(service)
	if err := r.update(ctx, seen); err != nil {
		return ignoreConflict(err)
	}
	return ignoreConflict(r.takeBack(ctx, service))
}

// create creates the APIService if this replica is ready and leads, or if the one that leads has not done so for longer than it may pause.
func (r *Registrar) create(ctx context.Context) error {
	now := r.config.Clock.Now()
	if r.absent.IsZero() {
		r.absent = now
	}
	if now.Before(r.next) || !r.config.Leading() && now.Sub(r.absent) < pause+arriving {
		return nil
	}
	if err := r.config.Ready(ctx); err != nil {
		return fmt.Errorf("not creating it before this replica is ready: %w", err)
	}
	owner, err := r.owner(ctx)
	if err != nil {
		return err
	}
	if owner == nil && r.owned {
		return errors.New("not creating it, because the ClusterRole that owned it cannot be read any more: Winnow is being uninstalled")
	}
	if err := r.apply(ctx, nil, owner, r.config.CAPEM()); err != nil {
		return fmt.Errorf("creating it: %w", err)
	}
	klog.FromContext(ctx).Info("Created the APIService: kube-apiserver sends requests to Winnow", "name", Name)
	return nil
}

// owner returns the object with which the APIService goes, and remembers whether there was one.
func (r *Registrar) owner(ctx context.Context) (*ownerReference, error) {
	owner, err := r.config.Owner(ctx)
	r.owned = r.owned || owner != nil
	return owner, err
}

// recognize finds out whether an APIService is new. It may be one that another replica has created just before it ended. Who does not lead
// recognizes it anew at each look, and so has the whole time to reach it when it leads.
func (r *Registrar) recognize(service *apiregistrationv1.APIService) {
	if service.UID == r.uid && r.config.Leading() {
		return
	}
	r.uid, r.created = service.UID, time.Time{}
	if now := r.config.Clock.Now(); now.Sub(service.CreationTimestamp.Time) < pause {
		r.created = now
	}
}

// update adds missing authorities, on every replica, and repairs the rest on the one that leads.
func (r *Registrar) update(ctx context.Context, seen *sight) error {
	now, service, trusted := r.config.Clock.Now(), seen.service, seen.trusted
	bundle := union(parse(r.config.CAPEM()), pki.Unexpired(trusted, now))
	missing := slices.ContainsFunc(bundle, func(c *x509.Certificate) bool { return !contains(trusted, c) })
	if !missing && !r.config.Leading() {
		return nil
	}
	owner, err := r.owner(ctx)
	if err != nil {
		return err
	}
	if !missing && r.reachesWinnow(service) && owned(service, owner) {
		return nil
	}
	if err := r.apply(ctx, service, owner, pki.EncodeBundle(bundle)); err != nil {
		return fmt.Errorf("updating it: %w", err)
	}
	klog.FromContext(ctx).Info("Updated the APIService", "name", Name)
	return nil
}

// reachesWinnow reports whether the APIService leads to Winnow's Service, verified.
func (r *Registrar) reachesWinnow(service *apiregistrationv1.APIService) bool {
	to := service.Spec.Service
	return to != nil && to.Namespace == r.config.Namespace && to.Name == r.config.Service &&
		to.Port != nil && *to.Port == r.config.Port && !service.Spec.InsecureSkipTLSVerify
}

// owned reports whether the APIService goes with its owner. If there is none, nothing is to be done about it.
func owned(service *apiregistrationv1.APIService, owner *ownerReference) bool {
	return owner == nil || slices.ContainsFunc(service.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == *owner.UID })
}

// apply writes the APIService over the one that was read; nil if there is none. RBAC can name what is created by server-side apply. It
// fails with a conflict if somebody else has written meanwhile.
func (r *Registrar) apply(ctx context.Context, read *apiregistrationv1.APIService, owner *ownerReference, bundle []byte) error {
	service := applyv1.APIService(Name).
		WithLabels(map[string]string{"app.kubernetes.io/part-of": "winnow"}).
		WithSpec(applyv1.APIServiceSpec().
			WithGroup(gc.GroupName).WithVersion(v1alpha1.SchemeGroupVersion.Version).WithGroupPriorityMinimum(1000).WithVersionPriority(15).
			WithCABundle(bundle...).WithInsecureSkipTLSVerify(false).
			WithService(applyv1.ServiceReference().WithNamespace(r.config.Namespace).WithName(r.config.Service).WithPort(r.config.Port)))
	if read != nil {
		service.WithResourceVersion(read.ResourceVersion)
	}
	switch {
	case owner != nil:
		service.WithOwnerReferences(owner)
	case read != nil: // Who cannot read the owner just now must not remove it.
		for _, o := range read.OwnerReferences {
			service.WithOwnerReferences(
				applymetav1.OwnerReference().WithAPIVersion(o.APIVersion).WithKind(o.Kind).WithName(o.Name).WithUID(o.UID))
		}
	}
	_, err := r.config.APIServices.Apply(ctx, service, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}

// takeBack deletes a new APIService if kube-apiserver does not reach Winnow.
func (r *Registrar) takeBack(ctx context.Context, service *apiregistrationv1.APIService) error {
	if r.created.IsZero() || !r.config.Leading() {
		return nil
	}
	var asked error
	if available(service) {
		asked = r.config.Ask(ctx)
	}
	if reached(service, asked) {
		r.created, r.paused = time.Time{}, 0
		return nil
	}
	now := r.config.Clock.Now()
	if now.Sub(r.created) < arriving {
		return nil
	}
	why := unavailable(service)
	if asked != nil {
		why = asked.Error()
	}
	if err := withdraw(ctx, r.config.APIServices, service); err != nil {
		return fmt.Errorf("deleting it, because kube-apiserver does not reach Winnow (%s): %w", why, err)
	}
	r.paused = min(max(2*r.paused, arriving), pause)
	r.created, r.next = time.Time{}, now.Add(r.paused)
	return fmt.Errorf("deleted it again, because kube-apiserver does not reach Winnow; the next try is in %s: %s", r.paused, why)
}

// ignoreConflict returns no error if somebody has written meanwhile, such as kube-apiserver its status: the next look is soon.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// withdraw deletes the APIService in the state that was read.
func withdraw(ctx context.Context, services apiregistration.APIServiceInterface, read *apiregistrationv1.APIService) error {
	return services.Delete(ctx, Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &read.UID, ResourceVersion: &read.ResourceVersion},
	})
}

func available(service *apiregistrationv1.APIService) bool {
	return slices.ContainsFunc(service.Status.Conditions, func(c apiregistrationv1.APIServiceCondition) bool {
		return c.Type == apiregistrationv1.Available && c.Status == apiregistrationv1.ConditionTrue
	})
}

// unavailable says why the APIService is not available, as kube-apiserver does.
func unavailable(service *apiregistrationv1.APIService) string {
	var why []error
	for _, c := range service.Status.Conditions {
		why = append(why, fmt.Errorf("%s: %s", c.Reason, c.Message))
	}
	if len(why) == 0 {
		return "kube-apiserver says nothing about it yet"
	}
	return errors.Join(why...).Error()
}

// parse returns the certificates of a bundle; none if it cannot be read.
func parse(pem []byte) []*x509.Certificate {
	certificates, _ := cert.ParseCertsPEM(pem)
	return certificates
}

func contains(certificates []*x509.Certificate, c *x509.Certificate) bool {
	return slices.ContainsFunc(certificates, c.Equal)
}

// union returns the certificates of both without repetitions.
func union(a, b []*x509.Certificate) []*x509.Certificate {
	var out []*x509.Certificate
	for _, c := range slices.Concat(a, b) {
		if !contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}
