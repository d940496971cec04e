// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package scripts_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// TestScripts runs testdata. Each is a story: commands, and after each command what has changed on each replica. CONTRIBUTING.md says how
// to update their output.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{store: newStore(), replicas: map[string]*replica{}, config: memory.Config{HoldAbove: -1, HoldAboveTotal: -1, RemovalsEvery: 10 * time.Second}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.T, s.TestData = t, d
			return s.run()
		})
	})
}

// script is the state of a script, and the command that it runs now.
type script struct {
	*testing.T
	*datadriven.TestData
	*store
	config   memory.Config
	replicas map[string]*replica // by role
	ids      []string            // of holds; the script calls the first one h1, and so on
	known    sets.Set[string]    // the names of holds before the command
	said     []string            // the effect of the command itself
}

// roles are the names of the replicas of a script.
var roles = []string{"leader", "follower"}

// commands are the commands of scripts. An argument "a=b" has the key a.
var commands = map[string]func(*script){
	// flags default-hold-above=N default-hold-above-total=N: the flags of replicas that start later. By default, there is no limit.
	"flags": (*script).flags,
	// start [leader] [follower] [unlisted]: replicas start, and list everything. If unlisted, they do not list objects before "list".
	"start": (*script).start,
	"list":  func(s *script) { s.replica().unlisted = false },
	// lag leader|follower: the replica observes nothing more, until deliver.
	"lag":     func(s *script) { s.replica().lagging = true },
	"deliver": func(s *script) { s.replica().lagging = false },
	// crash leader|follower: nothing of the replica is left.
	"crash": (*script).crash,
	// lead follower: the follower becomes the leader.
	"lead": (*script).lead,

	// hold-writes: what leaders write of assessments is not stored, until write or release-writes.
	"hold-writes":    func(s *script) { s.held = true },
	"release-writes": func(s *script) { s.held = false },
	// write [N]: the leader's next N objects are stored, or all.
	"write": (*script).write,
	// late: what the leader that crashed last was about to write arrives now.
	"late": (*script).late,
	// delete-stored NAME...: somebody deletes stored objects.
	"delete-stored": (*script).deleteStored,
	// unreadable NAME, readable NAME: a stored object cannot be read, or can be read again.
	"unreadable": func(s *script) { s.setReadable(s.arg(0), false) },
	"readable":   func(s *script) { s.setReadable(s.arg(0), true) },
	// stored: prints what is stored.
	"stored": (*script).stored,

	// namespace NAME [KEY=VALUE...]: creates a namespace, or replaces its labels.
	"namespace": (*script).namespace,
	// cleanuppolicy NAMESPACE/NAME, clustercleanuppolicy NAME, and the spec: creates a policy, or writes the next generation.
	"cleanuppolicy":        (*script).policy,
	"clustercleanuppolicy": (*script).policy,
	"delete-policy":        func(s *script) { s.deletePolicy(s.existing()) },
	// approve NAMESPACE/NAME|NAME HOLD...: annotates a policy with the IDs of holds.
	"approve": (*script).approve,
	// jobs NAMESPACE NAME... finished=AGE: creates Jobs that finished this long ago.
	"jobs": (*script).jobs,
	// delete-jobs NAMESPACE NAME...: somebody else deletes Jobs.
	"delete-jobs": (*script).deleteJobs,

	// after DURATION: time passes.
	"after": (*script).after,
	// write-status: the leader writes the status of all policies that changed.
	"write-status": (*script).writeStatus,
	// delete [N]: the leader deletes everything that it may delete, or N objects.
	"delete": (*script).delete,
}

// run runs a command, lets all replicas observe everything that they may, and returns the changes.
func (s *script) run() string {
	command, ok := commands[s.Cmd]
	if !ok {
		s.Fatalf(s.T, "there is no command %q", s.Cmd)
	}
	s.said, s.known = nil, sets.New[string]()
	for _, id := range s.ids {
		s.known.Insert(s.alias(id))
	}
	command(s)
	s.settle()
	changes := map[string][]string{}
	for _, role := range roles {
		if r := s.replicas[role]; r != nil {
			now := s.look(r)
			changes[role], r.seen = now.since(r.seen, s), now
		}
	}
	out := slices.Concat(s.said, perReplica(changes))
	if len(out) == 0 {
		return "ok"
	}
	return strings.Join(out, "\n")
}

