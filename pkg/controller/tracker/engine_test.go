// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/given"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// TestEngine holds the tracker, which remembers and moves what a change touches, against the model, which counts all anew: after
// each of many random changes of objects, owners, policies of both kinds, labels, quotas, annotations, clocks and leaders
// they must agree on every decision, on its time, and on the order of deletions.
func TestEngine(t *testing.T) {
	given.Checks(150)
	given.Steps(60)
	rapid.Check(t, func(t *rapid.T) { newEngine(t).run(t) })
}

// TestNamedCases has the tracker answer each named case of the documentation.
func TestNamedCases(t *testing.T) {
	cases, err := model.Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			e := &engine{World: c.World, weighed: map[types.UID]bool{}, held: map[model.PolicyInNamespace]bool{}, rules: map[string]string{}}
			e.startWith(Config{HoldAbove: -1})
			for _, f := range c.World.Objects {
				got := model.Answer{Action: model.Ignore}
				if rec, ok := e.tracker.records[f.UID]; ok {
					got = answerOf(rec.resolution, rec.decision)
				}
				want := c.Answers[f.UID]
				if want.At.IsZero() {
					got.At = time.Time{}
				}
				if got.Action != want.Action || got.Action != model.Ignore && got != want {
					t.Errorf("%s: got %+v, want %+v", f.Name, got, want)
				}
			}
		})
	}
}

// engine is a tracker beside the world that it is told of.
type engine struct {
	*model.World
	tracker *Tracker
	version int
	// weighed are the objects that are due and need no approval; held are the policies that wait for one.
	weighed   map[types.UID]bool
	held      map[model.PolicyInNamespace]bool
	rules     map[string]string // what ruled each namespace when it was last weighed
	clockLies bool
}

// holdAboveByDefault is low, so that worlds of a few objects have holds.
const holdAboveByDefault = 4

func newEngine(t *rapid.T) *engine {
	e := &engine{World: model.Draw(t), weighed: map[types.UID]bool{}, held: map[model.PolicyInNamespace]bool{}, rules: map[string]string{}}
	e.start()
	e.weigh()
	return e
}

func (e *engine) run(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"object":         e.object,
		"object again":   e.object,
		"policy":         e.policy,
		"cluster policy": e.clusterPolicy,
		"namespace":      e.namespace,
		"quota":          e.quota,
		"cron job":       e.cronJob,
		"time":           e.time,
		"clock":          e.clock,
		"approve":        e.approve,
		"relist":         e.relist,
		"another leader": func(*rapid.T) { e.succeed() },
		"work":           e.work,
		"":               e.agrees,
	})
}

func (e *engine) next() string {
	e.version++
	return strconv.Itoa(e.version)
}

// start makes a tracker that has read the world as it is.
func (e *engine) start() { e.startWith(Config{HoldAbove: holdAboveByDefault}) }

func (e *engine) startWith(c Config) {
	e.tracker = New(c)
	e.tracker.ReplaceNamespaces(nil, "", e.Now)
	e.version += len(e.Objects) + 1
	for name, ns := range e.Namespaces {
		e.tellNamespace(name, ns)
	}
	e.tracker.ReplacePolicies(e.Policies, e.next(), e.Now)
	e.tracker.ReplaceClusterPolicies(e.ClusterPolicies, e.next(), e.Now)
	e.tracker.ReplaceCronJobs(e.CronJobs, e.Now)
	var quotas []*Quota
	for _, q := range e.Quotas {
		quotas = append(quotas, QuotaOf(q))
	}
	e.tracker.ReplaceQuotas(quotas, e.Now)
	for _, f := range e.Objects {
		e.remember(f)
	}
	e.list(gc.ResourceJobs)
	e.list(gc.ResourcePods)
}

