// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deleter returns somebody who may write and delete policies, and has these rights.
func (p scope) deleter(name string, rights ...string) author {
	p.t.Helper()
	return p.writer(name, false, append([]string{
		"delete " + p.plural + ".gc.winnow.dev", "deletecollection " + p.plural + ".gc.winnow.dev",
	}, rights...)...)
}

// deletes tries every way to delete one policy, which a lack of these rights must forbid.
func (p scope) deletes(who author, name string, lacking ...string) {
	p.t.Helper()
	only := metav1.ListOptions{FieldSelector: "metadata.name=" + p.called(name)}
	for _, dry := range [][]string{{metav1.DryRunAll}, nil} {
		options := metav1.DeleteOptions{DryRun: dry}
		p.refusedFor(fmt.Sprintf("deletecollection of %s, dry run %q", name, dry), who.DeleteCollection(p.t.Context(), options, only), lacking...)
		if len(lacking) == 0 && dry == nil {
			return // It is gone.
		}
		p.refusedFor(fmt.Sprintf("delete of %s, dry run %q", name, dry), who.Delete(p.t.Context(), p.called(name), options), lacking...)
	}
	if _, err := p.client().Get(p.t.Context(), p.called(name), metav1.GetOptions{}); err != nil {
		p.t.Errorf("%s is gone: %v", name, err)
	}
}

// TestRightsToDelete: a user who may not delete what a policy keeps may not delete the policy, in whichever way. A policy that keeps
// nothing takes no rights.
func TestRightsToDelete(t *testing.T) {
	forEachKind(t, func(_ *testing.T, p scope) {
		jobs, pods := []string{"delete jobs.batch", "list jobs.batch"}, []string{"delete pods", "list pods"}
		nobody, ofPods := p.deleter("nobody"), p.deleter("pods", pods...)
		everybody := p.deleter("everybody", slices.Concat(jobs, pods)...)
		p.create("keeps-jobs", `{rules: [{name: a, resources: [jobs.batch], ttl: never}]}`)
		p.create("keeps-pods", `{rules: [{name: a, resources: [pods], ttl: 7d, activeDeadline: 1h}]}`)
		p.create("suspended", `{suspend: true, ttlAfterFinished: 1h}`)
		p.create("preview", `{mode: Preview, ttlAfterFinished: 1h}`)
		p.create("empty", `{annotationTTL: Ignore}`)

		p.deletes(nobody, "keeps-jobs", jobs...)
		p.deletes(nobody, "keeps-pods", pods...)
		p.deletes(nobody, "suspended", toDelete...)
		p.deletes(ofPods, "keeps-jobs", jobs...)
		p.deletes(ofPods, "suspended", jobs...)
		p.deletes(nobody, "preview")
		p.deletes(nobody, "empty")
		p.deletes(ofPods, "keeps-pods")
		p.deletes(everybody, "keeps-jobs")
		p.deletes(everybody, "suspended")
		p.expect("", p.where())
	})
}

// TestRightsToDeleteGuardrails: a user who may delete nothing may not delete a policy that stops or restrains everything either.
func TestRightsToDeleteGuardrails(t *testing.T) {
	t.Parallel()
	p := scoped(t, ofCluster)
	nobody := p.deleter("nobody")
	for name, spec := range map[string]string{
		"stop": `{guardrails: {suspendAll: true}}`, "bound": `{guardrails: {minTTL: 1h}}`, "holds": `{guardrails: {holdAbove: {objects: 0}}}`,
		"ceiling": `{guardrails: {ceilings: [{resources: [pods], maxObjects: 5000}]}}`,
	} {
		p.create(name, `{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+p.id+`}}, `+spec[1:])
		err := nobody.Delete(t.Context(), p.called(name), metav1.DeleteOptions{})
		p.refusedAtLeastFor(name, err, toDelete...)
		kubectl(t, p.on("delete", name)...)
	}
	p.create("preview", `{mode: Preview, guardrails: {suspendAll: true}}`)
	p.deletes(nobody, "preview")
}

// TestUnreadableIsDeletedByOperators: a policy that cannot be read holds everything, so its deletion takes the rights to everything.
func TestUnreadableIsDeletedByOperators(t *testing.T) {
	t.Parallel()
	p := scoped(t, ofNamespace)
	p.create("newer", `{mode: Preview}`)
	p.asANewerVersion("newer", `"mode"`, `"schedule":"0 3 * * *","mode"`)
	p.deletes(p.deleter("pods", toDelete...), "newer", "delete '*'", "list '*'")
	kubectl(t, p.on("delete", "newer")...)
}

// TestNobodyHindersControllers: a namespace goes with its policies, and the garbage collector deletes what has lost its owner, which an older
// version has stored.
func TestNobodyHindersControllers(t *testing.T) {
	t.Parallel()
	namespaced := scoped(t, ofNamespace)
	for name, spec := range map[string]string{
		"keeps": `{rules: [{name: a, ttl: never}]}`, "suspended": `{suspend: true, ttlAfterFinished: 1h}`, "ends": `{activeDeadline: 1h}`,
		"newer": `{ttlAfterFinished: 1h}`,
	} {
		namespaced.create(name, spec)
	}
	namespaced.asANewerVersion("newer", `"ttlAfterFinished"`, `"schedule":"0 3 * * *","ttlAfterFinished"`)
	kubectl(t, "delete", "namespace", namespaced.id, "--timeout=5m")

	for _, k := range []kind{ofNamespace, ofCluster} {
		t.Run(k.short, func(t *testing.T) {
			t.Parallel()
			scoped(t, k).isCollected()
		})
	}
}

// isCollected tries to create a policy with an owner, and waits until one that has lost its owner is gone.
func (p scope) isCollected() {
	p.t.Helper()
	owned := p.object("refused", `{ttlAfterFinished: 1h}`)
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "gone", UID: "1"}})
	_, err := p.client().Create(p.t.Context(), owned, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		p.t.Errorf("an owner is not refused: %v", err)
	} else {
		contains(p.t, err.Error(), "metadata.ownerReferences[0]: Forbidden: policies cannot have owners")
	}
	p.create("owned", `{rules: [{name: a, ttl: never}]}`)
	p.asANewerVersion("owned", `"metadata":{`,
		`"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"gone","uid":"4b7e2f6c-5d55-4a5c-8f0f-3f0d4d1c9a11"}],`)
	eventually(p.t, func(ctx context.Context) error {
		if _, err := p.client().Get(ctx, p.called("owned"), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the garbage collector has not deleted it: %v", err)
		}
		return nil
	})
}
