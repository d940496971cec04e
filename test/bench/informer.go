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
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/poll"
)

// informerCommand is the hidden subcommand: a controller that only keeps all Jobs, in a shared informer over protobuf.
const informerCommand = "informer"

// informerKinds are what stands beside Winnow.
const (
	// typedInformer keeps Jobs as they come, as a controller does that takes no thought.
	typedInformer = "typed informer"
	// trimmedInformer drops what it does not need to know when a Job finished, whose it is and whether it is selected: what a
	// careful author would write.
	trimmedInformer = "trimmed informer"
	// metadataInformer asks for metadata alone, and drops managed fields. It cannot tell when a Job finished.
	metadataInformer = "metadata informer"
	// customInformers, followed by a number, are metadata informers over so many custom resources.
	customInformers = "custom informers "
	// unusedInformers are metadata informers over Pods, ConfigMaps and Secrets.
	unusedInformers = "unused informers"
)

const heapPath = "/debug/pprof/heap?gc=1&debug=1"

// runInformer takes a kubeconfig, a port and its kind. It serves how many objects it has at /objects, once all are there, and its memory.
func runInformer(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%s takes a kubeconfig, a port and a kind, not %q", informerCommand, args)
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	all, err := newInformers(config, args[2])
	if err != nil {
		return err
	}
	for _, i := range all {
		go i.Run(ctx.Done())
	}
	for _, i := range all {
		cache.WaitForCacheSync(ctx.Done(), i.HasSynced)
	}
	http.HandleFunc("/objects", func(w http.ResponseWriter, _ *http.Request) {
		n := 0
		for _, i := range all {
			n += len(i.GetStore().ListKeys())
		}
		fmt.Fprint(w, n)
	})
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

func newInformers(config *rest.Config, kind string) ([]cache.SharedIndexInformer, error) {
	if custom, ok := strings.CutPrefix(kind, customInformers); ok {
		n, err := strconv.Atoi(custom)
		if err != nil {
			return nil, err
		}
		var watched []schema.GroupVersionResource
		for _, r := range customResources(n) {
			watched = append(watched, r.GroupVersionResource())
		}
		return metadataInformers(config, watched...)
	}
	if kind == unusedInformers {
		return metadataInformers(config, unusedResources...)
	}
	if kind == metadataInformer {
		return metadataInformers(config, batchv1.SchemeGroupVersion.WithResource("jobs"))
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var options []informers.SharedInformerOption
	if kind == trimmedInformer {
		options = append(options, informers.WithTransform(trim))
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, options...)
	return []cache.SharedIndexInformer{factory.Batch().V1().Jobs().Informer()}, nil
}

func metadataInformers(config *rest.Config, watched ...schema.GroupVersionResource) ([]cache.SharedIndexInformer, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := metadatainformer.NewSharedInformerFactoryWithOptions(client, 0, metadatainformer.WithTransform(trim))
	var out []cache.SharedIndexInformer
	for _, r := range watched {
		out = append(out, factory.ForResource(r).Informer())
	}
	return out, nil
}

// trim drops what deleting finished Jobs does not need: managed fields, what kubectl applied, and the spec except the TTL.
func trim(o any) (any, error) {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
		delete(m.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	if job, ok := o.(*batchv1.Job); ok {
		job.Spec = batchv1.JobSpec{TTLSecondsAfterFinished: job.Spec.TTLSecondsAfterFinished}
	}
	return o, nil
}

// informer is a process of runInformer.
type informer struct {
	*cluster.Process
	port string
}

// startInformer starts one and waits until it has n objects.
func (w *world) startInformer(ctx context.Context, kind, kubeconfig string, n int) (*informer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	port, err := cluster.FreePort()
	if err != nil {
		return nil, err
	}
	i := &informer{port: strconv.Itoa(port)}
	i.Process, err = w.cluster.Run(ctx, strings.ReplaceAll(kind, " ", "-"), self, []string{informerCommand, kubeconfig, i.port, kind}, nil)
	if err != nil {
		return nil, err
	}
	return i, poll.Until(ctx, knownMost(n), 100*time.Millisecond, func(ctx context.Context) error {
		got, err := i.get(ctx, "/objects")
		if err == nil && got != strconv.Itoa(n) {
			err = fmt.Errorf("the %s has %s objects, not %d, see %s", kind, got, n, filepath.Base(i.LogFile))
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
