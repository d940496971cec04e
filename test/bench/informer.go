// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	_ "net/http/pprof" // how its memory is asked for
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/poll"
)

// informerCommand is the hidden subcommand: a controller that only keeps all Jobs, in a typed shared informer over protobuf.
const informerCommand = "informer"

const heapPath = "/debug/pprof/heap?gc=1&debug=1"

// runInformer takes a kubeconfig and a port. It serves how many Jobs it has at /jobs, once all are there, and its memory.
func runInformer(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%s takes a kubeconfig and a port, not %q", informerCommand, args)
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	jobs := factory.Batch().V1().Jobs().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	http.HandleFunc("/jobs", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, len(jobs.GetStore().ListKeys())) })
	server := &http.Server{Addr: "127.0.0.1:" + args[1], ReadHeaderTimeout: time.Minute}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// informer is a process of runInformer.
type informer struct {
	*cluster.Process
	port string
}

// startInformer starts one and waits until it has n Jobs.
func (w *world) startInformer(ctx context.Context, kubeconfig string, n int) (*informer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	port, err := cluster.FreePort()
	if err != nil {
		return nil, err
	}
	i := &informer{port: strconv.Itoa(port)}
	i.Process, err = w.cluster.Run(ctx, informerCommand, self, []string{informerCommand, kubeconfig, i.port}, nil)
	if err != nil {
		return nil, err
	}
	return i, poll.Until(ctx, knownMost(n), 100*time.Millisecond, func(ctx context.Context) error {
		got, err := i.get(ctx, "/jobs")
		if err == nil && got != strconv.Itoa(n) {
			err = fmt.Errorf("the informer has %s Jobs, not %d, see %s", got, n, filepath.Base(i.LogFile))
		}
		return err
	})
}

func (i *informer) get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+i.port+path, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
