// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command site checks the links in a site that hugo made of the pages of the repository; "make site" runs both. It does not ask other
// sites.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// source is where links to files that are no pages lead, as hugo.yaml has it.
const source = "https://github.com/winnow-dev/winnow/blob/main/"

// root is the repository, from the folder of this program.
const root = "../.."

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "Usage: go -C hack/site run . FOLDER")
		os.Exit(2)
	}
	if err := check(os.DirFS(os.Args[1]), os.DirFS(root)); err != nil {
		fmt.Fprintln(os.Stderr, "site: links lead nowhere:")
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// document is what links need to know of a page.
type document struct{ ids, links []string }

// check returns an error for each link of the site that leads to no file or heading of it, or to no file of the repository.
func check(site, repository fs.FS) error {
	documents := map[string]document{}
	err := fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".html" {
			return err
		}
		documents[name], err = read(site, name)
		return err
	})
	if err == nil && len(documents) == 0 {
		err = errors.New("the site has no pages")
	}
	failed := []error{err}
	for name, d := range documents {
		for _, link := range d.links {
			if err := follow(site, repository, documents, name, link); err != nil {
				failed = append(failed, fmt.Errorf("%s: %s: %w", name, link, err))
			}
		}
	}
	return errors.Join(failed...)
}

// read returns the links of a page, and what they can lead to.
func read(site fs.FS, name string) (document, error) {
	file, err := site.Open(name)
	if err != nil {
		return document{}, err
	}
	defer func() { _ = file.Close() }()
	parsed, err := html.Parse(file)
	if err != nil {
		return document{}, err
	}
	var out document
	for node := range parsed.Descendants() {
		for _, attribute := range node.Attr {
			switch attribute.Key {
			case "id":
				out.ids = append(out.ids, attribute.Val)
			case "href", "src", "srcset":
				out.links = append(out.links, attribute.Val)
			}
		}
	}
	return out, nil
}

// follow checks one link of a page.
func follow(site, repository fs.FS, documents map[string]document, from, link string) error {
	if file, ok := strings.CutPrefix(link, source); ok {
		file, _, _ = strings.Cut(file, "#")
		_, err := fs.Stat(repository, path.Clean(file))
		return err
	}
	to, err := url.Parse(link)
	if err != nil || to.IsAbs() || to.Host != "" {
		return err
	}
	target := from
	if to.Path != "" {
		target = path.Join(path.Dir(from), to.Path)
	}
	if _, err := fs.Stat(site, target); err != nil {
		return err
	}
	if to.Fragment != "" && !slices.Contains(documents[target].ids, to.Fragment) {
		return errors.New("there is no such heading")
	}
	return nil
}
