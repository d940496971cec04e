// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	gcv1alpha1 "github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/oracle"
)

// asked is how often replicas are asked. What differs each time is wrong, and not only under way.
const asked = 3

// explained is what a replica says of an object.
type explained struct {
	state, reason, mode string
	// by is as in an oracle.Answer, and at in seconds since 1970, 0 if there is none or if it is not exact.
	by string
	at int64
	// exact says that all replicas know when the object is due: none may know later than another one that a rule matches, or that something
	// is unused or over a limit.
	exact bool
}

// explain asks both replicas what they would do to each object, and why. Both must say the same, and what the model says. Since a time,
// nothing has gone wrong, and no policy has changed.
func (s *simulation) explain(since time.Time) {
	if len(s.judge.faults) > 0 {
		return
	}
	var wrong []string
	for i := range asked {
		now := s.differences(since)
		if i == 0 {
			wrong = now
		}
		wrong = slices.DeleteFunc(wrong, func(text string) bool { return !slices.Contains(now, text) })
		if len(wrong) == 0 {
			return
		}
		s.pass(controlled, nothing)
	}
	s.judge.fault("%d explanations are wrong: %v", len(wrong), wrong[:min(len(wrong), 5)])
}

// differences returns what the replicas say differently, or not as the model.
func (s *simulation) differences(since time.Time) (out []string) {
	answered, err := ask(s, time.Second, list[gcv1alpha1.CleanupCandidate], "cleanupcandidates", s.replicas...)
	if err != nil {
		return []string{err.Error()}
	}
	said := []map[types.UID]explained{explainedBy(answered[0]), explainedBy(answered[1])}
	now := time.Now()
	least, most := s.judge.settled(now, time.Time{}), s.judge.settled(now, since)
	answers := slices.Concat(answersOf(least), answersOf(most))
	looping := s.judge.returns.namespaces(least.Objects)
	shared := withHoldsOfOthers(least)
	for _, f := range least.Objects {
		if looping.Has(f.Namespace) || len(looping) > 0 && hasCeilings(least) {
			continue // A replica that has started since does not know what came back too often. So it counts others, too.
		}
		first, second := said[0][f.UID], said[1][f.UID]
		what := fmt.Sprintf("%s %s/%s", f.Resource, f.Namespace, f.Name)
		if first != second && !s.mayDiffer(f.Namespace, first, second, shared) {
			out = append(out, fmt.Sprintf("%s: %+v and %+v", what, first, second))
		}
		if first.reason == "NoticePending" && !first.exact {
			first = second // Of these two, it may know of no notice that fits.
		}
		if may := answersFor(f.UID, answers); !slices.ContainsFunc(may, first.as) && !first.between(may) {
			out = append(out, fmt.Sprintf("%s: %+v, not %+v", what, first, may))
		}
	}
	return out
}

// answersOf returns the answers of a world, and those of each policy in Preview mode.
func answersOf(w *oracle.World) []map[types.UID]oracle.Answer {
	out := []map[types.UID]oracle.Answer{w.Answers()}
	for _, previewed := range w.Previews() {
		out = append(out, previewed)
	}
	return out
}

// answersFor are the answers for one object.
func answersFor(uid types.UID, all []map[types.UID]oracle.Answer) (out []oracle.Answer) {
	for _, answers := range all {
		out = append(out, answers[uid])
	}
	return out
}

// waits are why objects that are due are kept for some time.
var waits = []string{"NoticePending", "Notified", "WaitingForArchive", "NotArchived", "OutsideWindow", "WindowNeverOpens"}

// as reports whether a replica says the same as the model, which does not know what waits for approval, or for others that go before it.
func (e explained) as(a oracle.Answer) bool {
	due := a.Action == oracle.Delete || slices.Contains(waits, a.Reason)
	states := map[string]string{"Keep": "Kept", "Wait": "Waiting", "Hold": "Held", "Await": "Terminating", oracle.Delete: "Due"}
	switch {
	case !a.IsCandidate():
		return e.state == "" && a.Action != ""
	case !e.decidedAs(a):
		return false
	case e.reason == "Held", e.reason == "Throttled":
		return e.state == "Held" && due
	case e.reason == "Notified", e.state == "Notified":
		return a.Reason == "Notified" || a.Action == "Wait"
	}
	return e.state == states[a.Action] && e.reason == a.Reason
}

