// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin"
	"github.com/winnow-dev/winnow/test/cluster"
)

// window is the terminal of somebody who runs the plugin.
type window struct {
	master, slave *os.File
	lock          sync.Mutex
	written       bytes.Buffer
}

func openWindow(t *testing.T, columns, rows uint16) *window {
	t.Helper()
	master, slave, err := pty.Open()
	must(t, err)
	w := &window{master: master, slave: slave}
	w.resize(t, columns, rows)
	go func() {
		part := make([]byte, 4096)
		for {
			n, err := master.Read(part)
			w.lock.Lock()
			w.written.Write(part[:n])
			w.lock.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _, _ = master.Close(), slave.Close() })
	return w
}

func (w *window) resize(t *testing.T, columns, rows uint16) {
	t.Helper()
	must(t, pty.Setsize(w.master, &pty.Winsize{Cols: columns, Rows: rows}))
}

func (w *window) text() string {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.written.String()
}

// frame returns the lines that were drawn last, without colours.
func (w *window) frame() []string {
	for _, drawn := range slices.Backward(strings.Split(w.text(), "\x1b[H")) {
		if whole, _, ok := strings.Cut(drawn, "\x1b[J"); ok {
			bare := codes.ReplaceAllString(whole, "")
			return strings.Split(bare, "\n")
		}
	}
	return nil
}

// codes are the escape codes of a terminal, and what it adds to ends of lines.
var codes = regexp.MustCompile("\x1b\\[[0-9]*[mK]|\r")

// topped is what top prints as JSON.
type topped struct {
	Rows []struct {
		Namespace, ClusterPolicy       string
		Candidates, Due, Held, Deleted int64
		Capacity                       struct {
			Policy, Rule, Resource string
			Objects, MaxObjects    int64
		}
	}
	Incomplete []string
}

// topAs runs top for a user, and returns what it prints.
func topAs(t *testing.T, kubeconfig string, out *os.File, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	streams, _, stdoutBuffer, errOut := genericiooptions.NewTestIOStreams()
	if out != nil {
		streams.Out = out
	}
	args = append([]string{"top", "--kubeconfig", kubeconfig, "--cache-dir", filepath.Join(t.TempDir(), "cache")}, args...)
	code = plugin.Run(t.Context(), args, streams)
	return stdoutBuffer.String(), errOut.String(), code
}