// succeed has another replica take over: it knows what is stored, and of holds what the status of policies says.
func (e *engine) succeed() {
	byUID := map[types.UID][]gc.PolicyHold{}
	for _, ns := range e.tracker.namespaces {
		for uid, h := range ns.holds {
			byUID[uid] = append(byUID[uid], gc.PolicyHold{ID: h.id, Namespace: ns.name, Why: h.why})
		}
	}
	for i, p := range e.Policies {
		e.Policies[i] = p.DeepCopy()
		e.Policies[i].Status = gc.CleanupPolicyStatus{ObservedGeneration: p.Generation, Holds: byUID[p.UID]}
	}
	for i, p := range e.ClusterPolicies {
		e.ClusterPolicies[i] = p.DeepCopy()
		e.ClusterPolicies[i].Status = gc.CleanupPolicyStatus{ObservedGeneration: p.Generation, Holds: byUID[p.UID]}
	}
	e.start()
	e.tracker.Lead(e.Now)
	if e.clockLies {
		e.read()
	}
	for _, name := range model.DrawnNamespaces {
		e.rules[name] = e.rulesOf(name)
	}
	clear(e.weighed) // Whoever takes over knows what is due, not since when.
	e.settle()
}

func (e *engine) list(resource string) {
	var facts []*lifecycle.Fact
	for _, f := range e.Objects {
		if f.Resource == resource {
			facts = append(facts, f)
		}
	}
	e.tracker.Replace(resource, facts, uint64(e.version), e.Now)
}

// cover does what an observer does: it lists what is newly covered.
func (e *engine) cover() {
	for resource, namespaces := range e.tracker.Coverage() {
		for name := range namespaces {
			if resource == ResourceQuotas || e.tracker.namespaces[name].listed[resource] == namespaces[name] {
				continue
			}
			m := e.tracker.BeginMerge(resource, name)
			for _, f := range e.Objects {
				if f.Resource == resource && f.Namespace == name {
					m.Add([]*lifecycle.Fact{f}, e.Now)
				}
			}
			m.End(true, e.Now)
		}
	}
}

// remember has the tracker know the name of an object as one that came back too often, or not at all.
func (e *engine) remember(f *lifecycle.Fact) {
	e.tracker.recreated.names.Remove(nameOf(f))
	if e.Recreated[f.UID] {
		e.tracker.recreated.names.Add(nameOf(f), returns{deleted: f.Created.Add(-time.Minute), times: recreateMost, last: "another"})
	}
}

func (e *engine) indexOf(uid types.UID) int {
	return slices.IndexFunc(e.Objects, func(f *lifecycle.Fact) bool { return f.UID == uid })
}

// object makes, changes or removes one.
func (e *engine) object(t *rapid.T) {
	n := rapid.IntRange(0, model.DrawnObjects-1).Draw(t, "object")
	i := e.indexOf(model.DrawnUID(n))
	if i >= 0 && rapid.IntRange(0, 4).Draw(t, "remove") == 0 {
		e.remove(e.Objects[i])
		return
	}
	f := model.DrawObject(t, e.Now, n)
	e.next()
	f.ResourceVersion = uint64(e.version)
	if i >= 0 {
		e.Objects[i] = f
	} else {
		e.Objects = append(e.Objects, f)
		e.remember(f)
	}
	e.tracker.Upsert(f, e.Now)
	e.settle()
}

func (e *engine) remove(f *lifecycle.Fact) {
	e.Objects = slices.Delete(e.Objects, e.indexOf(f.UID), e.indexOf(f.UID)+1)
	e.tracker.Remove(f, e.Now)
	e.settle()
}

func (e *engine) policy(t *rapid.T) {
	ns := rapid.SampledFrom(model.DrawnNamespaces).Draw(t, "namespace")
	name := rapid.SampledFrom(model.DrawnPolicies).Draw(t, "name")
	i := slices.IndexFunc(e.Policies, func(p *gc.CleanupPolicy) bool { return p.Namespace == ns && p.Name == name })
	p := model.DrawPolicy(t, ns, name)
	p.ResourceVersion = e.next()
	switch {
	case i < 0:
		p.UID += types.UID("-" + p.ResourceVersion)
		e.Policies = append(e.Policies, p)
	case rapid.IntRange(0, 3).Draw(t, "delete") == 0:
		e.tracker.RemovePolicy(e.Policies[i], e.Now)
		e.Policies = slices.Delete(e.Policies, i, i+1)
		delete(e.held, model.PolicyInNamespace{Policy: model.PolicyRef{Namespace: ns, Name: name}, Namespace: ns})
		e.changed()
		return
	default:
		p.UID, p.Generation = e.Policies[i].UID, e.Policies[i].Generation+1
		e.Policies[i] = p
	}
	e.tracker.SetPolicy(p, e.Now)
	e.changed(model.PolicyRef{Namespace: ns, Name: name})
}

