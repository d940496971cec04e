// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install puts every version of the cleanup API into a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// Install adds the internal version and all served ones, the preferred first.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(gc.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(v1alpha1.SchemeGroupVersion))
}
