// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// TestSize: what a record takes in etcd, as the documentation says it. Names and UIDs are as random as those of Jobs of a CronJob.
func TestSize(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	uid := func() types.UID {
		return types.UID(fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", random.Uint32(), random.IntN(1<<16), random.IntN(1<<12), random.IntN(1<<12),
			random.Int64N(1<<48)))
	}
	var all []record
	at, owner := now, uid()
	for i := range mostPerChunk {
		o := order("team-a", 0)
		at = at.Add(time.Duration(random.IntN(300_000_000)) * time.Microsecond)
		o.Fact.Name, o.Fact.UID, o.Fact.ResourceVersion = fmt.Sprintf("nightly-report-%d", 29_000_000+i*5), uid(), uint64(1_000_000+random.IntN(1_000_000))
		o.Fact.Controller = &lifecycle.Owner{GroupKind: schema.GroupKind{Group: "batch", Kind: "CronJob"}, Name: "nightly-report", UID: owner}
		o.Fact.Outcome, o.Rule, o.PolicyGeneration, o.Propagation = "Succeeded", "default", 3, "Background"
		o.Since, o.Due = at.Add(-time.Hour).Truncate(time.Second), at.Add(-time.Duration(random.IntN(20_000))*time.Microsecond)
		all = append(all, newRecord(o, at))
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
