// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
)

type suiteEntry struct {
	name   string
	served schema.GroupResource
	run    func(ctx context.Context, t *testing.T, s *suiteStore)
}

// TestSuite runs the suite that etcd3 storage passes. What is missing here is listed in the package's
// documentation.
func TestSuite(t *testing.T) {
	t.Parallel() // with the cluster of TestOnAWholeCluster, while it waits for compactions
	for _, entry := range []suiteEntry{
		{"Create", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestCreate(ctx, t, s, s.checkStored)
		}},
		{"CreateWithKeyExist", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestCreateWithKeyExist(ctx, t, s)
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
		{"DeleteWithConflict", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestDeleteWithConflict(ctx, t, s)
		}},
		{"DeleteWithSuggestionOfDeletedObject", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestDeleteWithSuggestionOfDeletedObject(ctx, t, s)
		}},
		{"ValidateDeletionWithSuggestion", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestValidateDeletionWithSuggestion(ctx, t, s)
		}},
		{"ValidateDeletionWithOnlySuggestionValid", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestValidateDeletionWithOnlySuggestionValid(ctx, t, s)
		}},
		{"PreconditionalDeleteWithSuggestion", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestPreconditionalDeleteWithSuggestion(ctx, t, s)
		}},
		{"PreconditionalDeleteWithOnlySuggestionPass", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass(ctx, t, s)
		}},
		{"DeleteWithConflictAndMissingExpectedDecodeError", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx, t, s, s.codec.fail.Store)
		}},
		{"DeleteExpectedDecodeError", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, s, s.codec.fail.Store)
		}},
		{"DeleteWithSuggestionAndMissingExpectedDecodeError", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, s)
		}},
		{"List", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestList(ctx, t, s, s.compact, false, nil)
		}},
		{"ListPaging", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestListPaging(ctx, t, s)
		}},
		{"GetListNonRecursive", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestGetListNonRecursive(ctx, t, increaseRevision, s)
		}},
		{"GetListRecursivePrefix", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestGetListRecursivePrefix(ctx, t, s)
		}},
		{"ConsistentList", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestConsistentList(ctx, t, s, increaseRevision, true, true, true)
		}},
		{"ListContinuation", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestListContinuation(ctx, t, s, nil)
		}},
		{"ListContinuationWithFilter", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestListContinuationWithFilter(ctx, t, s, nil)
		}},
		{"ListPaginationRareObject", clusterPods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestListPaginationRareObject(ctx, t, s, nil)
		}},
		{"ListInconsistentContinuation", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestListInconsistentContinuation(ctx, t, s, s.compact)
		}},
		{"ListResourceVersionMatch", clusterPods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			s.codec.nested = s.codec.get().(*storagetesting.PrefixTransformer)
			storagetesting.RunTestListResourceVersionMatch(ctx, t, s)
		}},
		{"NamespaceScopedList", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestNamespaceScopedList(ctx, t, s)
		}},
		{"GuaranteedUpdate", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestGuaranteedUpdate(ctx, t, s, s.checkStored)
		}},
		{"GuaranteedUpdateChecksStoredData", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestGuaranteedUpdateChecksStoredData(ctx, t, s)
		}},
		{"GuaranteedUpdateWithConflict", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestGuaranteedUpdateWithConflict(ctx, t, s)
		}},
		{"GuaranteedUpdateWithSuggestionAndConflict", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict(ctx, t, s)
		}},
		{"TransformationFailure", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestTransformationFailure(ctx, t, s)
		}},
		{"Stats", clusterPods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestStats(ctx, t, s, s.codec, identity.NewEncryptCheckTransformer(), false)
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
		{"WatchError", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestWatchError(ctx, t, s)
		}},
		{"WatchWithUnsafeDelete", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, consistentStore{s}, errors.New("bits flipped"))
		}},
		{"WatchContextCancel", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunTestWatchContextCancel(ctx, t, s)
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
			storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, false)
		}},
		{"SendInitialEventsBackwardCompatibility", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunSendInitialEventsBackwardCompatibility(ctx, t, s)
		}},
		{"WatchSemantics", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunWatchSemantics(ctx, t, s)
		}},
		{"WatchSemanticInitialEventsExtended", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunWatchSemanticInitialEventsExtended(ctx, t, s)
		}},
		{"WatchListMatchSingle", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunWatchListMatchSingle(ctx, t, s)
		}},
		{"WatchErrorIsBlockingFurtherEvents", pods, func(ctx context.Context, t *testing.T, s *suiteStore) {
			storagetesting.RunWatchErrorIsBlockingFurtherEvents(ctx, t, s)
		}},
	} {
		t.Run(entry.name, func(t *testing.T) {
			entry.run(context.Background(), t, newSuiteStore(t, entry.served))
		})
	}
}
