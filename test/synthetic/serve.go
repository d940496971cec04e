// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes/scheme"
)

// mostItems is the maximum number of Jobs in an answer, so that no list has all of them in memory. A list without a limit is cut there too,
// unlike in a kube-apiserver: clients that list in pages do not notice.
const mostItems = 10_000

// collection lists or watches Jobs.
func (s *Server) collection(w http.ResponseWriter, r *http.Request) {
	var options metav1.ListOptions
	if err := scheme.ParameterCodec.DecodeParameters(r.URL.Query(), batchv1.SchemeGroupVersion, &options); err != nil {
		s.fail(w, r, apierrors.NewBadRequest(err.Error()))
		return
	}
	switch accept := r.Header.Get("Accept"); {
	case options.LabelSelector != "" || options.FieldSelector != "":
		s.fail(w, r, apierrors.NewBadRequest("synthetic Jobs cannot be selected by labels or fields"))
	case strings.Contains(accept, "as="):
		s.fail(w, r, apierrors.NewBadRequest("synthetic Jobs come whole, not as "+accept))
	case !options.Watch:
		s.list(w, r, options)
	case !strings.Contains(accept, runtime.ContentTypeProtobuf):
		s.fail(w, r, apierrors.NewBadRequest("synthetic Jobs are watched in protobuf, not as "+accept))
	default:
		s.watch(w, r, options)
	}
}

// list answers with a page. Its continue token is the resource version of the first page and the number that comes next.
func (s *Server) list(w http.ResponseWriter, r *http.Request, options metav1.ListOptions) {
	jobs, changed, rv := s.history.state()
	next := 0
	if options.Continue != "" {
		if _, err := fmt.Sscanf(options.Continue, "%d.%d", &rv, &next); err != nil {
			s.fail(w, r, apierrors.NewBadRequest(fmt.Sprintf("continue %q: %v", options.Continue, err)))
			return
		}
		if _, _, _, ok := s.history.since(rv); !ok {
			s.fail(w, r, apierrors.NewResourceExpired("the list goes on from a version that is not known any more"))
			return
		}
	}
	most := mostItems
	if options.Limit > 0 {
		most = int(min(options.Limit, mostItems))
	}
	g, namespace := s.generator(), r.PathValue("namespace")
	page := &batchv1.JobList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(rv, 10)}}
	for ; next < jobs; next++ {
		if v := changed[next]; v.gone || !g.in(next, namespace) {
			continue
		}
		if len(page.Items) == most {
			page.Continue = fmt.Sprintf("%d.%d", rv, next)
			break
		}
		page.Items = append(page.Items, *g.make(next, changed[next]).DeepCopy())
	}
	s.answer(w, r, page)
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	number := s.number(r)
	v, ok := s.history.get(number)
	if !ok {
		s.fail(w, r, apierrors.NewNotFound(jobResource, r.PathValue("name")))
		return
	}
	s.answer(w, r, s.generator().make(number, v))
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request) {
	received := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.fail(w, r, apierrors.NewBadRequest(err.Error()))
		return
	}
	options := &metav1.DeleteOptions{}
	if len(body) > 0 {
		kind := batchv1.SchemeGroupVersion.WithKind("DeleteOptions")
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, &kind, options); err != nil {
			s.fail(w, r, apierrors.NewBadRequest(err.Error()))
			return
		}
	}
	if err := s.history.remove(s.number(r), r.PathValue("name"), options.Preconditions, received); err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, &metav1.Status{Status: metav1.StatusSuccess})
}

// number of the Job that a path names, -1 if there is none of that name in that namespace.
func (s *Server) number(r *http.Request) int {
	number := numberOf(r.PathValue("name"))
	if number < 0 || !s.generator().in(number, r.PathValue("namespace")) {
		return -1
	}
	return number
}

func (s *Server) generator() *generator {
	return newGenerator(s.options.Namespaces, s.options.Finished, s.options.CronJobs)
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, scheme.Codecs, batchv1.SchemeGroupVersion, w, r)
}

// answer writes an object in a media type that the client takes.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, object runtime.Object) {
	responsewriters.WriteObjectNegotiated(scheme.Codecs, negotiation.DefaultEndpointRestrictions, batchv1.SchemeGroupVersion,
		w, r, http.StatusOK, object, false)
}
