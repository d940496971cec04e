// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/platforms"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	// contentsNamespaces is in how many namespaces there are ConfigMaps and Secrets.
	contentsNamespaces = 4
	// contentsTTL is for how long they are kept after their last use.
	contentsTTL = 2 * time.Second
	// contentsPace is how often a pair of them is created.
	contentsPace = 800 * time.Millisecond
	// contentsLabel is on those that may go. The others stay until their creator deletes them.
	contentsLabel = "soak.winnow.dev/content"
)

// goneMost is how long an unused object may be there. Definitions come and go, and what refers to objects is not known before all
// of the objects of a new definition are listed, which is tried again after up to half a minute.
var goneMost = 3 * time.Minute

// contents are ConfigMaps and Secrets, and what refers to them: objects of many kinds come and go, or refer to another one from then on.
type contents struct {
	driver   *driver
	governor *governor
	client   dynamic.Interface
	uses     *uses

	created, used, renamed, deleted atomic.Int64
}

func contentsNamespace(i int) string { return fmt.Sprint("contents-", i) }

// begin lets Winnow list everything, and writes the policies.
func (c *contents) begin(ctx context.Context) error {
	err := errors.Join(platforms.Grant(ctx, c.driver.kube, winnow.Namespace, "winnow", "*", "*"), platforms.Install(ctx, c.client, holders))
	for i := 0; i < contentsNamespaces && err == nil; i++ {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: contentsNamespace(i)}}
		if _, err = c.driver.kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return err
		}
		_, err = c.governor.gc.CleanupPolicies(ns.Name).Create(ctx, &v1alpha1.CleanupPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: policyName},
			Spec: v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
				Name: "unused", Resources: []string{"configmaps", "secrets"}, After: v1alpha1.AfterUnused,
				TTL: ptr(v1alpha1.TTL(contentsTTL.String())), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{contentsLabel: "yes"}},
			}}},
		}, metav1.CreateOptions{})
	}
	return err
}

// run creates pairs until the context ends, and returns when none is left.
func (c *contents) run(whole context.Context, r *rand.Rand, prefix string) error {
	ctx, stop := context.WithCancelCause(whole)
	defer stop(nil)
	ended, n := make(chan error), 0
	for ; poll.Pause(ctx, contentsPace) == nil; n++ {
		p := &pair{contents: c, namespace: contentsNamespace(n % contentsNamespaces), name: fmt.Sprintf("%s-%d", prefix, n)}
		life := rand.New(rand.NewPCG(r.Uint64(), 0))
		go func() {
			err := p.live(ctx, life)
			if err != nil && ctx.Err() == nil {
				stop(fmt.Errorf("%s/%s: %w", p.namespace, p.name, err))
			}
			ended <- p.end(context.WithoutCancel(ctx))
		}()
	}
	var err error
	for range n {
		err = errors.Join(err, <-ended)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, whole.Err()) {
		err = errors.Join(err, cause)
	}
	return err
}

// pair are two ConfigMaps or two Secrets, of which one object after the other uses the first, and some then the second.
type pair struct {
	*contents
	namespace, name string
	secrets, stays  bool
	both            [2]*unstructured.Unstructured
	referrer        *referrer // that is there, with its object
	object          *unstructured.Unstructured
}

// live creates both, lets some objects use them, and waits until Winnow has deleted them.
func (p *pair) live(ctx context.Context, r *rand.Rand) error {
	p.secrets, p.stays = r.IntN(2) == 0, r.IntN(10) == 0
	if r.IntN(3) == 0 { // A referrer may be there before what it refers to.
		if err := p.refer(ctx, r); err != nil {
			return err
		}
	}
	for i := range p.both {
		if err := p.create(ctx, i); err != nil {
			return err
		}
	}
	for range r.IntN(4) {
		if err := p.use(ctx, r); err != nil {
			return err
		}
	}
	if err := p.leave(ctx); err != nil || p.stays {
		return err
	}
	return poll.Until(ctx, goneMost, 3*time.Second, p.gone)
}

func (p *pair) contentName(i int) string { return fmt.Sprintf("%s-%d", p.name, i) }

func (p *pair) kind() contentKind {
	if p.secrets {
		return secretKind
	}
	return configMapKind
}

