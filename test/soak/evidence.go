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

const heapProfile = "/debug/pprof/heap?gc=1"

// keepEvidence writes the policies with their status to files, and the log, the metrics, the goroutines and the heap of each
// replica, the latter as it was at the start, too: go tool pprof -base tells what grew.
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
	errs = append(errs, keep("faults.txt", []byte(strings.Join(w.checker.known, "\n\n")), nil))
	for _, r := range w.server.Replicas {
		metrics, err := r.Get(ctx, "/metrics")
		errs = append(errs, keep(r.Name+".metrics", []byte(metrics), err))
		goroutines, err := r.Get(ctx, "/debug/pprof/goroutine?debug=2")
		errs = append(errs, keep(r.Name+".goroutines", []byte(goroutines), err))
		errs = append(errs, keep(r.Name+"-start.heap", w.heaps[r.Name], nil))
		heap, err := r.Get(ctx, heapProfile)
		errs = append(errs, keep(r.Name+"-end.heap", []byte(heap), err))
		log, err := os.ReadFile(r.Process.LogFile)
		errs = append(errs, keep(r.Name+".log", log, err))
	}
	fmt.Println("Evidence is in " + dir)
	return errors.Join(errs...)
}

// keepHeaps remembers the heap of each replica, as evidence.
func (w *world) keepHeaps(ctx context.Context) error {
	w.heaps = map[string][]byte{}
	for _, r := range w.server.Replicas {
		heap, err := r.Get(ctx, heapProfile)
		if err != nil {
			return fmt.Errorf("heap of %s: %w", r.Name, err)
		}
		w.heaps[r.Name] = []byte(heap)
	}
	return nil
}
