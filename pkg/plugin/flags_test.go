// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

func TestKeepAnnotations(t *testing.T) {
	for name, c := range map[string]struct {
		keepOptions
		key, value, err string
	}{
		"a duration":    {keepOptions{duration: "2d"}, gc.AnnotationKeepUntil, "2026-07-03T12:00:00Z", ""},
		"a day":         {keepOptions{until: "2027-01-31"}, gc.AnnotationKeepUntil, "2027-01-31T00:00:00Z", ""},
		"a time":        {keepOptions{until: "2027-01-31T12:00:00+02:00"}, gc.AnnotationKeepUntil, "2027-01-31T10:00:00Z", ""},
		"without end":   {keepOptions{forever: true}, gc.AnnotationTTL, "never", ""},
		"a past day":    {keepOptions{until: "2026-06-30"}, "", "", "is past"},
		"now":           {keepOptions{duration: "0s"}, "", "", "is past"},
		"no unit":       {keepOptions{duration: "2"}, "", "", "use for example 2d"},
		"not a day":     {keepOptions{until: "tomorrow"}, "", "", "neither a time nor a day"},
		"an odd number": {keepOptions{duration: "-2d"}, "", "", "must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.annotations(plugintest.Now)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || len(got) != 1 || got[c.key] == nil || *got[c.key] != c.value {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// TestKeepNeverShortens: an earlier time than the present one is refused.
func TestKeepNeverShortens(t *testing.T) {
	present := map[string]string{gc.AnnotationKeepUntil: "2027-01-31T00:00:00Z"}
	for until, wants := range map[string]bool{"2027-01-30T00:00:00Z": false, "2027-01-31T00:00:00Z": true, "2027-02-01T00:00:00Z": true} {
		if err := lengthens(map[string]*string{gc.AnnotationKeepUntil: &until}, present); (err == nil) != wants {
			t.Errorf("%s: %v", until, err)
		}
	}
	if err := lengthens(map[string]*string{gc.AnnotationTTL: new("never")}, present); err != nil {
		t.Error(err)
	}
}

// TestUsage: what is wrong with flags and arguments is said before anything is asked of a cluster.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"report -o table":                      "allowed formats are: json,yaml,name,wide",
		"report something":                     `kubectl winnow report takes no arguments, so it cannot use "something"; see: kubectl winnow report --help`,
		"preview policy.yaml":                  "kubectl winnow preview takes no arguments; did you mean -f policy.yaml?",
		"version policy.yaml":                  `so it cannot use "policy.yaml"`,
		"explain job/a":                        `there is no command "explain"; did you mean "why"?`,
		"report --nonsense":                    "there is no flag --nonsense; see: kubectl winnow report --help",
		"report -x":                            "there is no flag -x; see: kubectl winnow report --help",
		"report --insecure-skip-tls-verify=x":  `--insecure-skip-tls-verify="x": invalid syntax; see`,
		"reprot":                               `there is no command "reprot"; did you mean "report"? To see the commands: kubectl winnow --help`,
		"nonsense job/a":                       `there is no command "nonsense"; to see the commands: kubectl winnow --help`,
		"preview":                              "name a file that has a policy: kubectl winnow preview -f policy.yaml",
		"keep job/a":                           "say how long to keep it with one of the flags --for 2d, --until 2027-01-31 and --forever",
		"keep job/a --for 1d --forever":        "say how long to keep it with one of the flags",
		"keep --forever":                       "name one object: kubectl winnow keep job/NAME",
		"approve":                              "name one policy: kubectl winnow approve POLICY, or for a ClusterCleanupPolicy: kubectl winnow approve ccup/POLICY",
		"history a b c":                        "name one object: kubectl winnow history job/NAME",
		"why":                                  "name one object: kubectl winnow why job/NAME",
		"why a --server 127.0.0.1":             "for example job/a",
		"preview -f missing.yaml":              "Error: missing.yaml: no such file",
		"top --interval 10ms":                  "use at least 1s",
		"top -o name":                          "allowed formats are: json,yaml,wide",
		"top --interval fast":                  `--interval="fast": time: invalid duration "fast"; see: kubectl winnow top --help`,
		"restore":                              "name one object: kubectl winnow restore job/NAME",
		"restore c --server 127.0.0.1":         "for example job/c",
		"ui --port 70000":                      `--port="70000": value out of range; see: kubectl winnow ui --help`,
		"ui something":                         "kubectl winnow ui takes no arguments",
		"version something":                    "kubectl winnow version takes no arguments",
		"approve nothing/x --server 127.0.0.1": "is no kind of policy",
		"unused pods":                          "pods cannot be reported",
		"unused cm":                            "write a rule with after: Unused, and try it: kubectl winnow report -f FILE",
		"unused secrets":                       "write a rule with after: Unused",
		"unused -o wide":                       "allowed formats are: json,yaml,name,csv",
		"unused -A -o name":                    "use -o csv or -o json",
		"unused --older-than 3":                `--older-than="3" needs a unit after "3": w, d, h, m or s; use for example 90d`,
		"history --since 1month":               `--since="1month" has the unknown unit "month"; units are w, d, h, m and s; use for example 90m, 7d or 2027-01-31`,
		"test -o yaml":                         "allowed formats are: json,junit",
		"test missing.test.yaml":               "no such file",
	} {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		code := Run(t.Context(), append(strings.Fields(args), "--kubeconfig=", "--namespace=team-a"), streams)
		if all := out.String() + errOut.String(); code != exitFailed || !strings.Contains(all, want) || strings.Count(all, "\n") != 1 {
			t.Errorf("%s ended with %d: %s", args, code, all)
		}
	}
	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	if code := Run(t.Context(), []string{"keep", "job/a", "--for"}, streams); code != exitFailed || !strings.Contains(errOut.String(), "--for needs a value; see") {
		t.Errorf("a flag without its value ended with %d: %s", code, errOut)
	}
}

// TestInterrupted: Ctrl-C ends a command that waits for its input.
func TestInterrupted(t *testing.T) {
	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	in, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	streams.In = in
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- Run(ctx, []string{"report", "-f", "-", "--kubeconfig=", "--namespace=team-a"}, streams)
	}()
	if _, err := io.WriteString(writer, "x"); err != nil { // It is read, so the command waits for more.
		t.Fatal(err)
	}
	cancel()
	select {
	case code := <-ended:
		if code != exitFailed || !strings.Contains(errOut.String(), "interrupted") {
			t.Errorf("ended with %d: %s", code, errOut)
		}
	case <-time.After(time.Minute):
		t.Error("it still runs")
	}
}

