// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// cluster answers reviews: what Winnow may do, and what others may, as "user verb resource.group/name namespace".
type cluster struct {
	*fake.Clientset
	mu    sync.Mutex
	may   []string
	asked []string
	err   error
}

func newCluster(minor string, may ...string) *cluster {
	c := &cluster{
		Clientset: fake.NewClientset(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "cleaner"}}),
		may:       may,
	}
	c.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{Major: "1", Minor: minor}
	c.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		allowed, err := c.ask("winnow", review.Spec.ResourceAttributes)
		review.Status.Allowed = allowed
		return true, review, err
	})
	c.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		groups := []string{"system:serviceaccounts", "system:serviceaccounts:team-a", "system:authenticated"}
		if !slices.Equal(review.Spec.Groups, groups) {
			return true, nil, fmt.Errorf("asked for the groups %q", review.Spec.Groups)
		}
		allowed, err := c.ask(review.Spec.User, review.Spec.ResourceAttributes)
		review.Status.Allowed = allowed
		return true, review, err
	})
	return c
}

func (c *cluster) ask(user string, a *authorizationv1.ResourceAttributes) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	resource := a.Resource
	if a.Group != "" {
		resource += "." + a.Group
	}
	if a.Name != "" {
		resource += "/" + a.Name
	}
	line := strings.TrimSpace(strings.Join([]string{user, a.Verb, resource, a.Namespace}, " "))
	c.asked = append(c.asked, line)
	return slices.Contains(c.may, line), c.err
}

const (
	accountDeletes = "system:serviceaccount:team-a:cleaner delete jobs.batch team-a"
	accountGets    = "system:serviceaccount:team-a:cleaner get jobs.batch team-a"
	impersonates   = "winnow impersonate:serviceaccount serviceaccounts.authentication.k8s.io/cleaner"
	onDelete       = "winnow impersonate-on:serviceaccount:delete jobs.batch"
	onGet          = "winnow impersonate-on:serviceaccount:get jobs.batch"
	olderVerb      = "winnow impersonate serviceaccounts/cleaner"
)

var toDelete = deletion.Right{Verb: "delete", Resource: "jobs.batch", Namespace: "team-a", Account: "cleaner"}

// TestMissing: the first thing that is missing is named, with the commands that show and grant it.
func TestMissing(t *testing.T) {
	all := []string{accountDeletes, accountGets, impersonates, onDelete, onGet}
	without := func(line string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == line })
	}
	of := func(change func(*deletion.Right)) deletion.Right {
		right := toDelete
		change(&right)
		return right
	}
	for name, c := range map[string]struct {
		right deletion.Right
		minor string
		may   []string
		want  string // parts, separated by "|"
	}{
		"nothing": {toDelete, "37", all, ""},
		"nothing, in one namespace": {toDelete, "37", []string{
			accountDeletes, accountGets, impersonates + " team-a", onDelete + " team-a", onGet + " team-a",
		}, ""},
		"the account": {of(func(r *deletion.Right) { r.Account = "nobody" }), "37", all,
			"ServiceAccount team-a/nobody does not exist|kubectl create serviceaccount nobody -n team-a"},
		"the right to delete": {toDelete, "37", without(accountDeletes),
			"kubectl auth can-i delete jobs.batch -n team-a --as=system:serviceaccount:team-a:cleaner|" +
				"kubectl create rolebinding winnow-cleaner-cleaner --clusterrole=winnow-cleaner --serviceaccount=team-a:cleaner -n team-a"},
		"the right to read": {toDelete, "37", without(accountGets), "kubectl auth can-i get jobs.batch -n team-a --as="},
		"the right to delete a custom resource": {of(func(r *deletion.Right) { r.Resource = "workflows.argoproj.io" }), "37", all,
			"--verb=get,delete --resource=workflows.argoproj.io"},
		"impersonation": {toDelete, "37", without(impersonates),
			"Winnow may not act as ServiceAccount team-a/cleaner|impersonate:serviceaccount on serviceaccounts.authentication.k8s.io|" +
				"add cleaner to resourceNames in artifacts/optional/accounts.yaml"},
		"impersonation for DELETE": {toDelete, "37", without(onDelete), "can-i impersonate-on:serviceaccount:delete jobs.batch -n team-a"},
		"impersonation for GET":    {toDelete, "37", without(onGet), "can-i impersonate-on:serviceaccount:get jobs.batch -n team-a"},
		"the older verb suffices":  {toDelete, "37", []string{accountDeletes, accountGets, olderVerb}, ""},
		"the older verb":           {toDelete, "34", []string{accountDeletes, accountGets, olderVerb}, ""},
		"only the older verb counts": {toDelete, "34+", all,
			"Kubernetes 1.34+ has only the verb impersonate for that|accounts-before-1.36.yaml"},
		"Winnow's own": {of(func(r *deletion.Right) { r.Account = "" }), "37", []string{"winnow delete jobs.batch team-a"}, ""},
		"Winnow's own, missing": {of(func(r *deletion.Right) { r.Account = "" }), "37", all,
			"Winnow may not delete them. Missing permission: kubectl auth can-i delete jobs.batch -n team-a"},
		"Winnow's own, for copies": {deletion.Right{Verb: "get", Resource: "configmaps", Namespace: "team-a"}, "37", all,
			"Winnow may not read them. Missing permission: kubectl auth can-i get configmaps -n team-a"},
		"Winnow's own, for deadlines": {deletion.Right{Verb: "patch", Resource: "jobs.batch", Namespace: "team-a"}, "37", all,
			"Winnow may not set their activeDeadlineSeconds|artifacts/optional/deadlines.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			a := New(newCluster(c.minor, c.may...), clock.RealClock{})
			got, err := a.Missing(t.Context(), c.right)
			if err != nil {
				t.Fatal(err)
			}
			if (got == "") != (c.want == "") {
				t.Errorf("got %q", got)
			}
			for part := range strings.SplitSeq(c.want, "|") {
				if !strings.Contains(got, part) {
					t.Errorf("got %q, want %q", got, part)
				}
			}
		})
	}
}