func (e *engine) clusterPolicy(t *rapid.T) {
	name := rapid.SampledFrom(model.DrawnClusterPolicies).Draw(t, "name")
	i := slices.IndexFunc(e.ClusterPolicies, func(p *gc.ClusterCleanupPolicy) bool { return p.Name == name })
	p := model.DrawClusterPolicy(t, name)
	p.ResourceVersion = e.next()
	switch {
	case i < 0:
		p.UID += types.UID("-" + p.ResourceVersion)
		e.ClusterPolicies = append(e.ClusterPolicies, p)
	case rapid.IntRange(0, 3).Draw(t, "delete") == 0:
		e.tracker.RemoveClusterPolicy(e.ClusterPolicies[i], e.Now)
		e.ClusterPolicies = slices.Delete(e.ClusterPolicies, i, i+1)
		maps.DeleteFunc(e.held, func(key model.PolicyInNamespace, _ bool) bool { return key.Policy == model.PolicyRef{Name: name} })
		e.changed()
		return
	default:
		p.UID, p.Generation = e.ClusterPolicies[i].UID, e.ClusterPolicies[i].Generation+1
		e.ClusterPolicies[i] = p
	}
	e.tracker.SetClusterPolicy(p, e.Now)
	e.changed(model.PolicyRef{Name: name})
}

func (e *engine) tellNamespace(name string, ns model.Namespace) {
	m := given.Namespace(name, e.next())
	m.Labels = labels.Merge(m.Labels, ns.Labels)
	if ns.Protected {
		e.tracker.protected.Insert(name)
	} else {
		e.tracker.protected.Delete(name)
	}
	if ns.Terminating {
		m.DeletionTimestamp = &m.CreationTimestamp
	}
	e.tracker.SetNamespace(m, e.Now)
}

func (e *engine) namespace(t *rapid.T) {
	name := rapid.SampledFrom(model.DrawnNamespaces).Draw(t, "namespace")
	if _, ok := e.Namespaces[name]; ok && rapid.IntRange(0, 9).Draw(t, "remove") == 5 {
		delete(e.Namespaces, name)
		e.tracker.RemoveNamespace(given.Namespace(name, e.next()), e.Now)
		e.changed()
		return
	}
	_, known := e.Namespaces[name]
	e.Namespaces[name] = model.DrawNamespace(t)
	e.tellNamespace(name, e.Namespaces[name])
	if !known { // What is there when a namespace is first seen was there before: nobody has changed it.
		e.cover()
		e.rules[name] = e.rulesOf(name)
		e.settle()
		return
	}
	e.changed()
}

func (e *engine) quota(t *rapid.T) {
	ns := rapid.SampledFrom(model.DrawnNamespaces).Draw(t, "namespace")
	name := rapid.SampledFrom(model.DrawnQuotas).Draw(t, "name")
	i := slices.IndexFunc(e.Quotas, func(q *corev1.ResourceQuota) bool { return q.Namespace == ns && q.Name == name })
	q := model.DrawQuota(t, ns, name)
	q.ResourceVersion = e.next()
	switch {
	case i < 0:
		e.Quotas = append(e.Quotas, q)
	case rapid.IntRange(0, 2).Draw(t, "delete") == 0:
		e.Quotas = slices.Delete(e.Quotas, i, i+1)
		e.tracker.RemoveQuota(QuotaOf(q), e.Now)
		e.changed()
		return
	default:
		e.Quotas[i] = q
	}
	e.tracker.SetQuota(QuotaOf(q), e.Now)
	e.changed()
}

func (e *engine) cronJob(t *rapid.T) {
	ns := rapid.SampledFrom(model.DrawnNamespaces).Draw(t, "namespace")
	name := rapid.SampledFrom(model.DrawnCronJobs).Draw(t, "name")
	cj := model.DrawCronJob(t, ns, name)
	i := slices.IndexFunc(e.CronJobs, func(c *lifecycle.CronJob) bool { return c.UID == cj.UID })
	switch {
	case i < 0:
		e.CronJobs = append(e.CronJobs, cj)
	case rapid.IntRange(0, 2).Draw(t, "delete") == 0:
		e.CronJobs = slices.Delete(e.CronJobs, i, i+1)
		e.tracker.RemoveCronJob(cj.UID, e.Now)
		e.settle()
		return
	default:
		e.CronJobs[i] = cj
	}
	e.tracker.SetCronJob(cj, e.Now)
	e.settle()
}