// TestTopWhileABacklogDrains: in a window, the readings and the bar follow a backlog until it is gone. The window may change its size, and
// the terminal is as before when the command ends. The user may read one namespace, and top only reads.
func TestTopWhileABacklogDrains(t *testing.T) {
	t.Parallel()
	const slowly = 20 // deletions a minute, so that the backlog is not gone before it was seen to drain
	g := newGroup()
	ns := g.namespace(t)
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{
		Guardrails:       &v1alpha1.Guardrails{MaxDeletionsPerMinute: new(int64(slowly))},
		TTLAfterFinished: ttl("1d"),
	})
	user := "top-" + ns
	kubeconfig, err := suite.KubeconfigFor(user)
	must(t, err)
	kubectl(t, "create", "rolebinding", "viewer", "-n", ns, "--clusterrole=view", "--user="+user)
	const jobs, kept, others = 50, 10, 3
	finishedJobs(t, ns, jobs, labelled("app", "few"))
	few := v1alpha1.CleanupRule{
		Name: "few", Resources: []string{"jobs.batch"}, Selector: matching(map[string]string{"app": "few"}),
		Capacity: &v1alpha1.Capacity{MaxObjects: new(int64(kept))},
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Suspend: true, Rules: []v1alpha1.CleanupRule{few}})
	each(others, func(i int) {
		j := createJob(t, ns, job(fmt.Sprint("other-", i), unmanaged, func(j *batchv1.Job) { j.Labels = nil }))
		finish(t, j, j.CreationTimestamp.Time)
	})
	eventually(t, func(context.Context) string {
		stdout, stderr, code := topAs(t, kubeconfig, nil, "-n", ns, "-o", "json")
		var got topped
		if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil || len(got.Rows) != 1 || strings.Contains(stdout+stderr, "\x1b") {
			return fmt.Sprintf("%d, %v: %s%s", code, err, stdout, stderr)
		}
		row := got.Rows[0]
		if c := row.Capacity; row.Namespace != ns || row.Candidates != jobs+others || row.Due != jobs-kept || row.Held != jobs-kept ||
			c.Policy != "cup/p" || c.Rule != "few" || c.Resource != "jobs.batch" || c.Objects != jobs || c.MaxObjects != kept {
			return fmt.Sprintf("%+v", row)
		}
		return ""
	})
	if stdout, stderr, code := topAs(t, kubeconfig, nil); code != 2 || !strings.Contains(stderr, "choose one: -n NAMESPACE") {
		t.Errorf("of all namespaces, the user is told %d: %s%s", code, stdout, stderr)
	}

	w := openWindow(t, 120, 30)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		streams := genericiooptions.IOStreams{In: w.slave, Out: w.slave, ErrOut: w.slave}
		ended <- plugin.Run(ctx, []string{
			"top", "-n", ns, "--interval=1s", "--kubeconfig", kubeconfig, "--cache-dir", filepath.Join(t.TempDir(), "cache"),
		}, streams)
	}()
	sees := func(lines int, patterns ...string) {
		t.Helper()
		eventually(t, func(context.Context) string {
			frame := w.frame()
			all := strings.Join(frame, "\n")
			for _, pattern := range patterns {
				if !regexp.MustCompile(pattern).MatchString(all) {
					return fmt.Sprintf("no %s in %q", pattern, all)
				}
			}
			if len(frame) > lines {
				return fmt.Sprintf("%d lines: %q", len(frame), all)
			}
			return ""
		})
	}
	sees(30, `(?m)^NAMESPACE +CANDIDATES +DUE +HELD +CAPACITY +RATE +NEXT$`, ns+` +53 +40 +40 +50/10 \(500%\) +- `, `(?m)^HELD: something keeps them`)
	kubectl(t, "patch", "cup", "p", "-n", ns, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	sees(30, ns+` +[0-9]+ +[1-9][0-9]* +0 .* [1-9][0-9]*/min +now`, `(?m)^Due \[#+-*\] [1-9][0-9]* of [1-9][0-9]* gone, [1-9][0-9]* left, about [0-9]+`)
	w.resize(t, 40, 3)
	sees(3, `(?m)^NAMESPACE +CANDIDATES +DUE *`)
	w.resize(t, 120, 30)
	g.change(t, `{"guardrails":{"maxDeletionsPerMinute":6000}}`)
	sees(30, ns+` +13 +0 +0 +10/10 \(100%\) +[0-9]+/min +in `)
	if all := strings.Join(w.frame(), "\n"); strings.Contains(all, "Due [") {
		t.Errorf("there is a bar without a backlog: %s", all)
	}
	interrupt()
	if code := <-ended; code != 0 {
		t.Errorf("top ended with %d: %q", code, w.text())
	}
	eventually(t, func(context.Context) string {
		_, after, restored := strings.Cut(w.text(), "\x1b[?25h\x1b[?1049l")
		if !restored || !strings.Contains(after, "10/10 (100%)") {
			return fmt.Sprintf("the terminal is not as before: %q", w.text())
		}
		return ""
	})
	checkTopAudit(t, user)
}

