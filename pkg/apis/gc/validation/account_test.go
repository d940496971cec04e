// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// TestAccounts: a policy can name only an account of the namespace in which it deletes.
func TestAccounts(t *testing.T) {
	for name, want := range map[string]string{
		"":                "",
		"cleaner":         "",
		"default":         "",
		"cleaner.team-a":  "",
		"team-b/cleaner":  "must be the name of a ServiceAccount, without its namespace",
		"team-b:cleaner":  "must be the name of a ServiceAccount, without its namespace",
		"cleaner\n":       "must be the name of a ServiceAccount, without its namespace",
		"cleaner\r\nX: y": "must be the name of a ServiceAccount, without its namespace",
		"Cleaner":         "must be the name of a ServiceAccount, without its namespace",
		"..":              "must be the name of a ServiceAccount, without its namespace",
		"system:serviceaccount:kube-system:job-controller": `did you mean "job-controller"?`,
		"system:masters":         "must be the name of a ServiceAccount, without its namespace",
		strings.Repeat("a", 254): "must be no more than 253 characters",
		strings.Repeat("a", 253): "",
		"clean\u00e9r":           "must be the name of a ServiceAccount, without its namespace",
	} {
		var wanted []string
		if want != "" {
			wanted = []string{want}
		}
		t.Run(name, func(t *testing.T) {
			own := policy()
			own.Spec.ServiceAccountName = name
			checkErrors(t, ValidateCleanupPolicy(own), wanted)
			checkErrors(t, ValidateClusterCleanupPolicy(clusterPolicy(func(s *gc.ClusterCleanupPolicySpec) { s.ServiceAccountName = name })), wanted)
		})
	}
}
