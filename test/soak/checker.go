// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/oracle"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	// checkLag is how long after a DELETE the history has everything that happened before it.
	checkLag = 5 * time.Second
	// together is the time within which DELETEs are checked by one recomputation, where that is enough.
	together = 100 * time.Millisecond
	// checkMost is how long DELETEs are checked before the audit log is read again. The checker may fall behind if many DELETEs need separate
	// recomputations. The history must not, because it says which objects are gone.
	checkMost = 2 * time.Second
	// behindMost is how long DELETEs may wait to be checked until nothing is created any more. Each recomputation takes the longer the more
	// objects there are, so a busy machine would fall behind ever more.
	behindMost = time.Minute
	// faultsMost is how many faults are reported.
	faultsMost = 20
)

// lags are how far behind Winnow's view of other objects, owners and quotas may be when it sends a DELETE. The promise is only that
// Winnow deletes nothing once a watch has been silent for 90 s; after a restart of the API server it takes some seconds until Winnow
// watches again.
var lags = []time.Duration{0, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second, 10 * time.Second}

// underWay is how long a DELETE may be under way, from the decision until the API server receives it, while time alone changes for how long
// others are kept. Nothing is due earlier by that.
const underWay = 500 * time.Millisecond

// checker compares each DELETE of Winnow, as the audit log has it, with the model.
type checker struct {
	history *history
	uses    *uses
	trouble *faults // nil without faults

	lock    sync.Mutex
	tail    *cluster.AuditTail
	pending []deletion
	behind  atomic.Bool             // whether what is pending has waited for longer than behindMost
	done    map[types.UID]time.Time // when Winnow was answered that it has deleted this
	failed  map[types.UID]bool      // whether a DELETE had an error of the server, after which the object may be gone
	faults  []string
	known   []string // what the history has of the objects that count for each fault
	verdict verdict
}

// verdict counts what was checked.
type verdict struct {
	requests     int
	answers      map[int32]int // by status code, 0 for none
	lost, faults int
	behind       map[time.Duration]int // requests that are right by an older view alone, by its lag
	disturbed    int                   // requests that are right by a view that was still older after a fault
}

// deletion is one DELETE request.
type deletion struct {
	at      time.Time // when Winnow sent it, if that is known, or the API server received it
	uid     types.UID
	version uint64
	what    string
	// namespace is that of the object.
	namespace string
	// received is when the API server received it.
	received time.Time
}

func newChecker(from *cluster.Cluster, h *history, u *uses) *checker {
	c := checkerOf(h, u)
	c.tail = from.AuditTail(func(e *cluster.AuditEvent) bool {
		return cluster.DeletesBy("winnow")(e) && (e.ObjectRef.Resource == "jobs" || e.ObjectRef.Resource == "pods" || isContent(e))
	})
	return c
}

// checkerOf is told of each request by take.
func checkerOf(h *history, u *uses) *checker {
	return &checker{
		history: h, uses: u, done: map[types.UID]time.Time{}, failed: map[types.UID]bool{},
		verdict: verdict{answers: map[int32]int{}, behind: map[time.Duration]int{}},
	}
}

// run checks until the context ends.
func (c *checker) run(ctx context.Context) {
	for poll.Pause(ctx, time.Second) == nil {
		c.lock.Lock()
		c.pull()
		now := time.Now()
		c.check(now.Add(-checkLag), now.Add(checkMost))
		c.checkUses(now.Add(-checkLag))
		past := now
		if len(c.pending) > 0 && c.pending[0].at.Before(past) {
			past = c.pending[0].at
		}
		c.behind.Store(now.Sub(past) > behindMost)
		past = past.Add(-c.trouble.lagMost() - 2*checkLag)
		c.history.forget(past)
		maps.DeleteFunc(c.done, func(_ types.UID, at time.Time) bool { return at.Before(past) })
		c.lock.Unlock()
	}
}

// finish checks all that is left.
func (c *checker) finish() (verdict, []string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.pull()
	now := time.Now()
	c.check(now, now.Add(time.Hour))
	c.checkUses(now)
	return c.verdict, c.faults
}

// pull reads on in the audit log. What was deleted is gone from then on.
func (c *checker) pull() {
	events, err := c.tail.Next()
	if err != nil {
		c.fault("audit log: %v", err)
	}
	for i := range events {
		c.take(&events[i])
	}
	slices.SortStableFunc(c.pending, func(a, b deletion) int { return a.at.Compare(b.at) })
}

