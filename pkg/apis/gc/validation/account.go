// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// validateAccount validates spec.serviceAccountName. A policy can name only an account of the namespace in which it deletes.
func validateAccount(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return nil
	}
	var errs field.ErrorList
	for _, detail := range apivalidation.ValidateServiceAccountName(name, false) {
		detail = "must be the name of a ServiceAccount, without its namespace: " + detail
		if strings.HasPrefix(name, serviceaccount.ServiceAccountUsernamePrefix) {
			detail += fmt.Sprintf("; did you mean %q?", name[strings.LastIndex(name, ":")+1:])
		}
		errs = append(errs, field.Invalid(path, name, detail))
	}
	return errs
}
