// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// informer stands for a controller of somebody else that follows policies: a separate module, with the generated typed informer and with
// one that knows no types. It writes lines of JSON: one with all policies once both have synced, and one for each event after that. It ends
// when its standard input does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/pkg/generated/informers/externalversions"
)

// line is what is written of one informer: all that it knows when both have synced, or what an event is of.
type line struct {
	Informer string   `json:"informer"`
	Event    string   `json:"event"`
	Policies []policy `json:"policies"`
}

type policy struct {
	Name            string            `json:"name"` // with its namespace, as a key of the store
	ResourceVersion string            `json:"resourceVersion"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of a kubeconfig")
	resource := flag.String("resource", "cleanuppolicies", "cleanuppolicies or clustercleanuppolicies")
	flag.Parse()
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := follow(ctx, *kubeconfig, *resource); err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}

func follow(ctx context.Context, kubeconfig, resource string) error {
	informers, err := newInformers(kubeconfig, resource)
	if err != nil {
		return err
	}
	var synced []cache.InformerSynced
	out := &output{encoder: json.NewEncoder(os.Stdout)}
	for name, informer := range informers {
		if _, err := informer.AddEventHandler(out.handler(name)); err != nil {
			return err
		}
		synced = append(synced, informer.HasSynced)
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("not synced before the end of standard input")
	}
	for name, informer := range informers {
		out.all(name, informer.GetStore())
	}
	<-ctx.Done()
	return nil
}

// newInformers are as a module gets them that has nothing of Winnow but its generated code.
func newInformers(kubeconfig, resource string) (map[string]cache.SharedIndexInformer, error) {
	const never = 0
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	typed, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	policies := v1alpha1.SchemeGroupVersion.WithResource(resource)
	generated, err := externalversions.NewSharedInformerFactory(typed, never).ForResource(policies)
	if err != nil {
		return nil, err
	}
	return map[string]cache.SharedIndexInformer{
		"typed":   generated.Informer(),
		"dynamic": dynamicinformer.NewDynamicSharedInformerFactory(untyped, never).ForResource(policies).Informer(),
	}, nil
}

// output writes one line at a time.
type output struct {
	lock    sync.Mutex
	encoder *json.Encoder
}

// all reads the store under the lock: a line that follows is then never older.
func (o *output) all(informer string, store cache.Store) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.write(informer, "Synced", store.List()...)
}

func (o *output) handler(informer string) cache.ResourceEventHandler {
	event := func(event string, object any) {
		o.lock.Lock()
		defer o.lock.Unlock()
		o.write(informer, event, object)
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				event("Added", object)
			}
		},
		UpdateFunc: func(_, object any) { event("Updated", object) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			event("Deleted", object)
		},
	}
}

func (o *output) write(informer, event string, objects ...any) {
	l := line{Informer: informer, Event: event, Policies: []policy{}}
	for _, object := range objects {
		meta := object.(metav1.Object)
		l.Policies = append(l.Policies, policy{
			Name:            cache.MetaObjectToName(meta).String(),
			ResourceVersion: meta.GetResourceVersion(),
			Annotations:     meta.GetAnnotations(),
		})
	}
	if err := o.encoder.Encode(l); err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}
