// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// page is a Markdown file as a list of parts. The texts of all parts together are the file.
type page struct {
	path  string
	bare  bool // The cluster has no Winnow.
	made  bool // The page is no file.
	parts []part
}

// part is a piece of a page: prose, or something to do.
type part struct {
	text  string // of prose, and what surrounds the commands of a block
	file  *file
	block *block
}

// file is a block of YAML whose first line is a comment with its name. Later commands can read it.
type file struct{ name, content string }

// block is a block of commands. If its commands have prompts, it shows their output too.
type block struct {
	line       int
	open       string // the line that opens it
	marks      marks
	prompted   bool
	commands   []command
	terminated string // the line that closes it
}

// marks are what the comments before a block say about it.
type marks struct {
	notRun     string // the reason why its commands do not run here
	exit       int    // the exit status with which its commands may end, besides 0
	background bool   // Its commands run until the page ends.
}

// command is a command with the output that the page shows.
type command struct{ input, output string }

const prompt = "$ "

var (
	directive = regexp.MustCompile(`^<!-- docs:([\w-]+) ?(.*)$`)
	fileName  = regexp.MustCompile(`^# ([\w.-]+\.yaml)$`)
	heredoc   = regexp.MustCompile(`<<-?'?(\w+)'?`)
)

// parser reads a page line by line.
type parser struct {
	lines []string // with their ends
	at    int
	page  *page
	marks marks // for the next block
}

// parse splits a page into its parts.
func parse(path, content string) (*page, error) {
	p := &parser{lines: strings.SplitAfter(content, "\n"), page: &page{path: path}}
	for p.at < len(p.lines) {
		line := p.at + 1
		if err := p.part(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, line, err)
		}
	}
	if p.marks != (marks{}) {
		return nil, fmt.Errorf("%s: no block of commands follows the last comment", path)
	}
	return p.page, nil
}

// part reads one part.
func (p *parser) part() error {
	line := strings.TrimSuffix(p.lines[p.at], "\n")
	switch language, fenced := strings.CutPrefix(line, "```"); {
	case fenced && (language == "console" || language == "sh"):
		return p.block()
	case fenced:
		return p.listing()
	default:
		if d := directive.FindStringSubmatch(line); d != nil {
			return p.directive(d[1], d[2])
		}
		p.add(part{text: p.lines[p.at]})
		p.at++
		return nil
	}
}

func (p *parser) add(one part) { p.page.parts = append(p.page.parts, one) }

// untilFence returns the lines from the present one to the one that ends the block.
func (p *parser) untilFence() ([]string, error) {
	const fence = "```"
	for end := p.at; end < len(p.lines); end++ {
		if strings.TrimRight(p.lines[end], "\n") == fence {
			lines := p.lines[p.at : end+1]
			p.at = end + 1
			return lines, nil
		}
	}
	return nil, fmt.Errorf("%q does not follow", fence)
}

// directive reads a comment that is for this program.
func (p *parser) directive(name, rest string) (err error) {
	p.add(part{text: p.lines[p.at]})
	p.at++
	argument, closed := strings.CutSuffix(rest, "-->")
	if !closed {
		return errors.New("the comment does not end on its line")
	}
	argument = strings.TrimSpace(argument)
	switch name {
	case "without-winnow":
		p.page.bare = true
	case "not-run":
		if p.marks.notRun = argument; argument == "" {
			return errors.New("not-run needs a reason")
		}
	case "exit":
		p.marks.exit, err = strconv.Atoi(argument)
	case "background":
		p.marks.background = true
	default:
		err = fmt.Errorf("unknown comment docs:%s", name)
	}
	return err
}

// listing reads a block that is not of commands.
func (p *parser) listing() error {
	open := p.lines[p.at]
	p.at++
	rest, err := p.untilFence()
	if err != nil {
		return err
	}
	one := part{text: open + strings.Join(rest, "")}
	if name := fileName.FindStringSubmatch(strings.TrimRight(rest[0], "\n")); name != nil {
		one.file = &file{name[1], strings.Join(rest[:len(rest)-1], "")}
	}
	p.add(one)
	return nil
}

// block reads a block of commands.
func (p *parser) block() error {
	b := &block{line: p.at + 1, open: p.lines[p.at], marks: p.marks}
	p.at, p.marks = p.at+1, marks{}
	lines, err := p.untilFence()
	if err != nil {
		return err
	}
	b.terminated = lines[len(lines)-1]
	lines = lines[:len(lines)-1]
	b.prompted = len(lines) > 0 && strings.HasPrefix(lines[0], prompt)
	if !b.prompted {
		b.commands = []command{{input: strings.Join(lines, "")}}
	}
	for b.prompted && len(lines) > 0 {
		var one command
		one, lines = next(lines)
		b.commands = append(b.commands, one)
	}
	p.add(part{block: b})
	return nil
}

// next reads a command with its output.
func next(lines []string) (one command, rest []string) {
	end := 1
	for end < len(lines) && continued(lines[:end]) {
		end++
	}
	if word := heredoc.FindStringSubmatch(lines[0]); word != nil {
		for end < len(lines) && lines[end-1] != word[1]+"\n" {
			end++
		}
	}
	one.input = strings.TrimPrefix(strings.Join(lines[:end], ""), prompt)
	output := end
	for end < len(lines) && !strings.HasPrefix(lines[end], prompt) {
		end++
	}
	one.output = strings.Join(lines[output:end], "")
	return one, lines[end:]
}

// continued reports whether a command goes on in the next line: after a backslash, or within single quotes.
func continued(lines []string) bool {
	return strings.HasSuffix(lines[len(lines)-1], "\\\n") || strings.Count(strings.Join(lines, ""), "'")%2 == 1
}

// String returns the page as a Markdown file.
func (p *page) String() string {
	var out strings.Builder
	for _, one := range p.parts {
		out.WriteString(one.text)
		if one.block != nil {
			out.WriteString(one.block.String())
		}
	}
	return out.String()
}

// String returns the block as Markdown.
func (b *block) String() string {
	var out strings.Builder
	out.WriteString(b.open)
	for _, c := range b.commands {
		if b.prompted {
			out.WriteString(prompt)
		}
		out.WriteString(c.input + c.output)
	}
	return out.String() + b.terminated
}