// TestHelp: a new user gets from one command to the next by --help alone.
func TestHelp(t *testing.T) {
	for args, want := range map[string][]string{
		"--help": {
			`Start with "kubectl winnow report"`, "mode: Preview", "mode: Enforce", "report", "preview", "why", "top", "keep", "release", "approve",
			"ui", "completion", "version", "kubectl winnow options",
		},
		"report --help":         {"kind: CleanupPolicy", "mode: Preview", "kubectl apply -f policy.yaml", `"mode": "Enforce"`, "is an estimate"},
		"top --help":            {"every few seconds", "kubectl winnow top -n team-a", "--interval"},
		"restore --help":        {"asks", "runs-again", "no owner and no finalizers", "kubectl get cleanupcopies", "by their lifecycle", "another one instead"},
		"preview --help":        {"1 if something would, even if something else keeps it"},
		"test --help":           {"kind: PolicyTest", "partial: true", ".test.yaml or .test.yml", "2 if a test cannot run", "-o junit"},
		"ui --help":             {"It only reads, until you press a button", "do not share the address", "ssh -L"},
		"unused --help":         {"It deletes nothing", "--older-than 90d", "--exit-code", "counts as a use"},
		"__complete unused ":    {"persistentvolumeclaims"},
		"__complete report -o ": {"json", "wide"},
	} {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		list := strings.Fields(args)
		if strings.HasSuffix(args, " ") {
			list = append(list, "")
		}
		if code := Run(t.Context(), list, streams); code != 0 {
			t.Errorf("%s ended with %d", args, code)
		}
		for _, text := range want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s does not say %q:\n%s", args, text, out)
			}
		}
	}
}

// TestEverythingIsEscaped: whatever a command writes, errors of others included.
func TestEverythingIsEscaped(t *testing.T) {
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := Run(t.Context(), []string{"\x1b]0;title\x07"}, streams)
	if all := out.String() + errOut.String(); code != exitFailed || strings.ContainsAny(all, "\x1b\x07") || !strings.Contains(all, "Error: ") {
		t.Errorf("ended with %d: %q", code, all)
	}
}

func TestInScope(t *testing.T) {
	own, other := &gc.CleanupPolicy{}, &gc.CleanupPolicy{}
	own.Namespace, other.Namespace = "team-a", "team-b"
	if err := inScope(local.Drafts{Policies: []*gc.CleanupPolicy{own}}, "team-a"); err != nil {
		t.Errorf("a policy of the namespace: %v", err)
	}
	if err := inScope(local.Drafts{Policies: []*gc.CleanupPolicy{own, other}}, "team-a"); err == nil || !strings.Contains(err.Error(), `use -n team-b or -A`) {
		t.Errorf("a policy of another namespace: %v", err)
	}
}

// TestTest: the exit code says whether everything is as expected. No cluster is asked for.
func TestTest(t *testing.T) {
	const policy = `apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: ci}
spec: {ttlAfterFinished: 1h}
---
apiVersion: batch/v1
kind: Job
metadata: {name: a}
---
`
	files := map[string]string{
		"right": `{apiVersion: test.gc.winnow.dev/v1alpha1, kind: PolicyTest, now: "2026-06-01T12:00:00Z",
 expect: [{object: jobs.batch/a, state: NoCandidate, reason: NotFinished}]}`,
		"wrong": `{apiVersion: test.gc.winnow.dev/v1alpha1, kind: PolicyTest, now: "2026-06-01T12:00:00Z",
 expect: [{object: jobs.batch/a, state: Due}]}`,
		"broken": "{apiVersion: test.gc.winnow.dev/v1alpha1, kind: PolicyTest, time: now}",
	}
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name+".test.yaml"), []byte(policy+content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for args, c := range map[string]struct {
		code int
		want string
	}{
		"right":              {0, "ok "},
		"right wrong":        {1, "state is NoCandidate, want Due"},
		"right wrong broken": {2, "1 of 3 tests could not run"},
		"right -o json":      {0, `"passed": 1`},
		"wrong -o junit":     {1, `<testsuites tests="1" failures="1"`},
	} {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		list := []string{"test", "--kubeconfig=missing"}
		for _, arg := range strings.Fields(args) {
			if files[arg] != "" {
				arg = filepath.Join(dir, arg+".test.yaml")
			}
			list = append(list, arg)
		}
		if code := Run(t.Context(), list, streams); code != c.code || !strings.Contains(out.String()+errOut.String(), c.want) {
			t.Errorf("%s ended with %d: %s%s", args, code, out, errOut)
		}
	}
}
