// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/poll"
)

// bareCommand is the hidden subcommand: a loop that deletes the Jobs of a list. It is a separate process, so that its CPU time does not
// include the benchmark, which watches.
const bareCommand = "bare"

// bareJob is what the loop knows of a Job.
type bareJob struct {
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
}

// runBare takes a kubeconfig, a file with the list, the number of workers, and when to begin as nanoseconds of Unix time. It deletes all
// as Winnow does, with the same preconditions, and nothing else. Then it waits, so that its CPU time can be read.
func runBare(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("%s takes a kubeconfig, a list, workers and a time, not %q", bareCommand, args)
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	var all []bareJob
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	workers, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	begin, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return err
	}
	if _, err := client.Discovery().ServerVersion(); err != nil { // Winnow has a connection by then, too.
		return err
	}
	if err := poll.Pause(ctx, time.Until(time.Unix(0, begin))); err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	var deletes errgroup.Group
	deletes.SetLimit(workers)
	for _, j := range all {
		deletes.Go(func() error {
			return client.BatchV1().Jobs(j.Namespace).Delete(ctx, j.Name, metav1.DeleteOptions{
				Preconditions:     &metav1.Preconditions{UID: &j.UID, ResourceVersion: &j.ResourceVersion},
				PropagationPolicy: &background,
			})
		})
	}
	if err := deletes.Wait(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// startBare starts a loop for a burst, that waits until the burst is due: nobody begins while the API server is still warm from
// creating it.
func (t *track) startBare(ctx context.Context, b *litBurst, workers int) (*cluster.Process, error) {
	var all []bareJob
	for _, j := range b.all {
		all = append(all, bareJob{j.Namespace, j.Name, j.UID, j.ResourceVersion})
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	list := filepath.Join(t.cluster.Dir, b.name+".json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{bareCommand, t.bareKubeconfig, list, strconv.Itoa(workers), strconv.FormatInt(b.due.UnixNano(), 10)}
	return t.cluster.Run(ctx, fmt.Sprintf("bare-%d", t.started), self, args, nil)
}
