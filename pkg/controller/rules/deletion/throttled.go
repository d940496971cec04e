// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// retryAfterMost bounds the Retry-After that the API server, or a webhook, may ask for.
const retryAfterMost = time.Minute

// byWebhook is how the message of every refusal by an admission webhook begins, whatever its status; see the package
// k8s.io/apiserver/pkg/admission/plugin/webhook/errors. The headers of Priority and Fairness do not help, because all answers have them.
const byWebhook = "admission webhook "

// Throttled returns the result of a request that the server asks to send later; false if that is not what it asks. Status code 503 may also
// come from a proxy, or after the request was carried out.
func Throttled(err error) (result Result, ok bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Result{}, false
	}
	code := status.Status().Code
	if code != 429 && code != 503 {
		return Result{}, false
	}
	result = Result{
		Outcome: RetryLater, Detail: err.Error(), ServerError: code == 503, Overloaded: !strings.HasPrefix(status.Status().Message, byWebhook),
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		result.RetryAfter = min(time.Duration(seconds)*time.Second, retryAfterMost)
	}
	return result, true
}