func (c *checker) take(e *cluster.AuditEvent) {
	sent := c.trouble.sent(e)
	d := deletion{
		at: sent.At, received: e.RequestReceivedTimestamp.Time, namespace: e.ObjectRef.Namespace,
		what: fmt.Sprintf("%s %s/%s by %s", e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name, e.UserAgent),
	}
	code := int32(0)
	if e.ResponseStatus != nil {
		code = e.ResponseStatus.Code
	}
	c.verdict.requests++
	c.verdict.answers[code]++
	var err error
	if d.uid, d.version, err = preconditions(e); err != nil {
		if code == http.StatusOK {
			c.fault("%s: %v", d.what, err)
		}
		return // Its sender was cut off before the body was sent, and it was refused.
	}
	if before, again := c.done[d.uid]; again && d.at.After(before) && !c.trouble.within(before, d.at, d.resource()) {
		c.fault("%s: deleted a second time, %v after it was answered", d.what, d.at.Sub(before))
	}
	if isContent(e) {
		c.uses.take(e, d.at)
		return
	}
	if code == http.StatusOK {
		c.history.gone(d.uid, d.received, e.StageTimestamp.Time)
		if !sent.Disturbed {
			c.done[d.uid] = e.StageTimestamp.Time
		}
	}
	if code == 0 || code >= http.StatusInternalServerError {
		c.failed[d.uid] = true
	}
	c.pending = append(c.pending, d)
}

// resource is that of the object.
func (d *deletion) resource() string {
	resource, _, _ := strings.Cut(d.what, " ")
	return resource
}

// preconditions are the state that a DELETE is for. It must name both.
func preconditions(e *cluster.AuditEvent) (types.UID, uint64, error) {
	options, err := cluster.DeleteOptions(e)
	if err != nil {
		return "", 0, err
	}
	p := options.Preconditions
	if p == nil || p.UID == nil || p.ResourceVersion == nil {
		return "", 0, errors.New("it lacks preconditions")
	}
	version, err := strconv.ParseUint(*p.ResourceVersion, 10, 64)
	return *p.UID, version, err
}

// read brings the history up to date with the audit log.
func (c *checker) read() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.pull()
}

// check checks the requests that were received until a time, but ends at the deadline.
func (c *checker) check(until, deadline time.Time) {
	for len(c.pending) > 0 && c.pending[0].at.Before(until) && time.Now().Before(deadline) {
		first := c.pending[0].at
		n := slices.IndexFunc(c.pending, func(d deletion) bool { return d.at.After(first.Add(together)) || !d.at.Before(until) })
		if n < 0 {
			n = len(c.pending)
		}
		c.pending = c.pending[c.checkTogether(first, c.pending[:n], deadline):]
	}
}

// checkUses checks the requests for ConfigMaps and Secrets that were received until a time.
func (c *checker) checkUses(until time.Time) {
	for _, fault := range c.uses.check(until) {
		c.fault("%s", fault)
	}
}

// checkTogether checks DELETEs by the newest policies and by what there was at the first of them, which is enough for most. It checks each
// of the others alone, which may take a second. All may follow what was newest then, since they are within a second. It returns how many it
// checked before the deadline, at least one.
func (c *checker) checkTogether(first time.Time, all []deletion, deadline time.Time) int {
	changes := c.history.inForce(first)
	if len(changes) == 0 {
		c.fault("%s: before there was any policy", all[0].what)
		return len(all)
	}
	w := c.history.world(first, changes[0], view{})
	w.Objects = slices.DeleteFunc(w.Objects, func(f *lifecycle.Fact) bool { // The model takes long with all of them.
		return !slices.ContainsFunc(all, func(d deletion) bool { return changes[0].countTogether(f.Namespace, d.namespace) })
	})
	answers, versions := w.Answers(), map[types.UID]uint64{}
	for _, f := range w.Objects {
		versions[f.UID] = f.ResourceVersion
	}
	for i, d := range all {
		c.checkOne(d, answers, versions)
		if !time.Now().Before(deadline) {
			return i + 1
		}
	}
	return len(all)
}

// checkOne checks a DELETE by the answers for these versions of the objects, if they are enough.
func (c *checker) checkOne(d deletion, answers map[types.UID]oracle.Answer, versions map[types.UID]uint64) {
	fact, outdated := c.history.find(d.uid, d.version, d.at)
	switch {
	case fact == nil:
		c.fault("%s: its precondition names a state %d of %s that nobody wrote", d.what, d.version, d.uid)
	case outdated && c.accepted(d):
		c.fault("%s: state %d was deleted after a newer one was acknowledged", d.what, d.version)
	case c.history.isHeld(d.uid, d.at) && !c.trouble.lagged(c.history.holdOf(d.uid), d.at):
		c.fault("%s at %s waits for approval", d.what, d.at.Format(time.StampMilli))
	case versions[d.uid] == d.version && answers[d.uid].Action == oracle.Delete:
	default:
		c.checkAlone(d, fact)
	}
}

