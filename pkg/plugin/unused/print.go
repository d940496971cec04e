// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package unused

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
)

// Of returns the objects of a state, of a resource or with "" of all.
func (r *Report) Of(state State, resource string) (out []Object) {
	for _, o := range r.Objects {
		if o.State == state && (resource == "" || o.Resource == resource) {
			out = append(out, o)
		}
	}
	return out
}

// Print prints the report for people.
func (r *Report) Print(w io.Writer) error {
	p := &printer{Report: r, to: w}
	p.claims()
	p.referenced()
	p.others(Accounts, "Unused ServiceAccounts")
	p.others(Services, "Unused Services: no endpoints, and nothing selects Pods for them")
	p.unknown()
	switch {
	case p.begun:
	case r.OlderThan != "":
		p.say("Nothing has been unused for " + r.OlderThan + " " + gc.InNamespace(r.Namespace) + ".")
	default:
		p.say("Nothing is unused " + gc.InNamespace(r.Namespace) + ".")
	}
	p.notes()
	return p.err
}

// printer prints tables one after the other, up to the first error.
type printer struct {
	*Report
	to    io.Writer
	begun bool
	err   error
}

func (p *printer) say(text string) { fmt.Fprintln(p.to, text) }

// table prints a table under a heading.
func (p *printer) table(heading string, t *output.Table) {
	if p.err != nil {
		return
	}
	if p.begun {
		fmt.Fprintln(p.to)
	}
	p.begun = true
	output.Heading(p.to, "%s", heading)
	p.err = t.Print(p.to, false)
}

func (p *printer) claims() {
	all := p.Of(Unused, Claims)
	if len(all) == 0 {
		return
	}
	t := output.NewTable("Namespace", "Name", "Status", "Requested", "Capacity", "StorageClass", "No Pod since", "Age")
	for _, o := range all {
		c := o.Claim
		t.Add(o.Namespace, o.Name, c.Status, output.Size(c.Requested), size(c.Capacity), dash(c.StorageClass), p.noPodSince(c), p.age(&o))
	}
	p.table("Unused PersistentVolumeClaims", t)
	t = output.NewTable("Namespace", "StorageClass", "Claims", "Requested", "Capacity")
	var sum Total
	for _, c := range p.Totals {
		t.Add(c.Namespace, dash(c.StorageClass), c.Claims, output.Size(c.Requested), size(c.Capacity))
		sum.Claims, sum.Requested, sum.Capacity = sum.Claims+c.Claims, sum.Requested+c.Requested, sum.Capacity+c.Capacity
	}
	if len(p.Totals) > 1 {
		t.Add("(all)", "", sum.Claims, output.Size(sum.Requested), size(sum.Capacity))
	}
	p.table("What they take", t)
}

func (p *printer) referenced() {
	all := p.Of(Referenced, Claims)
	if len(all) == 0 {
		return
	}
	t := output.NewTable("Namespace", "Name", "Capacity", "StorageClass", "No Pod since", "Kept by")
	for _, o := range all {
		by := strings.Join(o.UsedBy, ", ")
		if more := o.Users - len(o.UsedBy); more > 0 {
			by += fmt.Sprintf(", %d more", more)
		}
		t.Add(o.Namespace, o.Name, size(o.Claim.Capacity), dash(o.Claim.StorageClass), p.noPodSince(o.Claim), by)
	}
	p.table("PersistentVolumeClaims that no Pod uses now, but that something refers to or keeps", t)
}

func (p *printer) others(resource, heading string) {
	all := p.Of(Unused, resource)
	if len(all) == 0 {
		return
	}
	t := output.NewTable("Namespace", "Name", "Age")
	for _, o := range all {
		t.Add(o.Namespace, o.Name, p.age(&o))
	}
	p.table(heading, t)
}

func (p *printer) unknown() {
	all := p.Of(Unknown, "")
	if len(all) == 0 {
		return
	}
	t := output.NewTable("Namespace", "Object", "Capacity", "No Pod since", "Age")
	for _, o := range all {
		capacity, since := "-", "-"
		if o.Claim != nil {
			capacity, since = size(o.Claim.Capacity), p.noPodSince(o.Claim)
		}
		t.Add(o.Namespace, o.Resource+"/"+o.Name, capacity, since, p.age(&o))
	}
	p.table("Perhaps unused: nothing that you may list uses them. They count as used", t)
}

// notes explains what the tables cannot.
func (p *printer) notes() {
	undated := slices.ContainsFunc(p.Objects, func(o Object) bool { return o.undated() && o.Claim.Status == bound })
	if undated || p.Undated > 0 {
		fmt.Fprintln(p.to)
	}
	if undated {
		p.say("NO POD SINCE unknown: " + undatedWhy)
	}
	if p.Undated > 0 {
		p.say(fmt.Sprintf("Left out are %d PersistentVolumeClaims of which it is not known since when no Pod uses them. %s", p.Undated,
			output.Sentence(undatedWhy)))
	}
}

const (
	bound      = "Bound"
	undatedWhy = "Kubernetes says it in the condition Unused of bound claims, from version 1.37 on."
)

func (p *printer) age(o *Object) string {
	return strings.TrimSuffix(output.Ago(o.Created, p.Time), " ago")
}

func (p *printer) noPodSince(c *Claim) string {
	if c.NoPodSince.IsZero() {
		return "unknown"
	}
	return output.Ago(c.NoPodSince, p.Time)
}

// size formats a capacity. A claim without a volume has none.
func size(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return output.Size(bytes)
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// PrintNames prints what is unused as kubectl takes it.
func (r *Report) PrintNames(w io.Writer) error {
	for _, o := range r.Of(Unused, "") {
		fmt.Fprintf(w, "%s/%s\n", o.Resource, o.Name)
	}
	return nil
}

// PrintCSV prints one line for each object, after a line with the names of the columns.
func (r *Report) PrintCSV(w io.Writer) error {
	rows := [][]string{{
		"resource", "namespace", "name", "state", "status", "storageClass", "requested", "capacity", "noPodSince", "created", "usedBy",
	}}
	for _, o := range r.Objects {
		row := []string{o.Resource, o.Namespace, o.Name, string(o.State), "", "", "", "", "", stamp(o.Created), strings.Join(o.UsedBy, ", ")}
		if c := o.Claim; c != nil {
			copy(row[4:], []string{
				c.Status, c.StorageClass, strconv.FormatInt(c.Requested, 10), strconv.FormatInt(c.Capacity, 10), stamp(c.NoPodSince),
			})
		}
		rows = append(rows, row)
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format(time.RFC3339)
}
