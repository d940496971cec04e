// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/winnow"
)

// TestUnusedReadings: before a DELETE, all referrers are read consistently. The tests of one replica behind a proxy share it.
func TestUnusedReadings(t *testing.T) {
	proxy, _ := behindProxy(t)
	grantReferrers(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *winnow.Proxy)
	}{
		{"Frozen", testUnusedFrozen}, {"Late", testUnusedLate}, {"Slow", testUnusedSlow}, {"Large", testUnusedLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Cleanup(func() { proxy.Before(func(*http.Request) {}) })
			c.test(t, proxy)
		})
	}
}

// testUnusedFrozen: a Pod that the watch does not report keeps its ConfigMap.
func testUnusedFrozen(t *testing.T, proxy *winnow.Proxy) {
	ns := newNamespace(t)
	for _, name := range []string{"mounted", "free"} {
		createConfigMap(t, ns, name)
	}
	createUnusedPolicy(t, ns, unusedAfter("1h"))
	unusedSince(t, ns, "configmaps/mounted")
	thaw := proxy.Freeze("pods")
	t.Cleanup(thaw)
	createPod(t, ns, mounting("late", "mounted"))
	unused := map[string]time.Time{"configmaps/free": time.Now()} // since when Winnow may delete it
	shorten(t, ns)
	want := []string{"configmaps/free p/unused"}
	expectDeletions(t, ns, want...)
	waitReason(t, ns, "configmaps/mounted", "Retrying", "an object of pods refers to it")
	thaw()
	waitReason(t, ns, "configmaps/mounted", "InUse", "pods/late refers to it")
	expectDeletions(t, ns, want...)
	unused["configmaps/mounted"] = deletePod(t, ns, "late")
	expectDeletions(t, ns, append(want, "configmaps/mounted p/unused")...)
	expectReadBefore(t, ns, unused)
}

// testUnusedLate: a Pod that is created between the reading and the DELETE is too late. This is the bound of what Winnow promises.
func testUnusedLate(t *testing.T, proxy *winnow.Proxy) {
	ns := newNamespace(t)
	createConfigMap(t, ns, "raced")
	sent, goOn := make(chan struct{}), make(chan struct{})
	proxy.Before(func(r *http.Request) {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/configmaps/raced") {
			close(sent)
			<-goOn
		}
	})
	createUnusedPolicy(t, ns, unusedAfter("0s"))
	<-sent
	createPod(t, ns, mounting("late", "raced"))
	close(goOn)
	expectDeletions(t, ns, "configmaps/raced p/unused")
}

// testUnusedSlow: a slow reading is still useful.
func testUnusedSlow(t *testing.T, proxy *winnow.Proxy) {
	ns := newNamespace(t)
	createConfigMap(t, ns, "free")
	proxy.Before(func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/namespaces/"+ns+"/pods") {
			sleepUntil(r.Context(), time.Now().Add(2*time.Second)) // An order is valid for less than that.
		}
	})
	createUnusedPolicy(t, ns, unusedAfter("0s"))
	expectDeletions(t, ns, "configmaps/free p/unused")
}

// testUnusedLarge: the data of a Secret never reaches Winnow.
func testUnusedLarge(t *testing.T, proxy *winnow.Proxy) {
	ns := newNamespace(t)
	before := proxy.Received("secrets")
	data := make([]byte, corev1.MaxSecretSize)
	_, _ = rand.Read(data)
	createSecret(t, ns, "large", func(s *corev1.Secret) { s.Immutable, s.Data = new(true), map[string][]byte{"data": data} })
	unused := map[string]time.Time{"secrets/large": time.Now()}
	createUnusedPolicy(t, ns, unusedAfter("0s"))
	expectDeletions(t, ns, "secrets/large p/unused")
	if n := proxy.Received("secrets") - before; n == 0 || n > corev1.MaxSecretSize/4 {
		t.Errorf("Winnow received %d bytes about Secrets", n)
	}
	expectReadBefore(t, ns, unused)
}

// expectReadBefore checks of each DELETE in a namespace that what may refer to the object was read consistently before it, and after the object
// could be deleted.
func expectReadBefore(t *testing.T, ns string, unused map[string]time.Time) {
	t.Helper()
	lists, err := suite.Audit(func(e *cluster.AuditEvent) bool {
		u, err := url.Parse(e.RequestURI)
		return err == nil && e.Verb == "list" && strings.HasPrefix(e.UserAgent, "winnow") && e.ResponseStatus.Code == http.StatusOK &&
			e.ObjectRef.Namespace == ns && !u.Query().Has("resourceVersion")
	})
	must(t, err)
	for _, d := range deletions(t, ns) {
		for _, resource := range historyResources {
			read := false
			for i := range lists {
				l := &lists[i]
				read = read || l.ObjectRef.Resource == resource.Resource && l.ObjectRef.APIGroup == resource.Group &&
					!d.RequestReceivedTimestamp.Before(new(metav1.NewMicroTime(l.StageTimestamp.Time))) &&
					!l.RequestReceivedTimestamp.Time.Before(unused[d.object].Truncate(time.Microsecond))
			}
			if !read {
				t.Errorf("the %s were not read before the DELETE of %s", resource.Resource, d.object)
			}
		}
	}
}
