// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.winnow.gc.v1alpha1
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/winnow-dev/winnow/pkg/apis/gc
// +k8s:defaulter-gen=TypeMeta
// +k8s:validation-gen=TypesWithField=TypeMeta
// +groupName=gc.winnow.dev

// Package v1alpha1 is the first version of the cleanup API.
package v1alpha1
