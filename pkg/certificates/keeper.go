// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	v1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/logonce"
	"github.com/winnow-dev/winnow/pkg/pki"
	"github.com/winnow-dev/winnow/pkg/serverdate"
)

// Config is what a Keeper works with.
type Config struct {
	// Secrets reads and writes the Secrets of Winnow's namespace, by a client with a serverdate.Reader.
	Secrets v1.SecretInterface
	// Secret is the name of the Secret. It need not exist.
	Secret string
	// Owner is the object with which the Secret goes; nil if there is none.
	Owner func(context.Context) (*applymetav1.OwnerReferenceApplyConfiguration, error)
	// Names are the DNS names of the serving certificate.
	Names     []string
	Lifetimes Lifetimes
	// Leading reports whether this replica renews.
	Leading func() bool
	// Trusted reports whether the clients of this server trust an authority; true while there are no clients.
	Trusted func(*x509.Certificate) bool
	// Instance names this replica, different from all others.
	Instance string
	Clock    clock.PassiveClock
}

// every is how often the Secret is read.
func (c Config) every() time.Duration {
	return min(10*time.Second, c.Lifetimes.Serving/20, c.Lifetimes.Authority/20)
}

// Keeper serves with the certificate in the Secret, and renews it while this replica leads. It is a
// dynamiccertificates.CertKeyContentProvider, whose Run the server calls.
type Keeper struct {
	config Config

	served
	stored Material // of the Secret, when it was last read or written, as far as it could be used; the lock of served protects it
	errors logonce.Errors
	signer trust // in the authority that signs now
	issuer trust // in the one that has signed what is in the Secret
}

var (
	_ dynamiccertificates.CertKeyContentProvider = &Keeper{}
	_ dynamiccertificates.ControllerRunner       = &Keeper{}
)

// New returns a Keeper that can serve: it reads the Secret, and creates or repairs it if it must.
func New(ctx context.Context, c Config) (*Keeper, error) {
	k := &Keeper{config: c}
	err := k.check(ctx)
	for apierrors.IsConflict(err) { // Another replica was faster.
		err = k.check(ctx)
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Name implements dynamiccertificates.CertKeyContentProvider.
func (k *Keeper) Name() string { return "Secret " + k.config.Secret }

// CAPEM are the authorities that clients should trust: the authorities in the Secret, and the authority of the certificate that this
// replica serves with.
func (k *Keeper) CAPEM() []byte {
	k.lock.Lock()
	defer k.lock.Unlock()
	return append(k.stored.CAPEM(), k.serving.CAPEM()...)
}

// ServingCAPEM are the authorities of what this replica serves with.
func (k *Keeper) ServingCAPEM() []byte {
	k.lock.Lock()
	defer k.lock.Unlock()
	return pki.EncodeBundle([]*x509.Certificate{k.serving.issuer()})
}

// RunOnce implements dynamiccertificates.ControllerRunner. New has done it.
func (k *Keeper) RunOnce(context.Context) error { return nil }

// Run follows the Secret until ctx ends.
func (k *Keeper) Run(ctx context.Context, _ int) {
	_ = wait.PollUntilContextCancel(ctx, k.config.every(), false, func(ctx context.Context) (bool, error) {
		k.errors.Log(ctx, k.check(ctx), "Cannot keep the serving certificate, trying again and serving with the last one")
		return false, nil
	})
}

// check reads the Secret, takes over what is new in it, and renews what is due.
func (k *Keeper) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	now := k.config.Clock.Now()
	t := Times{Server: now, Local: now}
	secret, err := k.config.Secrets.Get(serverdate.With(ctx, &t.Server), k.config.Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret = nil
	} else if err != nil {
		return fmt.Errorf("reading %s: %w", k.Name(), err)
	}
	material := Material{}
	if secret != nil {
		material = Parse(secret.Data)
	}
	lost := secret == nil || material.Err() != nil
	serves := k.serving.serving != nil
	if lost && serves {
		material = k.stored // This replica still knows what was there.
	}
	k.observeSigner(material, now)
	switch {
	case k.config.Leading(), !serves && material.unusable(k.config.Names, t.Server) != "":
		if material, err = k.renew(ctx, secret, material, lost, t); err != nil {
			return err
		}
	case lost && serves:
		err = fmt.Errorf("%s is missing or cannot be read; the replica that leads will replace it", k.Name())
	}
	k.adopt(ctx, material, t)
	return err
}

// renew writes what is due into the Secret, or all if it is lost, and returns what the Secret then holds. Read is the Secret as it was
// read; nil if there was none.
func (k *Keeper) renew(ctx context.Context, read *corev1.Secret, m Material, lost bool, t Times) (Material, error) {
	settled := func(c *x509.Certificate) bool {
		return k.signer.settled(c, k.config.Lifetimes.settling(), t.Local)
	}
	next, changes, err := Renew(m, k.config.Names, k.config.Lifetimes, t, settled)
	if err != nil {
		return m, fmt.Errorf("renewing %s: %w", k.Name(), err)
	}
	if !lost && len(changes) == 0 {
		return m, nil
	}
	if err := k.write(ctx, read, next); err != nil {
		return m, fmt.Errorf("writing %s: %w", k.Name(), err)
	}
	for _, change := range changes {
		klog.FromContext(ctx).Info("Made a new "+change.What, "secret", k.config.Secret, "because", change.Why)
	}
	return next, nil
}

// observeSigner notes whether the clients trust the authority that signs now. Every replica does, because it may lead next.
func (k *Keeper) observeSigner(m Material, now time.Time) {
	var signer *x509.Certificate
	if m.signer != nil {
		signer = m.signer.Certificate
	}
	k.signer.observe(signer, k.config.Trusted, now)
}

// write puts the material into the Secret, of which somebody has read this state; nil if there is none. It fails with a conflict if another
// replica was faster.
func (k *Keeper) write(ctx context.Context, read *corev1.Secret, m Material) error {
	if read != nil {
		secret := read.DeepCopy()
		secret.Data = m.data
		_, err := k.config.Secrets.Update(ctx, secret, metav1.UpdateOptions{})
		return err
	}
	// RBAC cannot name what is created by POST. Nor is the field manager shared, so that two replicas conflict.
	secret := applycorev1.Secret(k.config.Secret, "").WithType(corev1.SecretTypeTLS).WithData(m.data).
		WithLabels(map[string]string{"app.kubernetes.io/part-of": "winnow"})
	owner, err := k.config.Owner(ctx)
	if err != nil {
		return err
	}
	if owner != nil {
		secret.WithOwnerReferences(owner)
	}
	_, err = k.config.Secrets.Apply(ctx, secret, metav1.ApplyOptions{FieldManager: k.config.Instance})
	return err
}

// adopt serves with the material, unless the clients have not accepted it for long enough and can still use the last one.
func (k *Keeper) adopt(ctx context.Context, m Material, t Times) {
	k.lock.Lock()
	defer k.lock.Unlock()
	k.stored = m
	issuer := m.issuer()
	k.issuer.observe(issuer, k.config.Trusted, t.Local)
	settling := k.config.Lifetimes.settling()
	settled := k.issuer.settled(issuer, settling, t.Local) || k.signer.settled(issuer, settling, t.Local)
	unusable := func(m Material, now time.Time) bool { return m.unusable(k.config.Names, now) != "" }
	next := k.config.every() // Until the next look, what is served must last.
	lastServes := !unusable(k.serving, t.Server.Add(next)) || !unusable(k.serving, t.Local.Add(next))
	if issuer == nil || lastServes && (!settled || unusable(m, t.Server)) {
		return
	}
	k.serve(ctx, m)
}
