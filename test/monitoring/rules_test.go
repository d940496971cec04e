// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/util/teststorage"
	"sigs.k8s.io/yaml"
)

const ruleFile = "../../artifacts/monitoring/rules.yaml"

// healthy are the metrics of two replicas when all is well, every minute for three hours.
const healthy = `load 1m
	winnow_leading{instance="a"} 1x180
	winnow_leading{instance="b"} 0x180
	aggregator_unavailable_apiservice{name="v1alpha1.gc.winnow.dev"} 0x180
	winnow_apiservice_available{instance="a"} 1x180
	winnow_serving_certificate_expiration_timestamp_seconds{instance="a"} 31536000x180
	winnow_tracker_clock_in_doubt{instance="a"} 0x180
	winnow_tracker_unconfirmed{instance="a"} 0x180
	winnow_tracker_clock_skew_seconds{instance="a"} -2x180
	winnow_readings_total{result="agreed"} 0+120x180
	winnow_readings_total{result="failed"} 0+1x180
	winnow_tracker_stale_watch{instance="a",resource="pods"} 0x180
	winnow_tracker_oldest_overdue_seconds{instance="a"} 1x180
	winnow_tracker_paced_namespaces{instance="a"} 0x180
	winnow_tracker_holds{instance="a"} 0x180
	winnow_policies{ready="True",reason="Enforcing"} 7x180
	winnow_policies{ready="False",reason="NamespaceProtected"} 1x180
	winnow_deletions_total{instance="a"} 0+10x180
	winnow_deletion_lateness_seconds_bucket{instance="a",le="30.0"} 0+10x180
	winnow_deletion_lateness_seconds_count{instance="a"} 0+10x180
	winnow_deadline_lateness_seconds_bucket{instance="a",resource="jobs.batch",le="-5.0"} 0x180
	winnow_deadline_lateness_seconds_bucket{instance="a",resource="jobs.batch",le="5.0"} 0+5x180
	winnow_deadline_lateness_seconds_count{instance="a",resource="jobs.batch"} 0+5x180
	winnow_tracker_next_deadline_seconds{instance="a",object_namespace="team-a"} 600x180
`

// lateBucket is the series of the deletions that were not late.
const lateBucket = `winnow_deletion_lateness_seconds_bucket{instance="a",le="30.0"}`

