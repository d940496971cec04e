// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// SetCronJob handles a new state of a CronJob. It ignores states that are older than memory.
func (e *Engine) SetCronJob(cj *lifecycle.CronJob, now time.Time) {
	before := e.cronJobs[cj.UID]
	if before != nil && olderVersion(cj.ResourceVersion, before.ResourceVersion) {
		return
	}
	e.setCronJob(before, cj, now)
}

// setCronJob stores a state of a CronJob, and judges its Jobs if they may be affected. before is nil if the CronJob is new.
func (e *Engine) setCronJob(before, cj *lifecycle.CronJob, now time.Time) {
	e.cronJobs[cj.UID] = cj
	if before == nil || !before.SameJobs(cj) {
		e.judgeDependents(cj.UID, now)
	}
}

// RemoveCronJob handles the removal of a CronJob.
func (e *Engine) RemoveCronJob(uid types.UID, now time.Time) {
	delete(e.cronJobs, uid)
	e.judgeDependents(uid, now)
}

// ReplaceCronJobs replaces all CronJobs by those of a list.
func (e *Engine) ReplaceCronJobs(all []*lifecycle.CronJob, now time.Time) {
	e.replaceCronJobs(all, now)
	e.cronJobsListed = true
	e.assessPending(now)
}

// ForgetCronJobs forgets all CronJobs, because they are no longer observed.
func (e *Engine) ForgetCronJobs(now time.Time) {
	e.cronJobsListed = false
	e.replaceCronJobs(nil, now)
}

func (e *Engine) replaceCronJobs(all []*lifecycle.CronJob, now time.Time) {
	before := e.cronJobs
	e.cronJobs = make(map[types.UID]*lifecycle.CronJob, len(all))
	for _, cj := range all { // setCronJob judges Jobs, and needs all CronJobs for that.
		e.cronJobs[cj.UID] = cj
	}
	for _, cj := range all {
		e.setCronJob(before[cj.UID], cj, now)
		delete(before, cj.UID)
	}
	for uid := range before {
		e.judgeDependents(uid, now)
	}
}