func (p *pair) create(ctx context.Context, i int) error {
	m := map[string]any{"name": p.contentName(i), "labels": map[string]any{contentsLabel: map[bool]any{true: "no", false: "yes"}[p.stays]}}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": p.kind().kind, "metadata": m}}
	sent := time.Now()
	err := p.request(ctx, func(ctx context.Context) (err error) {
		p.both[i], err = p.client.Resource(p.kind().resource).Namespace(p.namespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	p.created.Add(1)
	p.uses.created(p.key(i), p.stays, sent)
	return nil
}

func (p *pair) key(i int) string {
	return contentKey(p.kind().resource.Resource, p.namespace, p.contentName(i))
}

// use lets an object use the first, and perhaps the second instead after some time, and ends that.
func (p *pair) use(ctx context.Context, r *rand.Rand) error {
	if p.object == nil {
		if err := p.refer(ctx, r); err != nil {
			return err
		}
	}
	if err := poll.Pause(ctx, time.Duration(r.IntN(4000))*time.Millisecond); err != nil {
		return err
	}
	if p.referrer.changes && r.IntN(2) == 0 {
		if err := p.rename(ctx); err != nil {
			return err
		}
		if err := poll.Pause(ctx, time.Duration(r.IntN(4000))*time.Millisecond); err != nil {
			return err
		}
	}
	if err := p.leave(ctx); err != nil {
		return err
	}
	return poll.Pause(ctx, time.Duration(r.IntN(2500))*time.Millisecond)
}

// refer creates an object that uses the first.
func (p *pair) refer(ctx context.Context, r *rand.Rand) error {
	referrer := pick(r, referrers...)
	object := referrer.refersTo(p.name, p.kind(), p.contentName(0))
	var created *unstructured.Unstructured
	err := p.request(ctx, func(ctx context.Context) (err error) {
		created, err = p.client.Resource(referrer.resource).Namespace(p.namespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	p.used.Add(1)
	p.uses.begin(p.key(0), time.Now())
	p.referrer, p.object = referrer, created
	return nil
}

// rename updates the object so that it uses the second instead of the first.
func (p *pair) rename(ctx context.Context) error {
	object := p.referrer.refersTo(p.name, p.kind(), p.contentName(1))
	object.SetResourceVersion(p.object.GetResourceVersion())
	sent := time.Now()
	err := p.request(ctx, func(ctx context.Context) error {
		_, err := p.client.Resource(p.referrer.resource).Namespace(p.namespace).Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	p.renamed.Add(1)
	p.uses.end(p.key(0), sent)
	p.uses.begin(p.key(1), time.Now())
	return nil
}

// leave deletes the object, if there is one.
func (p *pair) leave(ctx context.Context) error {
	if p.object == nil {
		return nil
	}
	sent := time.Now()
	err := p.request(ctx, func(ctx context.Context) error {
		at := p.client.Resource(p.referrer.resource).Namespace(p.namespace)
		return at.Delete(ctx, p.object.GetName(), metav1.DeleteOptions{
			GracePeriodSeconds: ptr(int64(0)), PropagationPolicy: ptr(metav1.DeletePropagationBackground),
		})
	})
	if err != nil {
		return err
	}
	for i := range p.both {
		p.uses.end(p.key(i), sent)
	}
	p.object = nil
	return nil
}

// gone fails while one of both is there.
func (p *pair) gone(ctx context.Context) error {
	for i := range p.both {
		err := p.request(ctx, func(ctx context.Context) error {
			_, err := p.client.Resource(p.kind().resource).Namespace(p.namespace).Get(ctx, p.contentName(i), metav1.GetOptions{})
			return err
		})
		if err == nil {
			return fmt.Errorf("%s %s is still there", p.kind().kind, p.contentName(i))
		}
		if ignoreNotFound(err) != nil {
			return err
		}
	}
	p.deleted.Add(int64(len(p.both)))
	return nil
}

// end deletes what is left. What should stay must be there.
func (p *pair) end(ctx context.Context) error {
	if err := p.leave(ctx); err != nil {
		return err
	}
	for i, object := range p.both {
		if object == nil {
			continue
		}
		err := p.request(ctx, func(ctx context.Context) error {
			return p.client.Resource(p.kind().resource).Namespace(p.namespace).Delete(ctx, p.contentName(i), metav1.DeleteOptions{})
		})
		if p.stays && err != nil || ignoreNotFound(err) != nil {
			return fmt.Errorf("%s %s/%s: %w", p.kind().kind, p.namespace, p.contentName(i), err)
		}
	}
	return nil
}

// request sends a request, and again while the API server is too busy.
func (p *pair) request(ctx context.Context, send func(context.Context) error) error {
	return p.driver.request(ctx, func(sending context.Context) error {
		err := send(sending)
		for apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) {
			if err := poll.Pause(ctx, time.Second); err != nil {
				return err
			}
			err = send(sending)
		}
		return err
	})
}