// TestAlerts: each alert fires once its expression has been true for long enough, not sooner, and no other alert fires.
func TestAlerts(t *testing.T) {
	const begin = 175 * time.Hour // more than a week and six hours
	for name, c := range map[string]struct {
		series string
		from   time.Duration // when the expression becomes true
		after  time.Duration
		want   string // "" if no alert fires
		says   string // a part of its summary or description
	}{
		"all is well":       {series: healthy, after: 3 * time.Hour},
		"nobody leads":      {series: replaced(`winnow_leading{instance="a"}`, "0x180"), after: 5 * time.Minute, want: "WinnowNobodyDeletes"},
		"no metrics at all": {series: minutes("up", "1x9"), after: 5 * time.Minute, want: "WinnowNobodyDeletes"},
		"the API is unavailable": {
			series: replaced(`aggregator_unavailable_apiservice{name="v1alpha1.gc.winnow.dev"}`, "1x180"),
			after:  5 * time.Minute, want: "WinnowAPIServiceUnavailable",
		},
		"another API is unavailable": {
			series: healthy + minutes(`aggregator_unavailable_apiservice{name="v1beta1.metrics.k8s.io"}`, "1x180"), after: time.Hour,
		},
		"a certificate expires": {
			series: healthy + minutes(`winnow_serving_certificate_expiration_timestamp_seconds{instance="b"}`, "150000x180"),
			after:  time.Hour, want: "WinnowCertificateExpires", says: "expires in 1d",
		},
		"clocks in doubt": {
			series: replaced(`winnow_tracker_clock_in_doubt{instance="a"}`, "1x180"), after: time.Minute, want: "WinnowClockInDoubt",
		},
		"nothing is confirmed": {
			series: replaced(`winnow_tracker_unconfirmed{instance="a"}`, "1x180"), after: time.Minute, want: "WinnowUnconfirmed",
		},
		"clocks differ": {
			series: replaced(`winnow_tracker_clock_skew_seconds{instance="a"}`, "-15x180"),
			after:  5 * time.Minute, want: "WinnowClockSkew", says: "differ by 15s",
		},
		"readings fail": {
			series: replaced(`winnow_readings_total{result="failed"}`, "0+30x180"),
			from:   2 * time.Minute, after: 10 * time.Minute, want: "WinnowReadingsFail",
		},
		"a watch is stale": {
			series: replaced(`winnow_tracker_stale_watch{instance="a",resource="pods"}`, "1x180"),
			after:  5 * time.Minute, want: "WinnowWatchIsStale", says: "The watch of pods",
		},
		"overdue": {
			series: replaced(`winnow_tracker_oldest_overdue_seconds{instance="a"}`, "0+60x180"),
			from:   11 * time.Minute, after: 5 * time.Minute, want: "WinnowOverdue", says: "16m 0s ago",
		},
		"overdue because of maxDeletionsPerMinute": {
			series: replaced(`winnow_tracker_paced_namespaces{instance="a"}`, "3x180") +
				minutes(`winnow_tracker_oldest_overdue_seconds{instance="b"}`, "0+60x180"),
			after: time.Hour, want: "WinnowPaced", says: "3 namespaces",
		},
		"a change waits": {
			series: replaced(`winnow_tracker_holds{instance="a"}`, "2x180"), after: 15 * time.Minute, want: "WinnowChangeWaits", says: "2 changes",
		},
		"no permission": {
			series: healthy + minutes(`winnow_policies{ready="False",reason="Unauthorized"}`, "4x180"),
			after:  15 * time.Minute, want: "WinnowUnauthorized", says: "4 policies",
		},
		"policies are not ready": {
			series: healthy + minutes(`winnow_policies{ready="False",reason="Unobserved"}`, "4x180"),
			after:  15 * time.Minute, want: "WinnowPolicyNotReady", says: "not Ready: Unobserved",
		},
		"objects are held": {
			series: minutes("winnow_leading", "1x400") +
				minutes(`winnow_tracker_held{instance="a",resource="pods",reason="Refused"}`, "2x400") +
				minutes(`winnow_tracker_held{instance="a",resource="jobs.batch",reason="Refused"}`, "3x400") +
				minutes(`winnow_tracker_held{instance="b",resource="pods",reason="Refused"}`, "2x400"),
			after: 6 * time.Hour, want: "WinnowHeld", says: "there are 5",
		},
		"objects wait to be archived": {
			series: minutes("winnow_leading", "1x400") +
				minutes(`winnow_tracker_held{instance="a",resource="pods",reason="WaitingForArchive"}`, "2x400"),
			after: 6 * time.Hour,
		},
		"notices are not over": {
			series: minutes("winnow_leading", "1x400") +
				minutes(`winnow_tracker_held{instance="a",resource="pods",reason="Notified"}`, "2x400"),
			after: 6 * time.Hour,
		},
		"objects wait for a window": {
			series: minutes("winnow_leading", "1x400") +
				minutes(`winnow_tracker_held{instance="a",resource="pods",reason="OutsideWindow"}`, "2x400"),
			after: 6 * time.Hour,
		},
		"windows never open": {
			series: minutes("winnow_leading", "1x400") +
				minutes(`winnow_tracker_held{instance="a",resource="pods",reason="WindowNeverOpens"}`, "2x400"),
			after: 6 * time.Hour, want: "WinnowHeld", says: "there are 2",
		},
		"objects wait for windows for more than a week": {
			series: healthy + minutes(`winnow_tracker_oldest_outside_window_seconds{instance="a"}`, "600000x20 610000x40 0x120"),
			from:   21 * time.Minute, after: time.Hour, want: "WinnowWindowBacklog", says: "has waited for a window for 7d",
		},
		"objects wait for a weekly window": {
			series: healthy + minutes(`winnow_tracker_oldest_outside_window_seconds{instance="a"}`, "604000x180"), after: time.Hour,
		},
		"notices cannot be given": {
			series: minutes("winnow_leading", "1x400") +
				minutes(`winnow_tracker_held{instance="a",resource="pods",reason="NoticePending"}`, "2x400"),
			after: 6 * time.Hour, want: "WinnowHeld", says: "there are 2",
		},
		"nobody has archived objects in time": {
			series: minutes("winnow_leading", "1x400") +
				minutes(`winnow_tracker_held{instance="a",resource="pods",reason="NotArchived"}`, "2x400"),
			after: 6 * time.Hour, want: "WinnowHeld", says: "there are 2",
		},
		"records are dropped": {
			series: healthy + minutes(`winnow_records_total{result="dropped"}`, "0x30 1x5 7x145"), from: 31 * time.Minute,
			after: 5 * time.Minute, want: "WinnowRecordsLost",
		},
		"records wait": {
			series: healthy + minutes(`winnow_records_pending{instance="a"}`, "1500x180"), after: 5 * time.Minute, want: "WinnowRecordsLost",
		},
		"half of the deletions are late": {
			series: replaced(lateBucket, "0+5x180"), from: time.Minute, after: 15 * time.Minute, want: "WinnowBurnsBudget",
			says: `50% have missed the objective "deletions"`,
		},
		"half of the deletions are late, by a Prometheus before 3.0": {
			series: strings.NewReplacer(lateBucket, strings.Replace(lateBucket, "30.0", "30", 1)).Replace(replaced(lateBucket, "0+5x180")),
			from:   time.Minute, after: 15 * time.Minute, want: "WinnowBurnsBudget",
		},
		"three of a hundred deletions are late": {
			series: replaced(lateBucket, "0+9.7x180"), from: time.Minute, after: time.Hour, want: "WinnowBurnsBudgetSlowly",
			says: `3% have missed the objective "deletions"`,
		},
		"one of a thousand deletions is late": {series: replaced(lateBucket, "0+9.99x180"), after: 3 * time.Hour},
		"few deletions, all late": {
			series: minutes("winnow_leading", "1x180") + minutes(`winnow_deletion_lateness_seconds_bucket{le="30.0"}`, "0x180") +
				minutes("winnow_deletion_lateness_seconds_count", "0+0.05x180"),
			after: 3 * time.Hour,
		},
		"deadlines are enforced late": {
			series: replaced(`winnow_deadline_lateness_seconds_bucket{instance="a",resource="jobs.batch",le="5.0"}`, "0+4x180"),
			from:   2 * time.Minute, after: 15 * time.Minute, want: "WinnowBurnsBudget", says: `20% have missed the objective "deadlines"`,
		},
		"deadlines are enforced too soon": {
			series: replaced(`winnow_deadline_lateness_seconds_bucket{instance="a",resource="jobs.batch",le="-5.0"}`, "0+1x180"),
			from:   2 * time.Minute, after: 15 * time.Minute, want: "WinnowBurnsBudget", says: `20% have missed the objective "deadlines"`,
		},
		"the API comes and goes": {
			series: replaced(`aggregator_unavailable_apiservice{name="v1alpha1.gc.winnow.dev"}`, strings.Repeat("0x3 1x1 0x3 ", 18)),
			from:   5 * time.Minute, after: 15 * time.Minute, want: "WinnowBurnsBudget", says: `the objective "api"`,
		},
		"the leader comes and goes": {
			series: replaced(`winnow_leading{instance="a"}`, strings.Repeat("1x3 0x1 1x3 ", 18)),
			from:   5 * time.Minute, after: 15 * time.Minute, want: "WinnowBurnsBudget", says: `the objective "able"`,
		},
		"a deadline is not enforced": {
			series: replaced(`winnow_tracker_next_deadline_seconds{instance="a",object_namespace="team-a"}`, "-540-60x180"),
			from:   2 * time.Minute, after: 5 * time.Minute, want: "WinnowDeadlinesNotEnforced", says: "In team-a",
		},
		"a deadline is enforced, and one replica does not know": {
			series: healthy + minutes(`winnow_tracker_next_deadline_seconds{instance="b",object_namespace="team-a"}`, "-540-60x180"),
			after:  time.Hour,
		},
		"suspended": {
			series: minutes("winnow_leading", "1x1500\n\t"+`winnow_tracker_held{instance="a",reason="Suspended"} 2x1500`),
			after:  24 * time.Hour, want: "WinnowSuspended", says: "2 objects",
		},
		"the receiver of notifications is down": {
			series: healthy + minutes(`winnow_notification_requests_total{result="failed"}`, "0x10 20x170"),
			from:   11 * time.Minute, after: 15 * time.Minute, want: "WinnowNotificationsFail",
		},
		"a notification was dropped": {
			series: healthy + minutes(`winnow_notifications_total{type="Deletion",result="dropped"}`, "0x10 1x170"),
			from:   11 * time.Minute, after: 15 * time.Minute, want: "WinnowNotificationsFail",
		},
		"notifications arrive in the end": {
			series: healthy + minutes(`winnow_notification_requests_total{result="failed"}`, "0x10 5x170") +
				minutes(`winnow_notification_requests_total{result="ok"}`, "0+10x180") +
				minutes(`winnow_notifications_total{type="Deletion",result="sent"}`, "0+100x180"),
			after: 3 * time.Hour,
		},
		// A week ago there were 720 in six hours. Now there are 48 a minute more.
		"far more than a week ago": {
			series: deletions("0+10x2100 21250+250x60"), from: begin + 60*time.Minute, after: 15 * time.Minute, want: "WinnowDeletesMore",
		},
		// A week ago there were 3,600 in six hours. Now there are 9.8 a minute less.
		"far less than a week ago": {
			series: deletions("0+50x2100 105001+1x100"), from: begin + 290*time.Minute, after: 15 * time.Minute, want: "WinnowDeletesLess",
		},
		"as many as a week ago":             {series: deletions("0+50x2220"), from: 160 * time.Hour, after: 24 * time.Hour},
		"a few more, where there were none": {series: deletions("0x2100 1+1x60"), from: begin, after: 5 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			alerts := newAlerts(t, promqltest.LoadedStorage(t, c.series))
			for at := max(c.from-5*time.Minute, 0); at < c.from+c.after; at += time.Minute {
				if firing := alerts.at(at); len(firing) > 0 {
					t.Fatalf("fires after %s: %v", at, firing)
				}
			}
			firing := alerts.at(c.from + c.after)
			text, ok := firing[c.want]
			if c.want == "" && len(firing) > 0 || c.want != "" && (len(firing) != 1 || !ok) {
				t.Errorf("fires %v, want %q", firing, c.want)
			}
			if !strings.Contains(text, c.says) || strings.Contains(text, "<error") {
				t.Errorf("says %q, want %q", text, c.says)
			}
		})
	}
}

