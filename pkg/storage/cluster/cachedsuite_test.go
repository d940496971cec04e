// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"

	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// TestCachedSuite runs the entries that the watch cache of k8s.io/apiserver passes over etcd3, except entries that count requests to an
// etcd or reach into one, and for those that expect that reading leaves the resourceVersion as it is: here it writes a barrier.
func TestCachedSuite(t *testing.T) {
	for _, entry := range []suiteEntry{
		{"Create", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestCreate(ctx, t, s, s.checkStored)
		}},
		{"Get", pods, func(ctx context.Context, t *testing.T, s *suiteStore) { storagetesting.RunTestGet(ctx, t, s) }},
		{"UnconditionalDelete", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestUnconditionalDelete(ctx, t, s)
		}},
		{"ConditionalDelete", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestConditionalDelete(ctx, t, s)
		}},
		{"DeleteWithSuggestion", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestDeleteWithSuggestion(ctx, t, s)
		}},
		{"DeleteWithSuggestionAndConflict", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestDeleteWithSuggestionAndConflict(ctx, t, s)
		}},
		{"DeleteWithSuggestionOfDeletedObject", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestDeleteWithSuggestionOfDeletedObject(ctx, t, s)
		}},
		{"ValidateDeletionWithSuggestion", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestValidateDeletionWithSuggestion(ctx, t, s)
		}},
		{"PreconditionalDeleteWithSuggestion", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestPreconditionalDeleteWithSuggestion(ctx, t, s)
		}},
		{"ListPaging", pods, func(ctx context.Context, t *testing.T, s *suiteStore) { storagetesting.RunTestListPaging(ctx, t, s) }},
		{"GetListNonRecursive", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestGetListNonRecursive(ctx, t, increaseRevision, s)
		}},
		{"GetListRecursivePrefix", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestGetListRecursivePrefix(ctx, t, s)
		}},
		{"ListPaginationRareObject", clusterPods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestListPaginationRareObject(ctx, t, s, nil)
		}},
		{"NamespaceScopedList", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestNamespaceScopedList(ctx, t, s)
		}},
		{"GuaranteedUpdateWithConflict", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestGuaranteedUpdateWithConflict(ctx, t, s)
		}},
		{"GuaranteedUpdateWithSuggestionAndConflict", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict(ctx, t, s)
		}},
		{"Watch", pods, func(ctx context.Context, t *testing.T, s *suiteStore) { storagetesting.RunTestWatch(ctx, t, s) }},
		{"ClusterScopedWatch", clusterPods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestClusterScopedWatch(ctx, t, s)
		}},
		{"NamespaceScopedWatch", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestNamespaceScopedWatch(ctx, t, s)
		}},
		{"DeleteTriggerWatch", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestDeleteTriggerWatch(ctx, t, s)
		}},
		{"WatchFromNonZero", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestWatchFromNonZero(ctx, t, s)
		}},
		{"DelayedWatchDelivery", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestDelayedWatchDelivery(ctx, t, s)
		}},
		{"WatcherTimeout", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestWatcherTimeout(ctx, t, s)
		}},
		{"WatchDeleteEventObjectHaveLatestRV", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV(ctx, t, s)
		}},
		{"WatchInitializationSignal", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestWatchInitializationSignal(ctx, t, s)
		}},
		{"WatchDispatchBookmarkEvents", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, true)
		}},
		{"WatchBookmarksWithCorrectResourceVersion", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion(ctx, t, s)
		}},
		{"SendInitialEventsBackwardCompatibility", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunSendInitialEventsBackwardCompatibility(ctx, t, s)
		}},
		{"WatchSemantics", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunWatchSemantics(ctx, t, s)
		}},
	} {
		t.Run(entry.name, func(t *testing.T) {
			entry.run(context.Background(), t, newCachedSuiteStore(t, entry.served))
		})
	}
}
