// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
)

// Table is printed as kubectl does.
type Table struct{ metav1.Table }

// NewTable returns a table with these columns. Those whose name ends with + are for the format wide.
func NewTable(columns ...string) *Table {
	t := &Table{}
	for _, name := range columns {
		name, wide := strings.CutSuffix(name, "+")
		c := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if wide {
			c.Priority = 1
		}
		t.ColumnDefinitions = append(t.ColumnDefinitions, c)
	}
	return t
}

// Add adds a row.
func (t *Table) Add(cells ...any) {
	for i, c := range cells {
		if text, ok := c.(string); ok {
			cells[i] = OneLine(text)
		}
	}
	t.Rows = append(t.Rows, metav1.TableRow{Cells: cells})
}

// Print prints the table, if wide with the columns of that format.
func (t *Table) Print(w io.Writer, wide bool) error {
	var whole bytes.Buffer // The printer writes parts of characters.
	if err := printers.NewTablePrinter(printers.PrintOptions{Wide: wide}).PrintObj(&t.Table, &whole); err != nil {
		return err
	}
	_, err := whole.WriteTo(w)
	return err
}
