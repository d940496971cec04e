// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

const (
	// chunksOfRequest is how many chunks a request reads, as long as a page can end there, and namespacesOfRequest of how many namespaces it
	// lists the chunks.
	chunksOfRequest, namespacesOfRequest = 40, 200
)

// keepsNone is what users are told who ask for records that are not kept.
const keepsNone = "Winnow stores no records of deleted objects here, because its flag --records-per-namespace is 0"

// Reader reads records from the API server whenever somebody asks. It remembers nothing, so every replica answers the same.
type Reader struct {
	Config
}

// Records returns a page of records: by namespace, then the newest first. It reads one chunk at a time, and only those that may have
// records of the page. A page that would cost too much is short, or empty, and says where to go on.
func (r *Reader) Records(ctx context.Context, q gc.RecordQuery) (gc.RecordPage, error) {
	now := r.Clock.Now()
	p := &pager{Reader: r, ctx: ctx, query: q, kept: now.Add(-r.Retention), far: now.Add(r.Retention), chunks: chunksOfRequest}
	if q.Since.After(p.kept) {
		p.kept = q.Since
	}
	if r.PerNamespace == 0 {
		p.page.Missing = append(p.page.Missing, keepsNone)
	}
	names := []string{q.Namespace}
	if q.Namespace == "" {
		var err error
		if names, err = r.Namespaces(q.After.Namespace); err != nil {
			return p.page, err
		}
	}
	for i, name := range names {
		if name == q.After.Namespace && q.After.Time.IsZero() {
			continue // The page before ended with it.
		}
		if i >= namespacesOfRequest || p.chunks <= 0 {
			p.page.Next = &gc.RecordPosition{Namespace: names[i-1]}
			break
		}
		if more, err := p.visit(name); err != nil || !more {
			return p.page, err
		}
	}
	return p.page, nil
}

// pager makes one page.
type pager struct {
	*Reader
	ctx    context.Context
	query  gc.RecordQuery
	kept   time.Time // older records are not served
	far    time.Time // later than any record
	chunks int       // how many may be read
	page   gc.RecordPage
}

// found is a record of a namespace.
type found struct {
	record
	namespace string
}

// visit adds the records of a namespace to the page, and reports whether there is room for more.
func (p *pager) visit(namespace string) (more bool, err error) {
	chunks, err := p.chunksOf(namespace)
	if err != nil {
		return false, err
	}
	after, room := p.query.After, p.query.Limit-len(p.page.Items)
	var all []found // the newest of those that were read, up to one more than there is room for
	for _, c := range chunks {
		if c.newest.Before(p.kept) || len(all) > room && c.newest.Before(all[room].DeletionTime.Time) {
			break
		}
		// A page can end where the next chunk begins, if that is behind the end of the page before.
		if p.chunks <= 0 && (namespace != after.Namespace || c.newest.Before(after.Time)) {
			all = slices.DeleteFunc(all, func(f found) bool { return !f.DeletionTime.After(c.newest) })
			if more, err = p.take(all, room); more {
				p.page.Next = &gc.RecordPosition{Namespace: namespace, Time: c.newest}
			}
			return false, err
		}
		if all, err = p.read(c, all, room+1); err != nil {
			return false, err
		}
	}
	return p.take(all, room)
}

// chunksOf returns the chunks of a namespace that may have records of the page, by their newest record, the newest first.
func (p *pager) chunksOf(namespace string) ([]chunk, error) {
	chunks, err := list(p.ctx, p.Metadata, namespace)
	if err != nil {
		return nil, err
	}
	if after := p.query.After; namespace == after.Namespace {
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
	return chunks, nil
}

// take adds records to the page, and reports whether there was room for all. If not, the page ends with the last that fits.
func (p *pager) take(all []found, room int) (more bool, err error) {
	for i := range all {
		if i == room {
			if n := len(p.page.Items); n > 0 {
				last := &p.page.Items[n-1]
				p.page.Next = &gc.RecordPosition{Namespace: last.Namespace, Time: last.Status.DeletionTime.Time, UID: types.UID(last.Name)}
			}
			return false, nil
		}
		served, err := serve(&all[i])
		if err != nil {
			return false, err
		}
		p.page.Items = append(p.page.Items, served)
	}
	return true, nil
}

// read adds the records of a chunk that the query selects, and returns the first most of all.
func (p *pager) read(c chunk, all []found, most int) ([]found, error) {
	p.chunks--
	object, err := p.Client.Resource(Resource).Namespace(c.namespace).Get(p.ctx, c.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return all, nil // It has just been removed.
	}
	if err != nil {
		return nil, err
	}
	records, err := decode(object)
	if err != nil {
		p.page.Missing = append(p.page.Missing, err.Error())
		return all, nil
	}
	for _, r := range records {
		f := found{r, c.namespace}
		ok, err := p.selects(&f)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, compare)
	all = newestOfEach(all)
	return slices.Clip(all[:min(most, len(all))]), nil
}

// newestOfEach leaves out records of an object that has a newer one: it came back from a backup, and was deleted again.
func newestOfEach(all []found) []found {
	seen := sets.New[types.UID]()
	return slices.DeleteFunc(all, func(f found) bool {
		again := seen.Has(f.Object.UID)
		seen.Insert(f.Object.UID)
		return again
	})
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
	return gc.SelectsGone(p.query.Fields, f.Object.Resource, f.Object.Name, f.field), nil
}

// field returns the value of a field.
func (f *found) field(name string) string {
	switch name {
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