// between reports whether a replica says what it must if it knows later than the judge that the rule matches, or that the object is unused,
// but not as late as it may: then the object is due, and the wait is not over.
func (e explained) between(answers []oracle.Answer) bool {
	is := func(action, reason string) bool {
		return slices.ContainsFunc(answers, func(a oracle.Answer) bool { return e.decidedAs(a) && a.Action == action && a.Reason == reason })
	}
	over := is("Hold", "NotArchived") || is(oracle.Delete, "Expired")
	return e.at == 0 && e.state == "Held" && e.reason == "WaitingForArchive" && over && is(oracle.Wait, "NotDue")
}

// decidedAs reports whether the same policy decides, for the same time. In what is said, a second is a whole one.
func (e explained) decidedAs(a oracle.Answer) bool {
	after := e.at - a.At.Unix()
	return e.by == a.By && (e.at == 0 || a.At.IsZero() || after == 0 || after == 1)
}

// tells reports whether the one replica knows of a notice, or would give one, and for the other one the object is due later than the notice
// says, or was due earlier. If that one leads one day, it gives notice once more.
func (e explained) tells(other explained) bool {
	switch {
	case e.exact:
		return false
	case e.state == "Notified" && other.state == "Waiting":
		return e.reason == other.reason
	}
	return e.reason == "NoticePending" && (other.state == "Due" || other.reason == "Held" || slices.Contains(waits, other.reason))
}

// adopts reports whether one replica holds what is due by the other one.
func (e explained) adopts(other explained) bool {
	due := other.state == "Due" || slices.Contains(waits, other.reason)
	return e.state == "Held" && e.reason == "Held" && due && e.by == other.by
}

// policy returns the policy that decides.
func (e explained) policy() string {
	name, _, _ := strings.Cut(e.by, " ")
	return name
}

// mayDiffer reports whether replicas may say this of an object, because one of them knew later that a rule matches, or has started since a
// hold began. shared are the namespaces and policies of withHoldsOfOthers.
func (s *simulation) mayDiffer(namespace string, x, y explained, shared sets.Set[string]) bool {
	return x.tells(y) || y.tells(x) ||
		(x.adopts(y) || y.adopts(x)) && (shared.Has(namespace+" "+x.policy()) || s.judge.countsDiffer(namespace, s.replicas))
}

// withHoldsOfOthers returns the namespaces and policies in which objects wait for the approval of another policy. The status does not say
// which objects. A replica that has started since takes all that was due by then for them, also what the other policy only did not delete
// because it was held.
func withHoldsOfOthers(w *oracle.World) sets.Set[string] {
	out := sets.New[string]()
	eachHold(w, func(p metav1.Object, h gc.PolicyHold) {
		if h.Policy != "" {
			out.Insert(h.Namespace + " " + strings.TrimPrefix(p.GetNamespace()+"/"+p.GetName(), "/"))
		}
	})
	return out
}

// explainedBy returns what a replica says of each object.
func explainedBy(candidates []gcv1alpha1.CleanupCandidate) map[types.UID]explained {
	out := map[types.UID]explained{}
	for i := range candidates {
		c := &candidates[i]
		e := explained{state: string(c.Status.State), reason: c.Status.Reason}
		if by := c.Status.DecidedBy; by != nil {
			e.mode = string(by.Mode)
			switch e.by = by.Name + " " + by.Rule; {
			case by.Kind == gc.KindCleanupPolicy:
				e.by = c.Namespace + "/" + e.by
			case by.Rule == "":
				e.by = "ceiling=" + by.Name
			}
		}
		counted := c.Status.After == gcv1alpha1.AfterFinished || c.Status.After == gcv1alpha1.AfterCreated
		// While an expression fails, it is not known which rules match, and replicas may have seen others match at different times.
		fails := e.reason == "ExpressionError"
		if e.exact = counted && !fails && len(c.Status.Limits) == 0; e.exact && c.Status.DueTime != nil {
			e.at = c.Status.DueTime.Unix()
		}
		out[types.UID(c.Name)] = e
	}
	return out
}
