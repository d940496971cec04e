// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestImageIsTheSameFromAnotherFolder(t *testing.T) {
	first, second := filesBelow(t, output), filesBelow(t, again)
	for name, content := range first {
		other, found := second[name]
		if !found || !bytes.Equal(content, other) {
			t.Errorf("%s differs between two runs", name)
		}
		delete(second, name)
	}
	for name := range second {
		t.Errorf("only the second run wrote %s", name)
	}
	for _, name := range []string{"image/index.json", archiveName, sbomName("amd64"), sbomName("arm64"), provenanceName} {
		if len(first[name]) == 0 {
			t.Errorf("%s is missing or empty", name)
		}
	}
}

func TestProgramsNeedNothing(t *testing.T) {
	programs := unpack(t, filepath.Join(output, archiveName))
	for platform, machine := range map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64} {
		program, err := elf.Open(programs[platform])
		if err != nil {
			t.Errorf("%s: %v", platform, err)
			continue
		}
		if program.Machine != machine {
			t.Errorf("the program for %s is for %s", platform, program.Machine)
		}
		for _, p := range program.Progs {
			if p.Type == elf.PT_INTERP {
				t.Errorf("the program for %s is not static", platform)
			}
		}
		if err := program.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSBOMNamesTheModulesOfWinnow(t *testing.T) {
	modules, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		sbom, err := os.ReadFile(filepath.Join(output, sbomName(arch)))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(sbom), `"pkg:golang/github.com/winnow-dev/winnow@`+version) {
			t.Errorf("the SBOM for %s does not name Winnow %s", arch, version)
		}
		for _, module := range []string{"k8s.io/apiserver", "k8s.io/client-go", "github.com/google/cel-go"} {
			_, after, _ := strings.Cut(string(modules), "\t"+module+" ")
			line, _, _ := strings.Cut(after, "\n")
			if want := `"pkg:golang/` + module + "@" + line; line == "" || !strings.Contains(string(sbom), want) {
				t.Errorf("the SBOM for %s does not contain %s", arch, want)
			}
		}
	}
}

func TestProvenanceNamesTheCommit(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(output, provenanceName))
	if err != nil {
		t.Fatal(err)
	}
	if want := `"gitCommit": "` + commit + `"`; !strings.Contains(string(content), want) {
		t.Errorf("the provenance does not contain %s:\n%s", want, content)
	}
}

const (
	archiveName    = "winnow-" + version + "-image.tar"
	provenanceName = "winnow-" + version + "-provenance.json"
)

func sbomName(arch string) string { return "winnow-" + version + "-linux-" + arch + ".cdx.json" }

// filesBelow are the files of a folder and of its subfolders.
func filesBelow(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, relErr := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = content
		return errors.Join(err, relErr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
