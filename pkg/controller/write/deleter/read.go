// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// Read gets the newest state of the object of an order. It returns nil without an error if there is no object with this name and UID.
func (d *Deleter) Read(ctx context.Context, o *deletion.Order) (*lifecycle.Fact, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	return sameObject(o)(factOf(o, d.request(http.MethodGet, o).Do(ctx)))
}

// ReadWhole is like Read, and also returns the object as the API server sent it, in JSON. Secrets are never read whole.
func (d *Deleter) ReadWhole(ctx context.Context, o *deletion.Order) (*lifecycle.Fact, []byte, error) {
	if why := gc.CopyRefusal(o.Fact.Resource); why != "" {
		return nil, nil, fmt.Errorf("%s %s", o.Fact.Resource, why)
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	raw, err := readAtMost(ctx, d.request(http.MethodGet, o).SetHeader("Accept", runtime.ContentTypeJSON))
	if err != nil {
		read, err := sameObject(o)(nil, err)
		return read, nil, err
	}
	read, err := sameObject(o)(factOfJSON(o, raw))
	if read == nil || err != nil {
		return nil, nil, err
	}
	return read, raw, nil
}

// errTooLarge means that an object is too large to be copied.
var errTooLarge = fmt.Errorf(
	"it has more than %d bytes, and a copy may have no more; move it to a rule without keepCopy, or make it smaller", deletion.MostCopied)

// readAtMost returns the body of the answer to a request, unless that is too large.
func readAtMost(ctx context.Context, request *rest.Request) ([]byte, error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // All that is needed has been read.
	raw, err := io.ReadAll(io.LimitReader(body, deletion.MostCopied+1))
	if err == nil && len(raw) > deletion.MostCopied {
		err = errTooLarge
	}
	return raw, err
}

// ReadFailed returns how an order ends after Read or ReadWhole has failed. Then no DELETE is sent.
func (d *Deleter) ReadFailed(ctx context.Context, o *deletion.Order, err error) Answer {
	if errors.Is(err, errTooLarge) {
		return notSent(deletion.CopyTooLarge, err.Error())
	}
	out := d.result(ctx, o.ReadRight(), err)
	out.NotSent = true
	if out.Outcome != deletion.RetryLater && out.Outcome != deletion.Unauthorized {
		out.Outcome = deletion.Unknown
	}
	return out
}

// sameObject replaces the fact of another object than that of an order, or of none, by nil.
func sameObject(o *deletion.Order) func(*lifecycle.Fact, error) (*lifecycle.Fact, error) {
	return func(read *lifecycle.Fact, err error) (*lifecycle.Fact, error) {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil || read.UID != o.Fact.UID {
			return nil, err
		}
		return read, nil
	}
}

// factOf returns the fact of an object that was read for an order, with the results of its match conditions.
func factOf(o *deletion.Order, result rest.Result) (*lifecycle.Fact, error) {
	if acceptFor(o) != "" {
		raw, err := result.Raw()
		if err != nil {
			return nil, err
		}
		return factOfJSON(o, raw)
	}
	object := o.Kind.New()
	if err := result.Into(object); err != nil {
		return nil, err
	}
	return evaluated(o, object, nil)
}

// factOfJSON is factOf for the JSON of an object.
func factOfJSON(o *deletion.Order, raw []byte) (*lifecycle.Fact, error) {
	object, content := o.Kind.New(), map[string]any(nil)
	if err := errors.Join(json.Unmarshal(raw, &content), json.Unmarshal(raw, object)); err != nil {
		return nil, err
	}
	if content == nil {
		return nil, errors.New("the answer has no object")
	}
	content["apiVersion"], content["kind"] = o.Kind.GroupVersionKind.ToAPIVersionAndKind()
	return evaluated(o, object, content)
}

func evaluated(o *deletion.Order, object runtime.Object, content map[string]any) (*lifecycle.Fact, error) {
	f, err := o.Kind.Fact(object)
	if err == nil {
		f.Conditions = o.Conditions.Evaluate(content)
	}
	return f, err
}

// metadataAlone asks for the metadata of an object, without the data of a Secret for example.
const metadataAlone = runtime.ContentTypeJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// acceptFor returns the content type in which an object is read; empty for the client's content type. Match conditions are evaluated over
// JSON.
func acceptFor(o *deletion.Order) string {
	_, bare := o.Kind.New().(*metav1.PartialObjectMetadata)
	switch {
	case bare && (o.Conditions == nil || o.Conditions.ReadMetadata()):
		return metadataAlone
	case o.Conditions != nil:
		return runtime.ContentTypeJSON
	}
	return ""
}
