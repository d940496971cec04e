// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"

	gcv1alpha1 "github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// recordedSoon and recordedAtLast are after how long a deletion is recorded: without a fault, and whatever goes wrong. A replica that is
// killed loses what it has not stored.
const recordedSoon, recordedAtLast = 10 * time.Second, 5 * time.Minute

// deletion is a DELETE that was carried out.
type deletion struct {
	at              time.Time
	from, namespace string
	what            string
}

// records are the deletions that must be recorded, by the UID of the object.
type records map[types.UID]deletion

// forget forgets deletions whose records may be lost.
func (r records) forget(lost func(deletion) bool) {
	for uid, d := range r {
		if lost(d) {
			delete(r, uid)
		}
	}
}

// unrecorded judges whether every deletion has a record.
func (s *simulation) unrecorded() {
	stored := map[types.UID]bool{}
	answer := make(chan error, 1)
	go func() { answer <- s.replicas[0].recorded(stored) }()
	s.run(time.Now().Add(10 * time.Second))
	select {
	case err := <-answer:
		if err != nil {
			s.judge.fault("records: %v", err)
			return
		}
	default:
		s.judge.fault("records: a replica has not answered for ten seconds")
		return
	}
	for uid, d := range s.judge.records {
		if !stored[uid] && time.Since(d.at) > recordedSoon {
			s.judge.fault("no record of this at %s: %s", d.at.Format(time.TimeOnly), d.what)
		}
	}
}

// recorded asks a replica for all records.
func (r *replica) recorded(stored map[types.UID]bool) error {
	for next := ""; ; {
		var list gcv1alpha1.CleanupRecordList
		if err := r.get(policiesPath+"/cleanuprecords?continue="+url.QueryEscape(next), &list); err != nil {
			return err
		}
		for i := range list.Items {
			stored[types.UID(list.Items[i].Name)] = true
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

// get reads something as a user.
func (r *replica) get(path string, out any) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	code, data, err := r.client.do(ctx, "jane", http.MethodGet, path, nil)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%d %s", code, data)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, out)
}
