// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package testbuilders

const raceDetector = false