// views are those in which a DELETE in a namespace may be right, from the one that lags least.
func views(namespace string, lags []time.Duration) (out []view) {
	for _, lag := range lags {
		for _, annotated := range []bool{false, true} {
			out = append(out, view{lag: lag, annotated: annotated}, view{lag: lag, first: true, annotated: annotated},
				view{lag: lag, annotated: annotated, fewest: namespace})
			if lag > 0 && lag <= underWay {
				out = append(out, view{lag: lag, annotated: annotated, earlier: lag})
			}
		}
	}
	return out
}

// accepted reports whether this request is what ended the object.
func (c *checker) accepted(d deletion) bool {
	c.history.lock.Lock()
	defer c.history.lock.Unlock()
	o := c.history.objects[d.uid]
	last := o.states[len(o.states)-1]
	return last.is == nil && last.sent.Equal(d.received)
}

// checkAlone looks for a view of the other objects in which the DELETE was right, one that lags ever more, under each of the policies that
// it may follow. The object itself is in the state that the precondition names.
func (c *checker) checkAlone(d deletion, fact *lifecycle.Fact) {
	changes := c.history.inForce(d.at)
	var answers []oracle.Answer // by the newest view
	for _, v := range views(fact.Namespace, c.trouble.lagsAt(d.at)) {
		for _, change := range changes {
			w := c.history.world(d.at, change, v)
			w.Objects = append(slices.DeleteFunc(w.Objects, func(f *lifecycle.Fact) bool {
				return f.UID == d.uid || !change.countTogether(f.Namespace, fact.Namespace)
			}), fact)
			answer := w.Answers()[d.uid]
			if answer.Action == oracle.Delete {
				if v.lag > lags[len(lags)-1] {
					c.verdict.disturbed++
				} else {
					c.verdict.behind[v.lag]++
				}
				return
			}
			answers = append(answers, answer)
		}
	}
	if len(c.known) < faultsMost {
		c.known = append(c.known, d.what+" at "+d.at.Format(time.RFC3339Nano)+"\n"+c.history.tell(d.at, func(namespace string) bool {
			return changes[0].countTogether(namespace, fact.Namespace)
		}))
	}
	c.fault("%s at %s: %s must stay: %+v under %s",
		d.what, d.at.Format(time.StampMilli), inJSON(fact), answers[:len(changes)], describe(changes, fact.Namespace))
}

// ghosts finds what is gone without an event in the audit log: deleted when the API server was killed, before it could write one. After
// an outage of etcd there may be an event of a request that seemed to fail, which is checked like all others.
func (c *checker) ghosts(killed time.Time, there map[types.UID]bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.pull()
	for uid, name := range c.history.left() {
		if there[uid] {
			continue
		}
		c.history.lock.Lock()
		fact := c.history.objects[uid].last()
		c.history.lock.Unlock()
		c.history.gone(uid, killed, killed)
		if c.failed[uid] {
			continue
		}
		c.verdict.lost++
		what := name + " by a request without an event in the audit log"
		c.pending = append(c.pending, deletion{killed, uid, fact.ResourceVersion, what, fact.Namespace, killed})
	}
}

func (c *checker) fault(format string, args ...any) {
	c.verdict.faults++
	if len(c.faults) < faultsMost {
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
}

// describe tells of the policies that a namespace had.
func describe(changes []change, namespace string) string {
	var out []string
	for _, c := range changes {
		text := fmt.Sprintf("[acknowledged %s: labels %s", c.acked.Format(time.StampMilli), inJSON(c.namespaces[namespace]))
		for key, p := range c.policies {
			if key.Namespace == namespace {
				text += fmt.Sprintf("; %s %s", key.Name, inJSON(p.Spec))
			}
		}
		for name, p := range c.cluster {
			text += fmt.Sprintf("; cluster policy %s %s", name, inJSON(p.Spec))
		}
		out = append(out, text+"]")
	}
	return strings.Join(out, " or ")
}

// overdue are the objects that the model would delete by these policies, by what was last written of all, and that are in there.
func (h *history) overdue(now time.Time, c change, there map[types.UID]bool) map[types.UID]string {
	world := h.world(now, c, view{})
	out, answers := map[types.UID]string{}, world.Answers()
	for _, f := range world.Objects {
		if a := answers[f.UID]; a.Action == oracle.Delete && there[f.UID] && !h.isHeld(f.UID, now) {
			out[f.UID] = fmt.Sprintf("%s %s/%s (%s by %s)", f.Resource, f.Namespace, f.Name, a.Reason, a.By)
		}
	}
	return out
}

// inBoth are the names of what was overdue at both times.
func inBoth(before, now map[types.UID]string) (out []string) {
	for uid, name := range now {
		if before[uid] != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