// TestDeletedAPIService: during a long outage, Winnow deletes the APIService and tries again every ten minutes. Meanwhile kube-apiserver
// has no metric of it, and the alert must not end.
func TestDeletedAPIService(t *testing.T) {
	const begin, hour = 5, 60
	series := replaced(`aggregator_unavailable_apiservice{name="v1alpha1.gc.winnow.dev"}`, "0x4 1x9 "+strings.Repeat("stale _x9 1x1 ", 10))
	available := `winnow_apiservice_available{instance="a"} 1x`
	series = strings.Replace(series, available+"180", available+"4 0x175", 1)
	alerts := newAlerts(t, promqltest.LoadedStorage(t, series))
	for minute := range begin + hour {
		firing := alerts.at(time.Duration(minute) * time.Minute)
		if _, ok := firing["WinnowAPIServiceUnavailable"]; ok != (minute >= begin+5) {
			t.Errorf("after %d minutes, %v", minute, firing)
		}
		if text := firing["WinnowBurnsBudget"]; strings.Contains(text, `"api"`) != (minute >= begin+15) {
			t.Errorf("after %d minutes: %q", minute, text)
		}
	}
}

// TestCannotDelete: what stops the leader from deleting Jobs and Pods counts against the objective "able", and nothing else does.
func TestCannotDelete(t *testing.T) {
	rule := slices.IndexFunc(readAll(t), func(r rulefmt.Rule) bool { return r.Record == "winnow:cannot_delete:bool" })
	expr := readAll(t)[rule].Expr
	for name, c := range map[string]struct {
		series string
		want   float64
	}{
		"all is well":                {healthy, 0},
		"nobody leads":               {replaced(`winnow_leading{instance="a"}`, "0x180"), 1},
		"clocks of the leader":       {replaced(`winnow_tracker_clock_in_doubt{instance="a"}`, "1x180"), 1},
		"clocks of a standby":        {healthy + minutes(`winnow_tracker_clock_in_doubt{instance="b"}`, "1x180"), 0},
		"readings of the leader":     {replaced(`winnow_tracker_unconfirmed{instance="a"}`, "1x180"), 1},
		"readings of a standby":      {healthy + minutes(`winnow_tracker_unconfirmed{instance="b"}`, "1x180"), 0},
		"the watch of Pods":          {replaced(`winnow_tracker_stale_watch{instance="a",resource="pods"}`, "1x180"), 1},
		"the watch of Pods, standby": {healthy + minutes(`winnow_tracker_stale_watch{instance="b",resource="pods"}`, "1x180"), 0},
		"another watch":              {healthy + minutes(`winnow_tracker_stale_watch{instance="a",resource="widgets.example.com"}`, "1x180"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			alerts := newAlerts(t, promqltest.LoadedStorage(t, c.series))
			got, err := alerts.query(t.Context(), expr, time.Unix(0, 0).Add(time.Hour))
			if err != nil || len(got) != 1 || got[0].F != c.want {
				t.Errorf("%v, %v, want %v", got, err, c.want)
			}
		})
	}
}