// TestNoAnswer: what the API server does not answer is not known, and asked again.
func TestNoAnswer(t *testing.T) {
	c := newCluster("37", accountDeletes, accountGets, olderVerb)
	c.err = errors.New("no answer")
	a := New(c, clock.RealClock{})
	if missing, err := a.Missing(t.Context(), toDelete); err == nil || missing != "" {
		t.Errorf("got %q, %v", missing, err)
	}
	c.err = nil
	if missing, err := a.Missing(t.Context(), toDelete); err != nil || missing != "" {
		t.Errorf("got %q, %v", missing, err)
	}
}

// TestAccountsThatWinnowMayNotSee: it is told how to let Winnow see them.
func TestAccountsThatWinnowMayNotSee(t *testing.T) {
	c := newCluster("37", accountDeletes, accountGets, olderVerb)
	c.PrependReactor("get", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("serviceaccounts"), "cleaner", errors.New("no"))
	})
	got, err := New(c, clock.RealClock{}).Missing(t.Context(), toDelete)
	if err != nil || !strings.Contains(got, "Winnow may not see whether ServiceAccount team-a/cleaner exists") {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestAnswersAreRemembered for ten seconds, and those for all namespaces in all of them.
func TestAnswersAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("37", accountDeletes, accountGets, impersonates, onDelete, onGet)
		a := New(c, clock.RealClock{})
		ask := func() int {
			c.asked = nil
			if missing, err := a.missing(t.Context(), toDelete, rememberFor); missing != "" || err != nil {
				t.Fatal(missing, err)
			}
			return len(c.asked)
		}
		first := ask()
		time.Sleep(rememberFor - 1)
		if again := ask(); again != 0 {
			t.Errorf("asked %d times again: %q", again, c.asked)
		}
		time.Sleep(time.Nanosecond)
		if later := ask(); later != first {
			t.Errorf("asked %d times later, and %d times at first", later, first)
		}
	})
}

// TestRefusedAfterAnAnswer: a request was refused although the right was there a moment ago. It is asked for again, but not for each of many
// refusals.
func TestRefusedAfterAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("37", accountDeletes, accountGets, impersonates, onDelete, onGet)
		a := New(c, clock.RealClock{})
		if missing, err := a.missing(t.Context(), toDelete, rememberFor); missing != "" || err != nil {
			t.Fatal(missing, err)
		}
		time.Sleep(newFor)
		c.may, c.asked = nil, nil
		for range 3 {
			if missing, err := a.Missing(t.Context(), toDelete); !strings.Contains(missing, "may not delete jobs.batch") || err != nil {
				t.Errorf("got %q, %v", missing, err)
			}
		}
		if len(c.asked) != 1 {
			t.Errorf("asked %q", c.asked)
		}
	})
}

// needs is a tracker that needs some rights.
type needs struct {
	wake  chan struct{}
	mu    sync.Mutex
	ask   []deletion.Right
	again int
	got   map[deletion.Right]string
}

func (n *needs) RightsNeeded() <-chan struct{} { return n.wake }

func (n *needs) RightsToAsk(most int) []deletion.Right {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.ask[:min(most, len(n.ask))]
	n.ask = n.ask[len(out):]
	return out
}

func (n *needs) AskAgain(time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.again++
}

func (n *needs) SetRight(right deletion.Right, missing string, _ time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.got[right] = missing
}

// need needs rights, and waits until they were asked for.
func (n *needs) need(rights ...deletion.Right) {
	n.check(func() { n.ask = rights })
	n.wake <- struct{}{}
	synctest.Wait()
}

// check looks at the needs with the lock.
func (n *needs) check(look func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	look()
}

// TestRun: what is needed is asked for at once, and old answers every few seconds. One that fails is left out.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("37", accountDeletes, accountGets, olderVerb)
		n := &needs{wake: make(chan struct{}, 1), got: map[deletion.Right]string{}}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { New(c, clock.RealClock{}).Run(ctx, n, clock.RealClock{}) })
		synctest.Wait()
		n.need(slices.Repeat([]deletion.Right{toDelete}, 2*askMost+1)...)
		n.check(func() {
			if missing, ok := n.got[toDelete]; !ok || missing != "" || len(n.ask) > 0 {
				t.Errorf("got %q, %t, and %d are left", missing, ok, len(n.ask))
			}
		})
		time.Sleep(2*askAgainEvery + time.Second)
		n.check(func() {
			if n.again != 2 {
				t.Errorf("looked for old answers %d times", n.again)
			}
		})
		c.mu.Lock()
		c.err = errors.New("no answer")
		c.mu.Unlock()
		other := deletion.Right{Verb: "delete", Resource: "pods", Namespace: "team-a", Account: "cleaner"}
		n.need(other)
		n.check(func() {
			if _, ok := n.got[other]; ok {
				t.Error("without an answer, one was set")
			}
		})
		stop()
		running.Wait()
	})
}
