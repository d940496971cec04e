// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// parse returns the options after these flags.
func parse(t *testing.T, args ...string) *Options {
	t.Helper()
	o := NewOptions()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	sections := o.Flags()
	for _, section := range sections.FlagSets {
		flags.AddFlagSet(section)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestValidate(t *testing.T) {
	for args, want := range map[string]string{ // want is part of the error; "" for none
		"":                                  "",
		"--tls-cert-file=a":                 `--tls-cert-file ("a") and --tls-private-key-file ("") must be given together`,
		"--secure-port=0":                   "--secure-port must not be 0",
		"--secure-port=70000":               "--secure-port 70000",
		"--concurrent-deletions=0":          "--concurrent-deletions is 0, it must be from 1 to 1024",
		"--concurrent-deletions=5000":       "--concurrent-deletions is 5000",
		"--max-policies-per-namespace=-1":   "",
		"--max-policies-per-namespace=-2":   "--max-policies-per-namespace is -2, it must be -1 for any number, or at least 0",
		"--protected-namespaces=a,b-c":      "",
		"--protected-namespaces=a,B":        `"B" is no name of a namespace`,
		"--leader-elect-lease-duration=10s": "--leader-elect-lease-duration (10s) must be longer than --leader-elect-renew-deadline (10s)",
		"--leader-elect-retry-period=9s":    "--leader-elect-renew-deadline (10s) must be longer than 1.2 times --leader-elect-retry-period (9s)",
		"--leader-elect-retry-period=0s":    "--leader-elect-retry-period is 0s",
		"--leader-elect-lease-duration=900ms --leader-elect-renew-deadline=500ms --leader-elect-retry-period=100ms": "at least 1s",
		"--leader-elect-resource-lock=endpoints":                      `--leader-elect-resource-lock is "endpoints"`,
		"--leader-elect-resource-name=":                               "must not be empty",
		"--namespace=A":                                               `--namespace: "A" is no name of a namespace`,
		"--service-port=0":                                            "--service-port is 0: must be between 1 and 65535",
		"--tls-cert-file=a --tls-private-key-file=b":                  "--tls-cert-file needs --tls-ca-file, with the certificate authority for the APIService, or --register=false",
		"--tls-cert-file=a --tls-private-key-file=b --tls-ca-file=c":  "",
		"--tls-cert-file=a --tls-private-key-file=b --register=false": "",
		"--tls-ca-file=c":                                             "--tls-ca-file needs --tls-cert-file and --tls-private-key-file",
		"-v=7":                                                        "",
		"-v=8":                                                        "-v is 8: above 7, the keys of Winnow's certificates would be in the log",
		"-v=8 --register=false":                                       "",
		"--certificate-lifetime=59s":                                  "--certificate-lifetime is 59s, it must be at least 1m0s",
		"--certificate-authority-lifetime=0s":                         "--certificate-authority-lifetime is 0s",
		"--leader-elect=false --leader-elect-lease-duration=1s":       "",
		"--notify-url=https://events.example.org/winnow?cluster=prod": "",
		"--notify-url=http://localhost:8080":                          "",
		"--notify-url=http://127.0.0.1:8080/a":                        "",
		"--notify-url=http://[::1]:8080":                              "",
		"--notify-url=http://events.example.org":                      "anybody on the way to events.example.org could read the events and the token; use https",
		"--notify-url=http://localhost.example.org":                   "use https",
		"--notify-url=ftp://events.example.org":                       `it begins with "ftp"; write it as https://HOST/PATH`,
		"--notify-url=events.example.org":                             "it has no host; write it as https://HOST/PATH",
		"--notify-url=https://:8443":                                  "it has no host",
		"--notify-url=https://a\x7f":                                  "it is no URL",
		"--notify-url=https://me:secret@events.example.org":           "it contains a user or a password; write a bearer token into a file",
		"--notify-url=https://events.example.org#a":                   "it has a fragment",
		"--notify-token-file=a":                                       "need --notify-url",
		"--notify-source-prefix=/prod":                                "need --notify-url",
		"--notify-url=https://a --notify-source-prefix=/clusters/a":   "",
		"--notify-url=https://a --notify-source-prefix=https://a.b/c": "",
		"--notify-url=https://a --notify-source-prefix=prod":          `--notify-source-prefix is "prod"; write it as /PATH or https://HOST/PATH`,
		"--notify-url=https://a --notify-source-prefix=/prod/":        "without a slash at the end",
		"--notify-url=https://a --notify-source-prefix=https://a?b=c": "write it as /PATH",
		"--notify-ca-file=a":                                          "need --notify-url",
		"--notify-url=https://a --notify-client-cert-file=c":          `--notify-client-cert-file ("c") and --notify-client-key-file ("") must be given together`,
		"--notify-url=https://a --notify-ca-file=a --notify-token-file=b --notify-client-cert-file=c --notify-client-key-file=d": "",
		"--etcd-servers=http://127.0.0.1:2379":                            "",
		"--etcd-servers=http://127.0.0.1:2379 --max-requests-inflight=-1": "--max-requests-inflight",
		"--enable-admission-plugins=Nothing":                              `plugin "Nothing" is unknown`,
	} {
		err := parse(t, strings.Fields(args)...).Validate()
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", args, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want %q", args, err, want)
		}
	}
}

