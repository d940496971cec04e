// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// SetCronJob takes in the state of a CronJob.
func (e *Engine) SetCronJob(cj *lifecycle.CronJob, now time.Time) {
	e.setCronJob(e.cronJobs[cj.UID], cj, now)
}

func (e *Engine) setCronJob(before, cj *lifecycle.CronJob, now time.Time) {
	e.cronJobs[cj.UID] = cj
	if before == nil || !before.SameJobs(cj) {
		e.judgeDependents(cj.UID, now)
	}
}

// RemoveCronJob takes in that a CronJob is gone.
func (e *Engine) RemoveCronJob(uid types.UID, now time.Time) {
	delete(e.cronJobs, uid)
	e.judgeDependents(uid, now)
}

// ReplaceCronJobs takes in all CronJobs.
func (e *Engine) ReplaceCronJobs(all []*lifecycle.CronJob, now time.Time) {
	e.replaceCronJobs(all, now)
	e.cronJobsListed = true
	e.assessPending(now)
}

// ForgetCronJobs takes in that CronJobs are not observed any more.
func (e *Engine) ForgetCronJobs(now time.Time) {
	e.cronJobsListed = false
	e.replaceCronJobs(nil, now)
}

func (e *Engine) replaceCronJobs(all []*lifecycle.CronJob, now time.Time) {
	before := e.cronJobs
	e.cronJobs = make(map[types.UID]*lifecycle.CronJob, len(all))
	for _, cj := range all { // What is judged may hang on any of them.
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
