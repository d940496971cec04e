// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// kubernetesVariable is the environment variable that chooses the version of Kubernetes.
const kubernetesVariable = "WINNOW_KUBERNETES"

// KubernetesVersions are the versions of Kubernetes that test clusters can have, the oldest first. Each has a folder
// beside this file, whose go.mod says which patch it is.
var KubernetesVersions = []string{"1.34", "1.35", "1.36", "1.37"}

func newest() string { return KubernetesVersions[len(KubernetesVersions)-1] }

// Kubernetes returns the version of Kubernetes that WINNOW_KUBERNETES chooses for test clusters; the newest if it is
// unset.
func Kubernetes() (string, error) {
	version := os.Getenv(kubernetesVariable)
	if version == "" {
		return newest(), nil
	}
	if !slices.Contains(KubernetesVersions, version) {
		return "", fmt.Errorf(
			"%s=%s: there are test clusters of Kubernetes %s", kubernetesVariable, version, strings.Join(KubernetesVersions, ", "),
		)
	}
	return version, nil
}
