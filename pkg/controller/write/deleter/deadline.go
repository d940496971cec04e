// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// deadlinePatch is a merge patch. The UID and resource version are preconditions.
type deadlinePatch struct {
	Metadata struct {
		UID             types.UID          `json:"uid"`
		ResourceVersion string             `json:"resourceVersion"`
		Annotations     map[string]*string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds"`
	} `json:"spec"`
}

// patchRequest returns the request that changes the deadline of an object, and the annotation that says so.
func (d *Deleter) patchRequest(o *deletion.Order, version string) (*rest.Request, error) {
	var patch deadlinePatch
	patch.Metadata.UID, patch.Metadata.ResourceVersion = o.Fact.UID, version
	patch.Metadata.Annotations = map[string]*string{gc.AnnotationActiveDeadline: nil}
	if seconds := int64(*o.Deadline / time.Second); seconds != 0 {
		patch.Metadata.Annotations[gc.AnnotationActiveDeadline] = new(strconv.FormatInt(seconds, 10))
		patch.Spec.ActiveDeadlineSeconds = &seconds
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return d.request(http.MethodPatch, o).SetHeader("Content-Type", string(types.MergePatchType)).Body(body), nil
}

// patched returns the answer to an accepted patch. A webhook may have removed the deadline; without a pause it would be set for ever.
func patched(o *deletion.Order, result rest.Result) Answer {
	changed, err := factOf(o, result)
	switch {
	case err != nil:
		return answered(deletion.Unknown, "the deadline was accepted, but the answer cannot be read: "+err.Error())
	case !changed.Finished && changed.Deadline.Set != *o.Deadline:
		return answered(deletion.Refused,
			"the API server accepted the deadline, but the object does not have it; a webhook may have changed it back")
	}
	out := answered(deletion.Accepted, "")
	out.Changed = changed
	return out
}
