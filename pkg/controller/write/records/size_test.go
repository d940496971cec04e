// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestSize: what a record takes in etcd, as the documentation says it. Names and UIDs are as random as those of Jobs of a CronJob.
func TestSize(t *testing.T) {
	var all []record
	at := now
	for i := range mostPerChunk {
		at = at.Add(time.Duration(rand.IntN(300_000_000)) * time.Microsecond)
		all = append(all, newRecord(cronJobOrder("team-a", i), at))
	}
	object := newChunk("team-a", 0)
	if err := encode(object, all); err != nil {
		t.Fatal(err)
	}
	size := len(object.Object[fieldRecords].(string))
	if perRecord := size / len(all); perRecord < 60 || perRecord > 130 {
		t.Errorf("a record takes %d bytes", perRecord)
	}
	t.Logf("%d bytes for %d records", size, len(all))
}