func (e *engine) time(t *rapid.T) {
	e.Now = e.Now.Add(rapid.SampledFrom([]time.Duration{
		time.Second, time.Millisecond, 30 * time.Second, time.Minute, 9 * time.Minute, time.Hour,
	}).Draw(t, "passes"))
	e.tracker.Expire(e.Now)
	e.settle()
}

// clock has the API server tell another time, or the right one again.
func (e *engine) clock(*rapid.T) {
	e.clockLies = !e.clockLies
	e.read()
	e.settle()
}

// read agrees with what is there.
func (e *engine) read() {
	r := Reading{Began: e.Now, ServerTime: e.Now}
	if e.clockLies {
		r.ServerTime = e.Now.Add(time.Hour)
	}
	e.tracker.ObservePolicies(e.next())
	e.tracker.ObserveClusterPolicies(strconv.Itoa(e.version))
	e.tracker.ObserveNamespaces(strconv.Itoa(e.version))
	for _, contents := range []*Contents{&r.Policies, &r.ClusterPolicies, &r.Namespaces} {
		contents.Version = strconv.Itoa(e.version)
	}
	e.tracker.Agree(r, e.Now)
}

// relist starts the watch of a resource over.
func (e *engine) relist(t *rapid.T) {
	e.list(rapid.SampledFrom([]string{gc.ResourceJobs, gc.ResourcePods}).Draw(t, "resource"))
	e.settle()
}

// changed is after a change that people made: what it made due is weighed.
func (e *engine) changed(policies ...model.PolicyRef) {
	e.cover()
	e.weigh(policies...)
}

// weigh finds what is due and was not before, and holds the policies by which there is too much of it. A hold stays, unless a new
// spec of its policy leaves little that is due.
func (e *engine) weigh(changed ...model.PolicyRef) {
	due := e.DueBy()
	e.forgetUndue(due)
	affected := e.affected(due)
	for key, uids := range due {
		if !affected[key.Namespace] {
			continue
		}
		most, ok := e.HoldAbove(key.Namespace)
		if !ok {
			most = holdAboveByDefault
		}
		fresh := 0
		for _, uid := range uids {
			if !e.weighed[uid] {
				fresh++
			}
		}
		if e.held[key] {
			fresh = len(uids)
		}
		if fresh > most || e.held[key] && !slices.Contains(changed, key.Policy) {
			e.held[key] = true
			e.unweigh(uids)
			continue
		}
		delete(e.held, key)
		e.weighAll(uids)
	}
}

// weighAll takes objects for weighed, unless somebody stops them now: then they are made due by whoever ends that.
func (e *engine) weighAll(uids []types.UID) {
	answers := e.Answers()
	for _, uid := range uids {
		if r := answers[uid].Reason; r != string(policy.ReasonSuspended) && r != string(policy.ReasonPolicyUnreadable) {
			e.weighed[uid] = true
		}
	}
}

// affected are the namespaces that are ruled by something else than when they were last weighed, and those where that put an object
// beyond a ceiling.
func (e *engine) affected(due map[model.PolicyInNamespace][]types.UID) map[string]bool {
	out := map[string]bool{}
	for _, name := range model.DrawnNamespaces {
		before := e.rules[name]
		e.rules[name] = e.rulesOf(name)
		out[name] = before != e.rules[name]
	}
	answers := e.Answers()
	for key, uids := range due {
		for _, uid := range uids {
			a := answers[uid]
			stopped := a.Reason == string(policy.ReasonSuspended) || a.Reason == string(policy.ReasonPolicyUnreadable)
			if strings.HasPrefix(a.By, "ceiling=") && !e.weighed[uid] && !stopped && !e.held[key] {
				out[key.Namespace] = true
			}
		}
	}
	return out
}

