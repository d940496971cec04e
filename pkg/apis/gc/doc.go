// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=gc.winnow.dev

// Package gc is the internal version of the cleanup API: what the server and the controller compute with.
// Users see the versions below it.
package gc
