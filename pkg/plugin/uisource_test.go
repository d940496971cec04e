// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

// TestExplainOfSomethingGone: the page shows the record as it shows a candidate, and nothing else; without a record, it says what is known.
func TestExplainOfSomethingGone(t *testing.T) {
	t.Setenv("KUBECONFIG", os.DevNull)
	record := v1alpha1.CleanupRecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "uid"},
		Status: v1alpha1.CleanupRecordStatus{
			Object: v1alpha1.RecordObject{Resource: "jobs.batch", Name: "gone", UID: "uid"}, Reason: "Expired",
			Policy: v1alpha1.RecordPolicy{Kind: "CleanupPolicy", Name: "ci", Generation: 1}, DeletionTime: metav1.NewMicroTime(plugintest.Now),
		},
	}
	for name, c := range map[string]struct {
		records                      []v1alpha1.CleanupRecord
		state, message, fact, onLine string
	}{
		"by Winnow": {[]v1alpha1.CleanupRecord{record}, "Deleted", "by cup/ci: its TTL had ended.", "UID uid", ""},
		"otherwise": {nil, "", "", "", "The object is gone."},
	} {
		server := httptest.NewServer(newTestCluster(t).withWinnow(nil, c.records))
		defer server.Close()
		streams, _, _, _ := genericiooptions.NewTestIOStreams()
		s := session.New(streams)
		s.Flags.APIServer, s.Flags.CacheDir = &server.URL, new(t.TempDir())
		got, err := (&uiSource{Session: s}).Explain(t.Context(), local.Object{Resource: "jobs.batch", Namespace: "team-a", Name: "gone"})
		var facts []string
		for _, f := range got.Facts {
			facts = append(facts, f.Name+" "+f.Text)
		}
		all := strings.Join(facts, "\n")
		lines := strings.Join(got.Lines, "\n")
		if err != nil || got.State != c.state || !strings.Contains(got.Message, c.message) || !strings.HasSuffix(all, c.fact) ||
			!strings.HasSuffix(lines, c.onLine) || c.onLine == "" && lines != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
