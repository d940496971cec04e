// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	ourvalidation "github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/plugin/explain"
	"github.com/winnow-dev/winnow/pkg/plugin/holds"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/records"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
	"github.com/winnow-dev/winnow/pkg/plugin/ui"
	"github.com/winnow-dev/winnow/pkg/version"
)

// uiSource answers the page with what the other commands do.
type uiSource struct {
	*session.Session
	// begin is the namespace of the first answers; if nil, all namespaces that the caller may list. home is the namespace of the kubeconfig.
	begin  *string
	home   string
	drafts local.Drafts

	// world is what was listed last, in which namespace, if this process decides; nil otherwise.
	lock   sync.Mutex
	world  *local.World
	listed string
}

var _ ui.Source = (*uiSource)(nil)

func newUISource(o *uiOptions, namespace string, drafts local.Drafts) *uiSource {
	s := &uiSource{Session: o.Session, home: namespace, drafts: drafts}
	switch {
	case o.allNamespaces:
		s.begin = new("")
	case o.Flags.Namespace != nil && *o.Flags.Namespace != "":
		s.begin = &namespace
	}
	return s
}

// decides returns a cluster, whether its server decides, and the warnings that it sends.
func (s *uiSource) decides(ctx context.Context) (*local.Cluster, bool, *session.Collected, error) {
	cluster, said, err := s.Collecting()
	if err != nil {
		return nil, false, nil, err
	}
	installed, err := cluster.Installed(ctx)
	if err != nil && s.drafts.Empty() {
		return nil, false, nil, fmt.Errorf("asking for the API of Winnow: %w", err)
	}
	return cluster, installed && s.drafts.Empty(), said, nil
}

// Place implements ui.Source.
func (s *uiSource) Place(ctx context.Context) (ui.Place, error) {
	cluster, err := s.Cluster()
	if err != nil {
		return ui.Place{}, err
	}
	installed, err := cluster.Installed(ctx)
	if err != nil && s.drafts.Empty() { // With drafts, this process decides, and a note says so.
		return ui.Place{}, fmt.Errorf("asking for the API of Winnow: %w", err)
	}
	names, may, err := cluster.Namespaces(ctx)
	if err != nil {
		return ui.Place{}, err
	}
	if may && installed {
		if may, err = cluster.May(ctx, "list", v1alpha1.Resource("cleanupcandidates"), ""); err != nil {
			return ui.Place{}, err
		}
	}
	out := ui.Place{Default: s.home, Namespaces: names, Winnow: installed, Drafts: !s.drafts.Empty(), Version: version.Get()}
	switch {
	case s.begin != nil:
		out.Namespace = *s.begin
	case !may:
		out.Namespace = s.home
	}
	out.Context, err = s.context()
	return out, err
}

// context returns the name of the context of the flags, or of the kubeconfig.
func (s *uiSource) context() (string, error) {
	if name := s.Flags.Context; name != nil && *name != "" {
		return *name, nil
	}
	raw, err := s.Flags.ToRawKubeConfigLoader().RawConfig()
	return raw.CurrentContext, err
}

// Read implements ui.Source.
func (s *uiSource) Read(ctx context.Context, namespace string, add func(*v1alpha1.CleanupCandidate, bool)) (ui.Reading, error) {
	if err := checkNamespace(namespace); err != nil {
		return ui.Reading{}, err
	}
	cluster, server, said, err := s.decides(ctx)
	if err != nil {
		return ui.Reading{}, err
	}
	if err := expectNamespace(ctx, cluster, namespace); err != nil {
		return ui.Reading{}, err
	}
	if server {
		s.remember(nil, "")
		err := readServer(ctx, cluster, namespace, add)
		return ui.Reading{Notes: said.Few()}, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	world, err := cluster.Read(ctx, local.Options{Namespace: namespace, Drafts: s.draftsIn(namespace), Now: now})
	if err != nil {
		return ui.Reading{}, err
	}
	s.remember(world, namespace)
	return ui.Reading{Notes: append(world.Notes(), said.Few()...), Finished: world.Finished()}, world.EachCandidate(ctx, add)
}

// remember remembers what was listed, so that an explanation need not list it again.
func (s *uiSource) remember(world *local.World, namespace string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.world, s.listed = world, namespace
}

// remembered returns what was listed last, if the namespace is in it; nil otherwise.
func (s *uiSource) remembered(namespace string) *local.World {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.listed != "" && s.listed != namespace {
		return nil
	}
	return s.world
}

// draftsIn returns the drafts that count in a namespace, or with "" in all.
func (s *uiSource) draftsIn(namespace string) local.Drafts {
	out := s.drafts
	if namespace != "" {
		out.Policies = nil
		for _, p := range s.drafts.Policies {
			if p.Namespace == namespace {
				out.Policies = append(out.Policies, p)
			}
		}
	}
	return out
}

// readServer reads the candidates of the server. What policies decide that are suspended is held when it is due.
func readServer(ctx context.Context, cluster *local.Cluster, namespace string, add func(*v1alpha1.CleanupCandidate, bool)) error {
	if err := expectMayList(ctx, cluster, "cleanupcandidates", namespace); err != nil {
		return err
	}
	own, all, _, err := cluster.Policies(ctx, namespace) // The page shows the notes with the policies.
	if err != nil {
		return err
	}
	suspended := sets.New[types.NamespacedName]()
	for i := range own {
		if p := &own[i]; stopped(p.Spec.Suspend, &p.Status) {
			suspended.Insert(types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
		}
	}
	for i := range all {
		if p := &all[i]; stopped(p.Spec.Suspend, &p.Status) {
			suspended.Insert(types.NamespacedName{Name: p.Name})
		}
	}
	return cluster.EachServerCandidate(ctx, namespace, func(c *v1alpha1.CleanupCandidate) {
		add(c, c.Status.DecidedBy != nil && suspended.Has(decider(c)))
	})
}

// decider names the policy that decides for a candidate.
func decider(c *v1alpha1.CleanupCandidate) types.NamespacedName {
	if c.Status.DecidedBy.Kind == gc.KindClusterCleanupPolicy {
		return types.NamespacedName{Name: c.Status.DecidedBy.Name}
	}
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Status.DecidedBy.Name}
}

// expectMayList fails if the caller may not list a resource of ours. The page asks first, so that the server never has to refuse it.
func expectMayList(ctx context.Context, cluster *local.Cluster, resource, namespace string) error {
	if may, err := cluster.May(ctx, "list", v1alpha1.Resource(resource), namespace); err != nil || may {
		return err
	}
	where := "-n " + namespace
	if namespace == "" {
		where = "--all-namespaces"
	}
	return apierrors.NewForbidden(v1alpha1.Resource(resource), "",
		fmt.Errorf("you may not list them: kubectl auth can-i list %s %s", v1alpha1.Resource(resource), where))
}

// expectNamespace fails if there is no such namespace, as far as the caller may know.
func expectNamespace(ctx context.Context, cluster *local.Cluster, name string) error {
	if name == "" {
		return nil
	}
	missing, err := cluster.MissingNamespace(ctx, name)
	if err != nil || !missing {
		return err
	}
	names, _, err := cluster.Namespaces(ctx)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("there is no namespace %q", name)
	if meant := ourvalidation.Nearest(name, names); meant != "" {
		text += fmt.Sprintf("; did you mean %q?", meant)
	}
	return apierrors.NewBadRequest(text)
}

// checkNamespace fails if a text is neither empty nor the name of a namespace.
func checkNamespace(name string) error {
	if name == "" {
		return nil
	}
	if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("%q is no namespace: %s", name, strings.Join(errs, "; ")))
	}
	return nil
}

