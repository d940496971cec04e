// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// Reader reads records from the API server whenever somebody asks. It remembers nothing, so every replica answers the same.
type Reader struct {
	Config
}

// Records returns a page of records: by namespace, then the newest first. It reads one chunk at a time, and only those that may have
// records of the page.
func (r *Reader) Records(ctx context.Context, q gc.RecordQuery) (gc.RecordPage, error) {
	now := r.Clock.Now()
	p := &pager{Reader: r, ctx: ctx, query: q, kept: now.Add(-r.Retention), far: now.Add(r.Retention)}
	err := eachNamespace(ctx, r.Metadata, q.Namespace, p.visit)
	if p.err != nil {
		err = p.err
	}
	if apierrors.IsNotFound(err) {
		return gc.RecordPage{}, fmt.Errorf("the cluster does not serve %s; see artifacts/storage", Resource.GroupResource())
	}
	return p.page, err
}

// pager makes one page.
type pager struct {
	*Reader
	ctx   context.Context
	query gc.RecordQuery
	kept  time.Time // older records are no longer served
	far   time.Time // later than any record
	page  gc.RecordPage
	err   error
}

// found is a record of a namespace.
type found struct {
	record
	namespace string
}

// visit adds the records of a namespace to the page, and reports whether there is room for more.
func (p *pager) visit(chunks []chunk) bool {
	namespace, after := chunks[0].namespace, p.query.After
	if namespace < after.Namespace {
		return true
	}
	if namespace == after.Namespace {
		chunks = slices.DeleteFunc(chunks, func(c chunk) bool { return c.oldest.After(after.Time) })
	} else {
		p.page.Missing = append(p.page.Missing, gaps(chunks)...)
	}
	// Chunks with unknown times come first, so that no record of them is missed.
	for i := range chunks {
		if chunks[i].newest.IsZero() {
			chunks[i].newest = p.far
		}
	}
	slices.SortStableFunc(chunks, func(a, b chunk) int { return b.newest.Compare(a.newest) })
	room := p.query.Limit - len(p.page.Items)
	var all []found // the newest of those that were read, up to one more than there is room for
	for _, c := range chunks {
		if len(all) > room && c.newest.Before(all[room].DeletionTime.Time) {
			break
		}
		if all = p.read(c, all, room+1); p.err != nil {
			return false
		}
	}
	return p.take(all, room)
}

// take adds records to the page. If there is no room for all, the page ends with the last that fits.
func (p *pager) take(all []found, room int) bool {
	for i := range all {
		if i == room {
			if n := len(p.page.Items); n > 0 {
				last := &p.page.Items[n-1]
				p.page.Next = &gc.RecordPosition{Namespace: last.Namespace, Time: last.Status.DeletionTime.Time, UID: types.UID(last.Name)}
			}
			return false
		}
		served, err := serve(&all[i])
		if err != nil {
			p.err = err
			return false
		}
		p.page.Items = append(p.page.Items, served)
	}
	return true
}

// read adds the records of a chunk that the query selects, and returns the first most of all.
func (p *pager) read(c chunk, all []found, most int) []found {
	object, err := p.Client.Resource(Resource).Namespace(c.namespace).Get(p.ctx, c.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return all // It has just been removed.
	}
	if err != nil {
		p.err = err
		return nil
	}
	records, err := decode(object)
	if err != nil {
		p.page.Missing = append(p.page.Missing, err.Error())
		return all
	}
	for _, r := range records {
		f := found{r, c.namespace}
		ok, err := p.selects(&f)
		if err != nil {
			p.err = err
			return nil
		}
		if ok {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, compare)
	all = slices.CompactFunc(all, func(a, b found) bool { return a.Object.UID == b.Object.UID })
	return slices.Clip(all[:min(most, len(all))])
}

// compare sorts the records of a namespace.
func compare(a, b found) int {
	return cmp.Or(b.DeletionTime.Compare(a.DeletionTime.Time), cmp.Compare(a.Object.UID, b.Object.UID))
}

// selects reports whether a record belongs to the query. Who may not list its resource learns the same whether it does or not.
func (p *pager) selects(f *found) (bool, error) {
	if f.DeletionTime.Time.Before(p.kept) {
		return false, nil
	}
	if ok, err := p.query.MayList(p.ctx, f.Object.Resource); !ok || err != nil {
		return false, err
	}
	if after := p.query.After; f.namespace == after.Namespace {
		last := found{record: record{DeletionTime: metav1.MicroTime{Time: after.Time}, Object: v1alpha1.RecordObject{UID: after.UID}}}
		if compare(*f, last) <= 0 {
			return false, nil
		}
	}
	for _, r := range p.query.Fields.Requirements() {
		if (field(f, r.Field, r.Value) == r.Value) == (r.Operator == selection.NotEquals) {
			return false, nil
		}
	}
	return true, nil
}

// field returns the value of a field that is compared with another one.
func field(f *found, name, with string) string {
	switch name {
	case gc.FieldObject:
		if strings.Contains(with, "/") {
			return f.Object.Resource + "/" + f.Object.Name
		}
		return f.Object.Name
	case gc.FieldResource:
		return f.Object.Resource
	case gc.FieldPolicy:
		return f.Policy.Name
	case "metadata.name":
		return string(f.Object.UID)
	case "metadata.namespace":
		return f.namespace
	}
	return ""
}

// serve returns a record as the API has it.
func serve(f *found) (gc.CleanupRecord, error) {
	out := gc.CleanupRecord{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.namespace, Name: string(f.Object.UID), UID: f.Object.UID, CreationTimestamp: metav1.NewTime(f.DeletionTime.Time),
	}}
	err := v1alpha1.Convert_v1alpha1_CleanupRecordStatus_To_gc_CleanupRecordStatus(&f.record, &out.Status, nil)
	out.Status.Derive()
	return out, err
}

// gaps says which chunks of a namespace are missing, as sentences. Winnow removes only the oldest.
func gaps(chunks []chunk) []string {
	var out []string
	for i := 1; i < len(chunks); i++ {
		if missing := chunks[i].number - chunks[i-1].number - 1; missing > 0 && chunks[i].number > chunks[i-1].number {
			out = append(out, fmt.Sprintf("records of namespace %s between %s and %s are missing: somebody has deleted %d %s objects",
				chunks[i].namespace, chunks[i-1].newest.UTC().Format(time.RFC3339), chunks[i].oldest.UTC().Format(time.RFC3339), missing,
				Resource.GroupResource()))
		}
	}
	return out
}