func minutes(series, values string) string { return "\nload 1m\n\t" + series + " " + values + "\n" }

// replaced returns the healthy metrics with other values of one series.
func replaced(series, values string) string {
	before, after, ok := strings.Cut(healthy, "\t"+series+" ")
	if !ok {
		panic(series)
	}
	_, after, _ = strings.Cut(after, "\n")
	return before + "\t" + series + " " + values + "\n" + after
}

// deletions are the deletions of one replica every five minutes for more than a week.
func deletions(values string) string {
	return "load 5m\n\twinnow_leading 1x2300\n\twinnow_deletions_total " + values + "\n"
}

// alerts evaluates the alerts on a storage.
type alerts struct {
	*testing.T
	query rules.QueryFunc
	all   []*rules.AlertingRule
}

func newAlerts(t *testing.T, s *teststorage.TestStorage) *alerts {
	engine := promqltest.NewTestEngine(t, false, 0, 1_000_000)
	a := &alerts{T: t, query: rules.EngineQueryFunc(engine, s)}
	for _, r := range inline(readAll(t)) {
		if r.Alert == "" {
			continue
		}
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
		if err != nil {
			t.Fatal(err)
		}
		a.all = append(a.all, rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), 0, labels.FromMap(r.Labels),
			labels.FromMap(r.Annotations), labels.EmptyLabels(), "", true, slog.Default()))
	}
	return a
}