// Explain implements ui.Source.
func (s *uiSource) Explain(ctx context.Context, o local.Object) (ui.Explanation, error) {
	if err := checkNamespace(o.Namespace); err != nil {
		return ui.Explanation{}, err
	}
	now := time.Now()
	candidate, lines, err := s.candidateOf(ctx, o, now)
	if err != nil {
		return ui.Explanation{}, err
	}
	var out ui.Explanation
	native, record, err := s.nativeOf(ctx, o, &out)
	switch {
	case err != nil:
		return ui.Explanation{}, err
	case record != nil:
		out.Words = *records.Words(record, now)
	default:
		e := explain.Explanation{Object: o, Candidate: candidate, Lines: lines, Native: native, Now: now}
		out.Words = *e.Words()
	}
	return out, nil
}

// candidateOf is like Candidate, but does not list again what was listed for the table.
func (s *uiSource) candidateOf(ctx context.Context, o local.Object, now time.Time) (*v1alpha1.CleanupCandidate, []string, error) {
	if world := s.remembered(o.Namespace); world != nil {
		return world.Candidate(ctx, o)
	}
	return s.Candidate(ctx, o, s.draftsIn(o.Namespace), now)
}

// nativeOf says what controllers of Kubernetes delete, if the caller may read the object, and into out how it is kept. If the object is
// gone, it returns the record of its deletion, as far as there is one.
func (s *uiSource) nativeOf(ctx context.Context, o local.Object, out *ui.Explanation) ([]string, *v1alpha1.CleanupRecord, error) {
	cluster, err := s.Cluster()
	if err != nil {
		return nil, nil, err
	}
	resource := schema.ParseGroupResource(o.Resource)
	if may, err := cluster.May(ctx, "get", resource, o.Namespace); err != nil {
		return nil, nil, err
	} else if !may {
		return []string{"you may not read the object, so this does not say what controllers of Kubernetes do"}, nil, nil
	}
	t, err := s.ObjectIn(o.Namespace, o.Resource, o.Name)
	if apierrors.IsNotFound(err) {
		record, err := s.recordOf(ctx, cluster, o)
		return []string{"the object is gone"}, record, err
	} else if err != nil {
		return nil, nil, err
	}
	if err := s.keptOf(ctx, t, out); err != nil {
		return nil, nil, err
	}
	native, err := s.Native(ctx, t)
	return native, nil, err
}

// Approve implements ui.Source.
func (s *uiSource) Approve(ctx context.Context, policy types.NamespacedName, ids []string) error {
	if err := checkNamespace(policy.Namespace); err != nil {
		return err
	}
	client, err := s.Winnow()
	if err != nil {
		return err
	}
	stored, err := holds.Read(ctx, client, policy)
	if err != nil {
		return err
	}
	waiting, err := stored.Waiting()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(waiting, func(h gc.PolicyHold) bool { return h.ID == id && h.Owner(policy) == policy }) {
			return apierrors.NewConflict(schema.ParseGroupResource(gc.PolicyResource(policy.Namespace)), policy.Name,
				fmt.Errorf("hold %q does not wait for approval by this policy any more; refresh the page", id))
		}
	}
	return holds.Approve(ctx, client, policy, ids)
}
