// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// evidenceDir is where what may explain a failure is kept.
const evidenceDir = "_output/soak"

// keepEvidence writes the policies with their status to files, and the log, the metrics and the goroutines of each replica.
func (w *world) keepEvidence(ctx context.Context) error {
	dir := filepath.Join(evidenceDir, time.Now().Format("150405"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	keep := func(name string, data []byte, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return os.WriteFile(filepath.Join(dir, name), data, 0o644)
	}
	var errs []error
	policies, err := w.governor.gc.CleanupPolicies(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	errs = append(errs, keep("cleanuppolicies.json", []byte(inJSON(policies)), err))
	clusterPolicies, err := w.governor.gc.ClusterCleanupPolicies().List(ctx, metav1.ListOptions{})
	errs = append(errs, keep("clustercleanuppolicies.json", []byte(inJSON(clusterPolicies)), err))
	errs = append(errs, keep("faults.txt", []byte(strings.Join(w.judge.known, "\n\n")), nil))
	for _, r := range w.server.Replicas {
		metrics, err := r.Get(ctx, "/metrics")
		errs = append(errs, keep(r.Name+".metrics", []byte(metrics), err))
		goroutines, err := r.Get(ctx, "/debug/pprof/goroutine?debug=2")
		errs = append(errs, keep(r.Name+".goroutines", []byte(goroutines), err))
		heap, err := r.Get(ctx, "/debug/pprof/heap?gc=1")
		errs = append(errs, keep(r.Name+".heap", []byte(heap), err))
		log, err := os.ReadFile(r.Process.LogFile)
		errs = append(errs, keep(r.Name+".log", log, err))
	}
	fmt.Println("Evidence is in " + dir)
	return errors.Join(errs...)
}
