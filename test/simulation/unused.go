// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

var (
	configMaps      = schema.GroupResource{Resource: "configmaps"}
	secrets         = schema.GroupResource{Resource: "secrets"}
	serviceAccounts = schema.GroupResource{Resource: "serviceaccounts"}
	replicaSets     = schema.GroupResource{Group: "apps", Resource: "replicasets"}
	// referrers are what may refer to ConfigMaps and Secrets. Their names stand nowhere else in such an object.
	referrers = []schema.GroupResource{jobs, pods, workflows, cronJobs, replicaSets, serviceAccounts}
	// contentNames are the names of ConfigMaps and Secrets in the JSON of a referrer.
	contentNames = regexp.MustCompile(`"(config|secret)-[0-9]+"`)
)

const (
	// contents is how many ConfigMaps and Secrets a namespace has at most, of each.
	contents = 12
	// briefly is for how long something may refer to an object without anybody noticing.
	briefly = 2 * time.Second
	// remembered is for how long uses that ended are kept.
	remembered = 24 * time.Hour
)

// contentKey is a ConfigMap or Secret, whether it exists or not. The name says which it is.
type contentKey struct{ namespace, name string }

// uses says when objects refer to ConfigMaps and Secrets.
type uses struct {
	of map[contentKey]*use
	// unseen is for how long a replica may not see what happens now.
	unseen func() time.Duration
}

// use is how many objects refer to a ConfigMap or Secret, and since when, and the former times when some did.
type use struct {
	count  int
	since  period
	former []period
}

// period is a time between two revisions. unseen is for how long a replica did not see what happened at its end.
type period struct {
	began, ended   time.Time
	from, to       int64
	unseenAtTheEnd time.Duration
}

// observe takes in a change of the store.
func (u *uses) observe(r apiserver.Resource, e apiserver.Event) {
	if !slices.Contains(referrers, r.GroupResource()) {
		return
	}
	if e.Type != watch.Deleted {
		for _, key := range refersTo(e.Object) {
			u.add(key, 1, e)
		}
	}
	if e.Before != nil {
		for _, key := range refersTo(e.Before) {
			u.add(key, -1, e)
		}
	}
}

func refersTo(o *apiserver.Object) (out []contentKey) {
	for _, quoted := range contentNames.FindAllString(string(o.JSON), -1) {
		out = append(out, contentKey{o.Meta.Namespace, quoted[1 : len(quoted)-1]})
	}
	return out
}

func (u *uses) add(key contentKey, n int, e apiserver.Event) {
	of := u.of[key]
	if of == nil {
		of = &use{}
		u.of[key] = of
	}
	before := of.count
	of.count += n
	switch {
	case before == 0:
		of.since = period{began: e.Time, from: e.Revision}
	case of.count == 0:
		of.since.ended, of.since.to, of.since.unseenAtTheEnd = e.Time, e.Revision, u.unseen()
		of.former = append(of.former, of.since)
		of.former = slices.DeleteFunc(of.former, func(p period) bool { return e.Time.Sub(p.ended) > remembered })
	}
}

// restored takes in that the store went back to a revision: what refers to what is as it was.
func (u *uses) restored(store *apiserver.Store, revision int64) {
	counts := map[contentKey]int{}
	for _, r := range referrers {
		for _, o := range store.Objects(r) {
			for _, key := range refersTo(o) {
				counts[key]++
			}
		}
	}
	for key, of := range u.of {
		if of.count > 0 {
			of.former = append(of.former, of.since)
		}
		of.former = slices.DeleteFunc(of.former, func(p period) bool { return p.from > revision })
		of.count = counts[key]
		if last := len(of.former) - 1; of.count > 0 {
			of.since, of.former = of.former[last], of.former[:last]
		}
	}
}