// checkTopAudit fails if the plugin did more than read, was refused anything, or read more than a page of candidates.
func checkTopAudit(t *testing.T, user string) {
	t.Helper()
	var events []cluster.AuditEvent
	isPage := func(e cluster.AuditEvent) bool {
		return e.ObjectRef != nil && e.ObjectRef.Resource == "cleanupcandidates"
	}
	eventually(t, func(context.Context) (why string) { // The audit log follows after a moment.
		var err error
		events, err = suite.Audit(func(e *cluster.AuditEvent) bool { return e.User.Username == user })
		must(t, err)
		pages := 0
		for _, e := range events {
			if isPage(e) {
				pages++
			}
		}
		if pages < 3 { // One for each state that the view has shown, at least.
			return fmt.Sprintf("the audit log has only %d lists of candidates", pages)
		}
		return ""
	})
	for i := range events {
		e := &events[i]
		asks := e.Verb == "create" && e.ObjectRef.Resource == "selfsubjectaccessreviews"
		if e.Verb != "get" && e.Verb != "list" && !asks || e.ResponseStatus.Code >= 400 {
			t.Errorf("top sent %s %s: %d", e.Verb, e.RequestURI, e.ResponseStatus.Code)
		}
		if isPage(*e) && !strings.Contains(e.RequestURI, "limit=250") {
			t.Errorf("top sent %s", e.RequestURI)
		}
	}
}

// TestTopOfAllNamespaces: there is a row for each namespace with objects of any policy, and one for each cluster policy, with its ceilings.
// Who may not list cluster policies sees only what the policies of the namespaces count.
func TestTopOfAllNamespaces(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns, governed := g.namespace(t), g.namespace(t)
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("1d"), Guardrails: ceilingOf(500, "jobs.batch")})
	createPolicy(t, ns, "p", jobsLimited(v1alpha1.Capacity{MaxObjects: new(int64(40))}))
	finishedJobs(t, ns, 4)
	finishedJobs(t, governed, 3)
	eventually(t, func(context.Context) string {
		stdout, stderr, code := topAs(t, suite.Kubeconfig(), nil, "-o", "json")
		var got topped
		if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil {
			return fmt.Sprintf("%d, %v: %s%s", code, err, stdout, stderr)
		}
		found := 0
		for _, row := range got.Rows {
			c := row.Capacity
			switch {
			case row.Namespace == ns && row.Candidates == 4,
				row.Namespace == governed && row.Candidates == 3,
				row.ClusterPolicy == string(g) && row.Candidates == 0 && c.Policy == "ccup/"+string(g) && c.Objects == 7 && c.MaxObjects == 500:
				found++
			}
		}
		if found != 3 {
			return stdout
		}
		return ""
	})
	stdout, _, code := topAs(t, suite.Kubeconfig(), nil)
	if code != 0 || strings.Contains(stdout, "\x1b") || !regexp.MustCompile(`(?m)^ccup/`+string(g)+` +0 +0 +0 +7/500 \(1%\) +- +in `).MatchString(stdout) ||
		!strings.Contains(stdout, "\n(all) ") {
		t.Errorf("printed once, %d:\n%s", code, stdout)
	}

	user := "top-" + ns
	kubeconfig, err := suite.KubeconfigFor(user)
	must(t, err)
	kubectl(t, "create", "clusterrole", user, "--verb=list", "--resource=cleanuppolicies.gc.winnow.dev,cleanupcandidates.gc.winnow.dev")
	kubectl(t, "create", "clusterrolebinding", user, "--clusterrole="+user, "--user="+user)
	t.Cleanup(func() {
		_, _, err := suite.Kubectl(whole, "delete", "clusterrole/"+user, "clusterrolebinding/"+user)
		must(t, err)
	})
	eventually(t, func(context.Context) string {
		stdout, stderr, code := topAs(t, kubeconfig, nil, "-o", "json")
		var got topped
		if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil || len(got.Incomplete) == 0 {
			return fmt.Sprintf("%d, %v: %s%s", code, err, stdout, stderr)
		}
		found := 0
		for _, row := range got.Rows {
			if row.ClusterPolicy != "" || row.Namespace == governed {
				t.Errorf("who may not list cluster policies sees %+v", row)
			}
			if row.Namespace == ns && row.Candidates == 4 {
				found++
			}
		}
		if found != 1 {
			return stdout
		}
		return ""
	})
}