func (e *engine) uidOf(ref model.PolicyRef) types.UID {
	for _, p := range e.Policies {
		if p.Namespace == ref.Namespace && p.Name == ref.Name {
			return p.UID
		}
	}
	for _, p := range e.ClusterPolicies {
		if ref.Namespace == "" && p.Name == ref.Name {
			return p.UID
		}
	}
	return "none"
}

// rulesOf names the policies that rule a namespace, and the quotas if they matter.
func (e *engine) rulesOf(name string) string {
	ns, known := e.Namespaces[name]
	out := fmt.Sprint(known, ns.Terminating, ns.Protected || gc.Protects(ns.Labels))
	quota := false
	add := func(m *metav1.ObjectMeta, spec *gc.CleanupPolicySpec, unreadable error) {
		out += fmt.Sprint(" ", m.UID, "/", m.Generation)
		if unreadable != nil {
			return
		}
		quota = quota || spec.Capacity != nil && spec.Capacity.PercentOfQuota != nil ||
			slices.ContainsFunc(spec.Rules, func(r gc.CleanupRule) bool { return r.Capacity != nil && r.Capacity.PercentOfQuota != nil })
	}
	for _, p := range e.Policies {
		if p.Namespace == name {
			_, err := policy.Compile(p)
			add(&p.ObjectMeta, &p.Spec, err)
		}
	}
	for _, p := range e.ClusterPolicies {
		selector, err := metav1.LabelSelectorAsSelector(p.Spec.NamespaceSelector)
		if known && !ns.Protected && !gc.Protects(ns.Labels) && (err != nil || selector.Matches(labels.Set(ns.Labels))) {
			_, err := policy.CompileCluster(p)
			add(&p.ObjectMeta, p.Spec.Defaults(), err)
		}
	}
	for _, q := range e.Quotas {
		if quota && q.Namespace == name {
			out += fmt.Sprint(" ", q.Name, QuotaOf(q).Counts)
		}
	}
	return out
}

// settle is after anything else: what comes due by a policy that is not held needs no approval.
func (e *engine) settle() {
	due := e.DueBy()
	e.forgetUndue(due)
	for key, uids := range due {
		if e.held[key] {
			e.unweigh(uids)
			continue
		}
		e.weighAll(uids)
	}
}

// unweigh: whatever a policy that is held would delete needs approval, whoever wanted it deleted before.
func (e *engine) unweigh(uids []types.UID) {
	for _, uid := range uids {
		delete(e.weighed, uid)
	}
}

// forgetUndue: what is not due any more is weighed anew when it is, and a hold without objects is none.
func (e *engine) forgetUndue(due map[model.PolicyInNamespace][]types.UID) {
	still := map[types.UID]bool{}
	for _, uids := range due {
		for _, uid := range uids {
			still[uid] = true
		}
	}
	maps.DeleteFunc(e.weighed, func(uid types.UID, _ bool) bool { return !still[uid] })
	// While the clock is in doubt nothing is known not to be due.
	maps.DeleteFunc(e.held, func(key model.PolicyInNamespace, _ bool) bool {
		return len(due[key]) == 0 && !e.clockLies || !strings.Contains(e.rulesOf(key.Namespace), fmt.Sprint(" ", e.uidOf(key.Policy), "/"))
	})
	e.tracker.Reports("")
	for _, name := range model.DrawnNamespaces {
		e.tracker.Reports(name)
	}
}

