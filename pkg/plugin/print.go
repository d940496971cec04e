// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// output is the flag --output.
type output struct {
	format string
	allows []string
}

// addFlags adds the flag with the formats that the command has besides the default.
func (o *output) addFlags(cmd *cobra.Command, formats ...string) {
	o.allows = formats
	cmd.Flags().StringVarP(&o.format, "output", "o", "", fmt.Sprintf("Output format. One of: (%s).", strings.Join(formats, ", ")))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // The flag exists.
}

func (o *output) validate() error {
	if o.format != "" && !slices.Contains(o.allows, o.format) {
		return fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: %s", o.format,
			strings.Join(o.allows, ","))
	}
	return nil
}

// document prints a value if the format is json or yaml, and reports whether it was.
func (o *output) document(w io.Writer, value any) (bool, error) {
	var encoded []byte
	var err error
	switch o.format {
	case "json":
		encoded, err = json.MarshalIndent(value, "", "    ")
		encoded = append(escapeJSON(encoded), '\n')
	case "yaml":
		encoded, err = yaml.Marshal(value)
	default:
		return false, nil
	}
	if err == nil {
		_, err = w.Write(encoded)
	}
	return true, err
}

// table is printed as kubectl does.
type table struct{ metav1.Table }

// newTable returns a table with these columns. Those whose name ends with + are for the format wide.
func newTable(columns ...string) *table {
	t := &table{}
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

func (t *table) add(cells ...any) {
	for i, c := range cells {
		if text, ok := c.(string); ok {
			cells[i] = oneLine(text)
		}
	}
	t.Rows = append(t.Rows, metav1.TableRow{Cells: cells})
}

func (t *table) print(w io.Writer, wide bool) error {
	var whole bytes.Buffer // The printer writes parts of characters.
	if err := printers.NewTablePrinter(printers.PrintOptions{Wide: wide}).PrintObj(&t.Table, &whole); err != nil {
		return err
	}
	_, err := whole.WriteTo(w)
	return err
}

// heading prints a line that stands out on a terminal.
func heading(w io.Writer, format string, args ...any) {
	text := oneLine(fmt.Sprintf(format, args...))
	if e, ok := w.(escaper); ok && printers.AllowsColorOutput(e.to) {
		fmt.Fprintf(e.to, "\x1b[1m%s\x1b[0m\n", text)
		return
	}
	fmt.Fprintln(w, text)
}

// escaper escapes what is written to it. Each write must have whole characters.
type escaper struct{ to io.Writer }

func escaping(w io.Writer) io.Writer { return escaper{w} }

// Write implements io.Writer.
func (e escaper) Write(p []byte) (int, error) {
	if _, err := io.WriteString(e.to, escape(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// when formats a time as kubectl formats an age: "in 5m", or "5m ago".
func when(at, now time.Time) string {
	switch {
	case at.IsZero():
		return "-"
	case at.After(now):
		return "in " + duration.HumanDuration(at.Sub(now))
	}
	return duration.HumanDuration(now.Sub(at)) + " ago"
}

// size formats a number of bytes.
func size(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	value, units := float64(bytes)/unit, "KMGT"
	for value >= unit && len(units) > 1 {
		value, units = value/unit, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, units[0])
}
