// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"testing"
	"time"

	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/winnow"
)

// TestAbsence: when no replica answers any more, namespaces can be deleted after a while. When one comes back, it is served again, with all
// policies. While one replica answers, nothing is withdrawn.
func TestAbsence(t *testing.T) {
	const after = 20 * time.Second
	s := start(t, 2)
	guard, err := s.StartGuard(whole, after)
	must(t, err)
	t.Cleanup(func() { must(t, guard.Stop()) })
	kubectl(t, "create", "namespace", "absence")
	kubectl(t, "create", "namespace", "unwanted")
	kubectl(t, "apply", "-n", "absence", "-f", "../../artifacts/examples/preview.yaml")
	policies := func() string {
		return kubectl(t, "get", "cleanuppolicies", "-n", "absence", "-o", "jsonpath={range .items[*]}{.metadata.uid} {.spec}{end}")
	}
	before := policies()
	uid := field(t, apiService, "{.metadata.uid}")

	must(t, s.Replicas[0].Kill())
	must(t, poll.Pause(whole, 2*after)) // In which the guard has looked four times.
	if now := field(t, apiService, "{.metadata.uid}"); now != uid {
		t.Error("the APIService was withdrawn while one replica answers")
	}

	must(t, s.Replicas[1].Pause()) // As dead as the other one, and its connections hang.
	kubectl(t, "delete", "namespace", "unwanted", "--timeout", waitMost.String())
	if field(t, apiService, "{.metadata.uid}") != "" {
		t.Error("the namespace went, though the APIService is there")
	}
	events := kubectl(t, "get", "events", "-n", winnow.Namespace, "-o", `jsonpath={.items[?(@.reason=="APIServiceWithdrawn")].message}`)
	if events == "" {
		t.Error("there is no Event")
	}

	must(t, s.Replicas[0].Start(whole))
	must(t, s.WaitAvailable(whole))
	must(t, s.WaitServed(whole))
	if now := policies(); now != before {
		t.Errorf("policies have changed from %s to %s", before, now)
	}
	must(t, s.Replicas[1].Continue())
}

// TestNamespaceDeleted: when Winnow's own namespace is deleted, the guard and the replicas withdraw the APIService, even those that have to
// end. Else no namespace could be deleted any more, that one included.
func TestNamespaceDeleted(t *testing.T) {
	for name, guarded := range map[string]bool{"by the guard": true, "by a replica": false} {
		t.Run(name, func(t *testing.T) {
			s := start(t, 1)
			end := s.Replicas[0].Stop
			if guarded {
				guard, err := s.StartGuard(whole, time.Hour)
				must(t, err)
				must(t, s.Replicas[0].Kill())
				end = guard.Stop
			}
			kubectl(t, "delete", "namespace", winnow.Namespace, "--wait=false")
			must(t, end())
			kubectl(t, "wait", "--for=delete", "namespace/"+winnow.Namespace, "--timeout", waitMost.String())
			if field(t, apiService, "{.metadata.uid}") != "" {
				t.Error("the namespace went, though the APIService is there")
			}
		})
	}
}

// TestUnreachable: an APIService that leads nowhere is taken back by the replica that has created it.
func TestUnreachable(t *testing.T) {
	s := start(t, 1)
	s.Cut()
	kubectl(t, "delete", apiService)
	eventually(t, "the APIService is there again", func() bool { return field(t, apiService, "{.metadata.uid}") != "" })
	eventually(t, "the APIService is taken back", func() bool { return field(t, apiService, "{.metadata.uid}") == "" })
}