// usage returns since when a ConfigMap or Secret is unused. What uses it, or has used it, for no longer than a replica may not see does not
// count, unless all is set.
func (u *uses) usage(f *lifecycle.Fact, now time.Time, unseen time.Duration, all bool) lifecycle.Usage {
	out := lifecycle.Usage{State: lifecycle.Unused, Since: f.Created}
	of := u.of[contentKey{f.Namespace, f.Name}]
	if of == nil {
		return out
	}
	if of.count > 0 && (all || now.Sub(of.since.began) > freshness+underWay+unseen) {
		return lifecycle.Usage{State: lifecycle.InUse}
	}
	for _, p := range of.former {
		if all || p.ended.Sub(p.began) > briefly+p.unseenAtTheEnd {
			out.Since = later(out.Since, p.ended)
		}
	}
	return out
}

// in returns the fact of a ConfigMap or Secret with its usage, and other facts as they are.
func (u *uses) in(f *lifecycle.Fact, now time.Time, unseen time.Duration) *lifecycle.Fact {
	if f.Resource != configMaps.Resource && f.Resource != secrets.Resource {
		return f
	}
	out := *f
	out.Usage = u.usage(f, now, unseen, false)
	return &out
}

// createContent creates or deletes a ConfigMap or Secret.
func (s *simulation) createContent() {
	r, ns := draw(s, configMaps, secrets), s.namespace()
	name := s.contentName(r)
	if s.percent(20) {
		_, err := s.store.Delete(r, apiserver.Key{Namespace: ns, Name: name}, &metav1.DeleteOptions{})
		s.try("delete "+name, err)
		return
	}
	s.created++
	_, err := s.store.Create(r, content{
		"metadata": content{"namespace": ns, "name": name, "labels": content{"app": draw(s, "x", "y", "z")}}, "data": content{},
	})
	s.try("create "+name, err)
}

func (s *simulation) contentName(r schema.GroupResource) string {
	prefix := "config"
	if r == secrets {
		prefix = "secret"
	}
	return fmt.Sprintf("%s-%d", prefix, s.random.IntN(contents))
}

// refer creates, changes or deletes an object that refers to ConfigMaps and Secrets, other than a Job or Pod.
func (s *simulation) refer() {
	r := draw(s, replicaSets, serviceAccounts)
	key := apiserver.Key{Namespace: s.namespace(), Name: fmt.Sprintf("referrer-%d", s.random.IntN(3))}
	if s.percent(30) {
		_, err := s.store.Delete(r, key, &metav1.DeleteOptions{})
		s.try("delete "+key.String(), err)
		return
	}
	object := content{"metadata": content{"namespace": key.Namespace, "name": key.Name}}
	if r == serviceAccounts {
		object["secrets"], object["imagePullSecrets"] = s.named(secrets), s.named(secrets)
	} else {
		object["spec"] = content{"selector": content{}, "template": content{"spec": s.podSpec()}}
	}
	if _, err := s.store.Create(r, object); err == nil {
		return
	}
	_, err := s.store.Update(r, key, func(c map[string]any) error {
		for _, field := range []string{"spec", "secrets", "imagePullSecrets"} {
			c[field] = object[field]
		}
		return nil
	})
	s.try("change "+key.String(), err)
}

func (s *simulation) named(r schema.GroupResource) []any {
	if s.percent(50) {
		return nil
	}
	return []any{content{"name": s.contentName(r)}}
}

// podSpec draws the spec of a Pod, which may refer to a ConfigMap or Secret.
func (s *simulation) podSpec() content {
	container := content{"name": "c"}
	out := content{"containers": []any{container}}
	config, secret := s.contentName(configMaps), s.contentName(secrets)
	volume := func(v content) { v["name"] = "v"; out["volumes"] = []any{v} }
	switch s.random.IntN(16) {
	case 0:
		volume(content{"configMap": content{"name": config}})
	case 1:
		volume(content{"secret": content{"secretName": secret}})
	case 2:
		volume(content{"projected": content{"sources": []any{
			content{"configMap": content{"name": config}}, content{"secret": content{"name": secret}},
		}}})
	case 3:
		container["envFrom"] = []any{content{"configMapRef": content{"name": config}}, content{"secretRef": content{"name": secret}}}
	case 4:
		container["env"] = []any{content{"name": "e", "valueFrom": content{"secretKeyRef": content{"name": secret, "key": "k"}}}}
	case 5:
		out["imagePullSecrets"] = []any{content{"name": secret}}
	}
	return out
}