// approve releases a hold by its id.
func (e *engine) approve(t *rapid.T) {
	keys := slices.SortedFunc(maps.Keys(e.held), func(a, b model.PolicyInNamespace) int {
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	if len(keys) == 0 {
		t.Skip()
	}
	key := rapid.SampledFrom(keys).Draw(t, "hold")
	for i, p := range e.Policies {
		if p.Namespace == key.Policy.Namespace && p.Name == key.Policy.Name {
			e.Policies[i] = p.DeepCopy()
			e.annotate(&e.Policies[i].ObjectMeta, key.Namespace)
			e.tracker.SetPolicy(e.Policies[i], e.Now)
		}
	}
	for i, p := range e.ClusterPolicies {
		if key.Policy.Namespace == "" && p.Name == key.Policy.Name {
			e.ClusterPolicies[i] = p.DeepCopy()
			e.annotate(&e.ClusterPolicies[i].ObjectMeta, key.Namespace)
			e.tracker.SetClusterPolicy(e.ClusterPolicies[i], e.Now)
		}
	}
	delete(e.held, key)
	for _, uid := range e.DueBy()[key] {
		e.weighed[uid] = true
	}
	e.settle()
}

func (e *engine) annotate(m *metav1.ObjectMeta, namespace string) {
	m.ResourceVersion = e.next()
	m.Annotations = map[string]string{gc.AnnotationApprovedHold: e.tracker.namespaces[namespace].holds[m.UID].id}
}

// work carries out what is due, and holds its order against the model.
func (e *engine) work(t *rapid.T) {
	e.read()
	byNamespace := map[string][]types.UID{}
	var orders []*Order
	for o, ok := e.tracker.Take(e.Now); ok; o, ok = e.tracker.Take(e.Now) {
		orders = append(orders, o)
		byNamespace[o.Fact.Namespace] = append(byNamespace[o.Fact.Namespace], o.Fact.UID)
	}
	propagations, wants := e.Propagations(), e.wants()
	for _, name := range model.DrawnNamespaces {
		want, got := e.order(name, wants), byNamespace[name]
		_, paced := e.MaxDeletionsPerMinute(name)
		if paced && len(got) <= len(want) {
			want = want[:len(got)]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("deletes %q in namespace %s, want %q", got, name, want)
		}
	}
	for _, o := range orders {
		if want := propagations[o.Fact.UID]; o.Propagation != want {
			t.Fatalf("deletes %s with propagation %s, want %s", o.Fact.UID, o.Propagation, want)
		}
	}
	for _, o := range orders {
		e.tracker.Done(o, Result{Outcome: Accepted}, e.Now)
	}
	for _, o := range orders {
		e.remove(o.Fact)
	}
	for c := range e.tracker.haunted { // The model knows nothing of what is gone; named tests tell of ghosts.
		for ns, m := range c.ghosts {
			delete(c.ghosts, ns)
			c.over--
			m.Leave()
		}
	}
	e.tracker.settleFlipped(e.Now)
	e.tracker.recreated = newMemory()
	for _, f := range e.Objects {
		e.remember(f)
	}
}

// order is in which the objects of a namespace are to be deleted: whoever finished first goes first, and of equals whoever
// ranks last.
func (e *engine) order(namespace string, wants map[types.UID]model.Answer) []types.UID {
	var due []*lifecycle.Fact
	for _, f := range e.Objects {
		if f.Namespace == namespace && wants[f.UID].Action == model.Delete {
			due = append(due, f)
		}
	}
	slices.SortFunc(due, func(a, b *lifecycle.Fact) int {
		return cmp.Or(a.FinishedAt.Compare(b.FinishedAt), -cmp.Compare(a.UID, b.UID))
	})
	var out []types.UID
	for _, f := range due {
		out = append(out, f.UID)
	}
	return out
}

// wants are the answers of the model, with what it does not know: holds for approval, and the clock.
func (e *engine) wants() map[types.UID]model.Answer {
	out := e.Answers()
	held := map[types.UID]bool{}
	for key, uids := range e.DueBy() {
		for _, uid := range uids {
			held[uid] = e.held[key]
		}
	}
	for uid, a := range out {
		switch {
		case a.Action != model.Delete:
			continue
		case held[uid]:
			a.Action, a.Reason = model.Hold, string(policy.ReasonHeld)
		case e.clockLies:
			a.Action, a.Reason = model.Hold, string(policy.ReasonClockInDoubt)
		}
		out[uid] = a
	}
	return out
}

// limited tells whether an enforcing policy counts objects. A preview takes the pools of other policies as they are, not as they would
// be if it enforced, so that what it says beside them is not compared.
func (e *engine) limited() bool {
	spec := func(s *gc.CleanupPolicySpec) bool {
		return s.Mode == gc.ModeEnforce &&
			(s.Capacity != nil || slices.ContainsFunc(s.Rules, func(r gc.CleanupRule) bool { return r.Capacity != nil }))
	}
	return slices.ContainsFunc(e.Policies, func(p *gc.CleanupPolicy) bool { return spec(&p.Spec) }) ||
		slices.ContainsFunc(e.ClusterPolicies, func(p *gc.ClusterCleanupPolicy) bool {
			return spec(p.Spec.Defaults()) || p.Spec.Guardrails != nil && len(p.Spec.Guardrails.Capacity) > 0
		})
}

// previewsAgree compares what preview policies would do, and takes it out of what is expected of them.
func (e *engine) previewsAgree(t *rapid.T, previews map[model.PolicyRef]map[types.UID]model.Answer, rec *record) {
	for _, p := range rec.previews {
		ref := model.PolicyRef{Namespace: p.policy.Namespace, Name: p.policy.Name}
		want, ok := previews[ref][rec.fact.UID]
		if !ok || actionNames[p.decision.Action] != want.Action && want.Action != model.Delete {
			t.Fatalf("%s: policy %s previews %+v, want %+v", rec.fact.UID, ref, p.decision, want)
		}
		delete(previews[ref], rec.fact.UID)
	}
}

var actionNames = map[policy.Action]string{
	policy.Ignore: model.Ignore, policy.Keep: model.Keep, policy.Wait: model.Wait, policy.Hold: model.Hold, policy.Delete: model.Delete,
	policy.Await: model.Await,
}

// agrees compares all that follows for all objects.
func (e *engine) agrees(t *rapid.T) {
	wants, limited := e.wants(), e.limited()
	var previews map[model.PolicyRef]map[types.UID]model.Answer
	if !limited {
		previews = e.Previews()
	}
	for _, f := range e.Objects {
		want := wants[f.UID]
		rec, ok := e.tracker.records[f.UID]
		if !ok {
			if want.Action != model.Ignore {
				t.Fatalf("%s is not tracked, want %+v", f.UID, want)
			}
			continue
		}
		got := answerOf(rec.resolution, rec.decision)
		if want.At.IsZero() {
			got.At = time.Time{}
		}
		if got.Action != model.Ignore && got != want || got.Action != want.Action {
			t.Fatalf("%s: got %+v, want %+v\n%+v", f.UID, got, want, f)
		}
		if !limited {
			e.previewsAgree(t, previews, rec)
		}
	}
	for ref, left := range previews {
		for uid, a := range left {
			t.Fatalf("policy %s previews nothing for %s, want %+v", ref, uid, a)
		}
	}
	e.reportsAgree(t, wants)
}

func answerOf(r policy.Resolution, d policy.Decision) model.Answer {
	out := model.Answer{Action: actionNames[d.Action], Reason: string(d.Reason), At: d.At}
	if r.Policy == nil || d.Action == policy.Ignore {
		return out
	}
	ref := model.PolicyRef{Namespace: r.Policy.Namespace, Name: r.Policy.Name}
	out.By = ref.String() + " " + r.RuleName()
	if r.Rule == nil {
		out.By = "ceiling=" + ref.String()
	}
	return out
}

// reportsAgree compares the counts of enforcing policies, and their holds.
func (e *engine) reportsAgree(t *rapid.T, wants map[types.UID]model.Answer) {
	waiting := 0
	for _, name := range append([]string{""}, model.DrawnNamespaces...) {
		for _, r := range e.tracker.Reports(name) {
			waiting += len(r.Waiting)
			for _, h := range r.Waiting {
				if !e.held[model.PolicyInNamespace{Policy: model.PolicyRef{Namespace: r.Namespace, Name: r.Name}, Namespace: h.Namespace}] {
					t.Fatalf("policy %s/%s is held in %s: %+v", r.Namespace, r.Name, h.Namespace, h)
				}
			}
		}
	}
	if waiting != len(e.held) {
		t.Fatalf("%d holds, want %v", waiting, e.held)
	}
	candidates := map[string]int64{}
	for _, a := range wants {
		if a.Action != model.Ignore {
			candidates[a.By]++
		}
	}
	got := map[string]int64{}
	for _, rec := range e.tracker.records {
		if rec.decision.Candidate() {
			got[answerOf(rec.resolution, rec.decision).By]++
		}
	}
	if !maps.Equal(got, candidates) {
		t.Fatalf("candidates %v, want %v", got, candidates)
	}
}
