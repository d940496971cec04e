// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/test/programs"
)

// buildInformer builds the program of test/informer once for all tests.
var buildInformer = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(shared.Dir, "informer")
	out, err := programs.GoCommand(context.Background(), "build", "-C", "../informer", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building test/informer: %w\n%s", err, out)
	}
	return path, nil
})

// anotherModule is a run of test/informer.
type anotherModule struct {
	lock   sync.Mutex
	synced map[string]bool
	known  map[string]map[string]servedPolicy // by informer and key
	ended  error                              // that there are no more lines, and why
}

type servedPolicy struct {
	Name            string
	ResourceVersion string
	Annotations     map[string]string
}

// follow runs it on this resource until the test ends.
func (p scope) follow() *anotherModule {
	p.t.Helper()
	path, err := buildInformer()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(p.t.Context(), path, "--kubeconfig", shared.Kubeconfig(), "--resource", p.plural)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Cancel, cmd.WaitDelay = stdin.Close, 10*time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	m := &anotherModule{synced: map[string]bool{}, known: map[string]map[string]servedPolicy{"typed": {}, "dynamic": {}}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		m.read(stdout)
	}()
	p.t.Cleanup(func() {
		<-read
		if err := cmd.Wait(); !errors.Is(err, context.Canceled) { // which is a success, after the end of the test
			p.t.Errorf("test/informer: %v, last line: %v\n%s", err, m.ended, stderr.String())
		}
	})
	return m
}

func (m *anotherModule) read(lines io.Reader) {
	for decoder := json.NewDecoder(lines); ; {
		var line struct {
			Informer, Event string
			Policies        []servedPolicy
		}
		err := decoder.Decode(&line)
		m.lock.Lock()
		for _, policy := range line.Policies {
			m.known[line.Informer][policy.Name] = policy
			if line.Event == "Deleted" {
				delete(m.known[line.Informer], policy.Name)
			}
		}
		if line.Event == "Synced" {
			m.synced[line.Informer] = true
		}
		m.ended = err
		m.lock.Unlock()
		if err != nil {
			return
		}
	}
}

// eventually waits until what each of its informers knows is as it should be.
func (m *anotherModule) eventually(t *testing.T, check func(policies map[string]servedPolicy) error) {
	t.Helper()
	eventually(t, func(context.Context) error {
		m.lock.Lock()
		defer m.lock.Unlock()
		for informer, policies := range m.known {
			if !m.synced[informer] || m.ended != nil {
				return fmt.Errorf("%s: not synced: %v", informer, m.ended)
			}
			if err := check(policies); err != nil {
				return fmt.Errorf("%s: %w", informer, err)
			}
		}
		return nil
	})
}

// key is what a store of clients calls a policy.
func (p scope) key(name string) string {
	if p.namespaced {
		return p.id + "/" + name
	}
	return p.called(name)
}

// isFollowedByAnotherModule: informers of a module that has nothing of Winnow except its generated code list and watch everything, also
// what is not understood.
func (p scope) isFollowedByAnotherModule() {
	p.t.Helper()
	m := p.follow()
	m.eventually(p.t, func(policies map[string]servedPolicy) error {
		for _, name := range []string{"field", "retyped", "version"} {
			if policies[p.key(name)].Annotations["gc.winnow.dev/unreadable"] == "" {
				return fmt.Errorf("%s is not marked: %+v", name, policies[p.key(name)])
			}
		}
		if whole, ok := policies[p.key("whole")]; !ok || whole.Annotations["gc.winnow.dev/unreadable"] != "" {
			return fmt.Errorf("whole is %+v", whole)
		}
		return nil
	})
	p.asANewerVersion("field", `"cron"`, `"seen":true,"cron"`)
	kubectl(p.t, p.on("annotate", "whole", "--overwrite", "example.com/note=watched")...)
	kubectl(p.t, p.on("delete", "retyped", "--timeout=5m")...)
	version := p.get("field").ResourceVersion
	m.eventually(p.t, func(policies map[string]servedPolicy) error {
		field, whole := policies[p.key("field")], policies[p.key("whole")]
		if field.ResourceVersion != version || whole.Annotations["example.com/note"] != "watched" {
			return fmt.Errorf("the watch brought %+v, want version %s, and %+v", field, version, whole)
		}
		if retyped, ok := policies[p.key("retyped")]; ok {
			return fmt.Errorf("the watch still has %+v", retyped)
		}
		return nil
	})
}