// TestSecretsAreNotRepeated: an error is in the log of the Pod, where more people read it than the flags.
func TestSecretsAreNotRepeated(t *testing.T) {
	for _, url := range []string{"https://me:hunter2@a", "ftp://a/hunter2", "http://a/hunter2", "/hunter2", "https://a/hunter2\x7f", "https://a/hunter2#b"} {
		o := NotifyOptions{URL: url}
		if errs := o.Validate(); len(errs) != 1 || strings.Contains(errs[0].Error(), "hunter2") {
			t.Errorf("%s: %v", url, errs)
		}
	}
}

func TestDefaults(t *testing.T) {
	o := parse(t)
	if o.usesEtcd() {
		t.Error("etcd is used without --etcd-servers")
	}
	if o.MaxPoliciesPerNamespace != 50 {
		t.Errorf("a namespace takes %d policies", o.MaxPoliciesPerNamespace)
	}
	o.Complete()
	if e := o.Controller.LeaderElection; !e.LeaderElect || e.ResourceNamespace != "winnow-system" || e.ResourceName != "winnow" {
		t.Errorf("leader election: %+v", e)
	}
	if o.Controller.ConcurrentDeletions != 64 {
		t.Errorf("%d deletions at once", o.Controller.ConcurrentDeletions)
	}
	if s := o.Service; !s.Register || s.Namespace != "winnow-system" || o.serverName() != "winnow.winnow-system.svc" {
		t.Errorf("registration: %+v", s)
	}
	// RecommendedOptions refuses an order without one of the plugins that apiserver registers.
	if plugins := o.Recommended.Admission.RecommendedPluginOrder; !slices.Contains(plugins, "MutatingAdmissionPolicy") {
		t.Errorf("admission plugins: %v", plugins)
	}
}

// TestUsableFlags refuses stock flags that would do nothing.
func TestUsableFlags(t *testing.T) {
	sections := NewOptions().Flags()
	for _, name := range []string{"storage-media-type", "storage-backend", "cert-dir"} {
		for section, flags := range sections.FlagSets {
			if flags.Lookup(name) != nil {
				t.Errorf("--%s is in section %q", name, section)
			}
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	help := output(t, "--help")
	for _, want := range []string{
		"Usage:\n  winnow-apiserver [flags]", "Cluster flags:", "Controller flags:", "Leader election flags:", "Secure serving flags:", "Authentication flags:",
		"Authorization flags:", "Admission flags:", "Audit flags:", "Registration flags:", "Features flags:", "Notifications flags:", "Logs flags:", "Global flags:",
		"--kubeconfig", "--authentication-kubeconfig", "--authorization-kubeconfig", "--bind-address", "--secure-port", "--tls-cert-file",
		"--tls-private-key-file", "--tls-ca-file", "--register", "--etcd-servers", "--concurrent-deletions", "--leader-elect", "--protected-namespaces", "--logging-format", "--version",
		"--notify-url", "--enable-priority-and-fairness", "--audit-policy-file", "--feature-gates",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("no %q in --help", want)
		}
	}
	for _, without := range []string{"--watch-cache", "--storage-media-type"} { // They would have no effect.
		if strings.Contains(help, without) {
			t.Errorf("%s in --help", without)
		}
	}
	if got := output(t, "--version"); !strings.HasPrefix(got, "winnow-apiserver version v0.0.0-dev (") {
		t.Errorf("--version says %q", got)
	}
}

func output(t *testing.T, args ...string) string {
	t.Helper()
	cmd := NewCommand(context.Background())
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestNamespaceOfTheLease: the Lease is in Winnow's namespace unless a flag says otherwise.
func TestNamespaceOfTheLease(t *testing.T) {
	for args, want := range map[string]string{
		"--namespace=cleanup": "cleanup",
		"--namespace=cleanup --leader-elect-resource-namespace=leases": "leases",
	} {
		o := parse(t, strings.Fields(args)...)
		if o.Complete(); o.Controller.LeaderElection.ResourceNamespace != want {
			t.Errorf("%s: the Lease is in %s", args, o.Controller.LeaderElection.ResourceNamespace)
		}
	}
}

func TestGuardCommand(t *testing.T) {
	if help := output(t, "guard", "--help"); !strings.Contains(help, "--withdraw-after duration") || strings.Contains(help, "--secure-port") {
		t.Errorf("guard --help:\n%s", help)
	}
	cmd := NewCommand(t.Context())
	cmd.SilenceErrors = true
	cmd.SetArgs([]string{"guard", "--withdraw-after=0s"})
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "to never withdraw the APIService, run no guard") {
		t.Errorf("got %v", err)
	}
}

func TestWrongFlag(t *testing.T) {
	cmd := NewCommand(context.Background())
	cmd.SilenceErrors = true
	cmd.SetArgs([]string{"--etcd-server=a"})
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "unknown flag: --etcd-server; winnow-apiserver --help") {
		t.Errorf("got %v", err)
	}
}