// at evaluates the alerts at a time since the first sample, and returns the texts of those that fire.
func (a *alerts) at(at time.Duration) map[string]string {
	a.Helper()
	out := map[string]string{}
	for _, r := range a.all {
		if _, err := r.Eval(a.Context(), 0, time.Unix(0, 0).Add(at), a.query, nil, 0); err != nil {
			a.Fatalf("%s: %v", r.Name(), err)
		}
		for _, active := range r.ActiveAlerts() {
			if active.State == rules.StateFiring {
				out[r.Name()] += active.Annotations.Get("summary") + "\n" + active.Annotations.Get("description") + "\n"
			}
		}
	}
	return out
}

func readAll(t *testing.T) []rulefmt.Rule {
	t.Helper()
	all, err := readRules(ruleFile)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestObjectives: each objective has a budget, and its errors in every window, and the page explains it.
func TestObjectives(t *testing.T) {
	page, err := os.ReadFile("../../docs/slo.md")
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string][]string{}
	for _, r := range readAll(t) {
		if slo := r.Labels["slo"]; slo != "" {
			recorded[slo] = append(recorded[slo], r.Record)
		}
	}
	want := []string{"winnow:slo_budget:ratio"}
	for _, window := range []string{"5m", "30m", "1h", "6h", "3d"} {
		want = append(want, "winnow:slo_errors:ratio_"+window)
	}
	for slo, got := range recorded {
		if !slices.Equal(got, want) {
			t.Errorf("%s records %v, want %v", slo, got, want)
		}
		if !strings.Contains(string(page), "\n| `"+slo+"` |") {
			t.Errorf("docs/slo.md does not explain the objective %s", slo)
		}
	}
	if len(recorded) != 4 {
		t.Errorf("%d objectives", len(recorded))
	}
}

// TestAlertsAreExplained: each alert has a severity, a summary, a description, and a section that says what to do.
func TestAlertsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	all := slices.DeleteFunc(readAll(t), func(r rulefmt.Rule) bool { return r.Record != "" })
	for _, r := range all {
		if r.Alert == "" || !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) ||
			r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%+v is not complete", r)
		}
		const base = "https://github.com/winnow-dev/winnow/blob/main/docs/troubleshooting.md#"
		if want := base + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
		}
		if strings.Count(string(page), "\n### "+r.Alert+"\n") != 1 {
			t.Errorf("docs/troubleshooting.md has no section %s", r.Alert)
		}
	}
	if got := strings.Count(string(page), "\n### Winnow"); got != len(all) {
		t.Errorf("docs/troubleshooting.md has sections about %d alerts, want %d", got, len(all))
	}
}

// TestServiceMonitor: the operator of Prometheus knows all fields.
func TestServiceMonitor(t *testing.T) {
	text, err := os.ReadFile("../../artifacts/monitoring/servicemonitor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &monitoringv1.ServiceMonitor{}); err != nil {
		t.Error(err)
	}
}
