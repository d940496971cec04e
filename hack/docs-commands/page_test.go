// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

const example = "# Title\n\n" +
	"```yaml\n# p.yaml\nkind: P\n```\n\n" +
	"<!-- docs:exit 1 -->\n" +
	"```console\n$ first \\\n  --more\nout 1\n\nout 2\n$ cat <<END\nin\nEND\nin\n```\n" +
	"<!-- docs:not-run needs a cloud -->\n```sh\nhelm x\nhelm y\n```\nend"

func TestParse(t *testing.T) {
	p, err := parse("x.md", example)
	if err != nil {
		t.Fatal(err)
	}
	if p.String() != example {
		t.Errorf("the page does not survive:\n%s", p)
	}
	var files []string
	for _, one := range p.parts {
		if one.file != nil {
			files = append(files, one.file.name+": "+one.file.content)
		}
	}
	if got, want := strings.Join(files, "|"), "p.yaml: # p.yaml\nkind: P\n"; got != want {
		t.Errorf("got the files %q, want %q", got, want)
	}
	blocks := p.blocks()
	if len(blocks) != 2 || blocks[0].marks != (marks{exit: 1}) || blocks[1].marks != (marks{notRun: "needs a cloud"}) {
		t.Fatalf("got the blocks %+v", blocks)
	}
	want := []command{{"first \\\n  --more\n", "out 1\n\nout 2\n"}, {"cat <<END\nin\nEND\n", "in\n"}}
	if got := blocks[0].commands; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got the commands %q, want %q", got, want)
	}
	if got := blocks[1].commands; len(got) != 1 || got[0] != (command{input: "helm x\nhelm y\n"}) {
		t.Errorf("got the commands %q", got)
	}
}

func TestParseErrors(t *testing.T) {
	for content, want := range map[string]string{
		"<!-- docs:not-run -->\n":           "needs a reason",
		"<!-- docs:later -->\n":             "unknown comment",
		"<!-- docs:exit 1 -->\ntext\n":      "no block of commands follows",
		"a\n```console\n$ x\n":              "x.md:2:",
		"<!-- docs:not-run a\nreason -->\n": "does not end on its line",
	} {
		if _, err := parse("x.md", content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one with %q", content, err, want)
		}
	}
}

func TestSame(t *testing.T) {
	const shown = "NAME   AGE\njob-a  5s\njob-b  1m5s\nhold 5a41e031e24b since 2026-11-20T22:00:00Z\n"
	for printed, want := range map[string]bool{
		shown: true,
		"NAME  AGE\njob-b  59m\njob-a  581ms\nhold e7e1c648d303 since 2027-01-01T00:00:00Z\n":  true,
		"NAME  AGE\njob-c  5s\njob-b  1m5s\nhold e7e1c648d303 since 2026-11-20T22:00:00Z\n":    false,
		"NAME  AGE\njob-a  5s\nhold e7e1c648d303 since 2026-11-20T22:00:00Z\n":                 false,
		"NAME  AGE\njob-a  5d\njob-b  1m5s\nhold 5a41e031e24b since 2026-11-20T22:00:00Z\n":    false,
		"NAME  AGE  X\njob-a  5s\njob-b  1m5s\nhold 5a41e031e24b since 2026-11-20T22:00:00Z\n": false,
	} {
		if got := same(shown, printed); got != want {
			t.Errorf("same as %q: got %v", printed, got)
		}
	}
}

func TestIDs(t *testing.T) {
	i := ids{}
	i.learn("hold 5a41e031e24b and 63ca6c1c5dd8", "hold e7e1c648d303 and 0123456789ab")
	i.learn("none", "hold cb25f70d5325")
	if got, want := i.translate("approve 63ca6c1c5dd8,ffffffffffff"), "approve 0123456789ab,ffffffffffff"; got != want {
		t.Errorf("got the command %q, want %q", got, want)
	}
	if got, want := i.restore("held: e7e1c648d303"), "held: 5a41e031e24b"; got != want {
		t.Errorf("got the output %q, want %q", got, want)
	}
}

// TestInSentences: commands in prose run on what the placeholders stand for, and change nothing; those that a sentence only names must have a
// help.
func TestInSentences(t *testing.T) {
	p, err := parse("x.md", "Use `kubectl get cand -n TEAM\n--field-selector policy=NAME`, not `TEAM`.\n"+
		"```console\n$ kubectl get pods\n```\n| a | `kubectl label namespace TEAM a=b` |\n<!-- docs:not-run `kubectl x` -->\n```sh\nx\n```\n"+
		"`kubectl auth can-i`, `kubectl apply --dry-run=server`, `make bench BENCHFLAGS=-run=idle`, `make build`\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range prosePage([]*page{p, p}).blocks()[len(before):] {
		got = append(got, b.commands[0].input)
	}
	want := []string{
		"kubectl get cand -n team-a --field-selector policy=name", "kubectl label namespace team-a a=b --dry-run=server",
		"kubectl auth can-i --help", "kubectl apply --help", `make -C "${CLONE}" --dry-run build`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