// arg returns an argument without a value.
func (s *script) arg(i int) string {
	if i >= len(s.CmdArgs) {
		s.Fatalf(s.T, "%s needs more arguments", s.Cmd)
	}
	return s.CmdArgs[i].Key
}

// replica returns the replica that the command names.
func (s *script) replica() *replica {
	r := s.replicas[s.arg(0)]
	if r == nil {
		s.Fatalf(s.T, "no %s runs", s.arg(0))
	}
	return r
}

// name returns the name that the command begins with.
func (s *script) name() types.NamespacedName {
	if namespace, name, ok := strings.Cut(s.arg(0), "/"); ok {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	return types.NamespacedName{Name: s.arg(0)}
}

// existing is name for a policy that must exist.
func (s *script) existing() types.NamespacedName {
	if s.policies[s.name()] == nil {
		s.Fatalf(s.T, "there is no policy %s", s.arg(0))
	}
	return s.name()
}

func (s *script) flags() {
	s.MaybeScanArgs(s.T, "default-hold-above", &s.config.HoldAbove)
	s.MaybeScanArgs(s.T, "default-hold-above-total", &s.config.HoldAboveTotal)
}

func (s *script) start() {
	for _, role := range roles {
		if s.HasArg(role) {
			s.replicas[role] = startReplica(s.store, s.config, s.HasArg("unlisted"))
		}
	}
	if s.HasArg("leader") {
		s.replicas["leader"].Lead()
	}
}

func (s *script) lead() {
	r := s.replica()
	r.Lead()
	delete(s.replicas, s.arg(0))
	s.replicas["leader"] = r
	s.said = append(s.said, "the "+s.arg(0)+" is the leader now")
}

func (s *script) crash() {
	if r := s.replica(); s.arg(0) == "leader" {
		s.unwritten = r.AssessmentsToStore(s.now)
	}
	delete(s.replicas, s.arg(0))
}

// settle lets all replicas observe and settle everything that they may, and stores what the leader writes.
func (s *script) settle() {
	for more := true; more; {
		for _, role := range roles {
			if r := s.replicas[role]; r != nil {
				r.catchUp(s.store)
			}
		}
		more = !s.held && s.writeOnce(-1) > 0
	}
}

func (s *script) namespace() {
	var labels []string
	for _, l := range s.CmdArgs[1:] {
		labels = append(labels, l.Key, l.SingleVal(s.T))
	}
	s.setNamespace(s.arg(0), labels...)
}

func (s *script) policy() {
	kind := gc.KindCleanupPolicy
	if s.Cmd == "clustercleanuppolicy" {
		kind = gc.KindClusterCleanupPolicy
	}
	if err := s.writeSpec(kind, s.name(), s.Input); err != nil {
		s.Fatalf(s.T, "%v", err)
	}
}

func (s *script) approve() {
	var ids []string
	for i := range s.CmdArgs[1:] {
		n := s.number(strings.TrimPrefix(s.arg(i+1), "h"))
		if n < 1 || n > len(s.ids) {
			s.Fatalf(s.T, "there was no hold %s", s.arg(i+1))
		}
		ids = append(ids, s.ids[n-1])
	}
	s.annotate(s.existing(), gc.AnnotationApprovedHold, strings.Join(ids, ","))
}

func (s *script) jobs() {
	var finished string
	s.ScanArgs(s.T, "finished", &finished)
	at := s.now.Add(-s.duration(finished))
	for _, a := range s.CmdArgs[1:] {
		if len(a.Vals) == 0 {
			b := testbuilders.Job(a.Key).In(s.arg(0)).WithUID(types.UID(s.arg(0) + "-" + a.Key))
			s.setJob(b.Complete(at).Fact())
		}
	}
}

func (s *script) deleteJobs() {
	for i := range s.CmdArgs[1:] {
		name := types.NamespacedName{Namespace: s.arg(0), Name: s.arg(i + 1)}
		if s.store.jobs[name] == nil {
			s.Fatalf(s.T, "there is no Job %s", name)
		}
		s.deleteJob(name)
	}
}

func (s *script) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.Fatalf(s.T, "%v", err)
	}
	return n
}

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.Fatalf(s.T, "%v", err)
	}
	return d
}

func (s *script) after() {
	s.now = s.now.Add(s.duration(s.arg(0)))
	for _, r := range s.replicas {
		r.expire(s.now)
	}
}
