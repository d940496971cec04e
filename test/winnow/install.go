// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package winnow

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/winnow-dev/winnow/test/programs"
)

const (
	module     = "github.com/winnow-dev/winnow"
	apiService = "v1alpha1.gc.winnow.dev"
)

// Build builds winnow-apiserver of the module that the working directory is in.
func Build(ctx context.Context, path string, race bool, progress io.Writer) error {
	if race {
		return build(ctx, path, progress, "apiserver", "-race")
	}
	return build(ctx, path, progress, "apiserver")
}

// BuildPlugin builds kubectl-winnow of the module that the working directory is in.
func BuildPlugin(ctx context.Context, path string, progress io.Writer) error {
	return build(ctx, path, progress, "kubectl-winnow")
}

// build builds a command of the module that the working directory is in.
func build(ctx context.Context, path string, progress io.Writer, command string, flags ...string) error {
	args := []string{"build", "-tags", "grpcnotrace", "-o", path, "-ldflags", "-X " + module + "/pkg/version.version=v0.0.0-test"}
	cmd := programs.GoCommand(ctx, append(append(args, flags...), module+"/cmd/"+command)...)
	cmd.Stdout, cmd.Stderr = progress, progress
	// A go command that is interrupted while it still loads packages leaves its folder behind. Here somebody removes it.
	cmd.Env = append(os.Environ(), "GOTMPDIR="+filepath.Dir(path))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s: %w", filepath.Base(path), err)
	}
	return nil
}

// moduleRoot is the folder of go.mod.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := programs.GoCommand(ctx, "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("finding the source of %s: %w", module, err)
	}
	return string(bytes.TrimSpace(out)), nil
}

// install applies the storage, the namespace and the rights that users install.
func (s *Server) install(ctx context.Context) error {
	if s.options.Installed {
		return nil
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	apply := []string{"apply"}
	for _, manifest := range []string{
		"storage", "install/00-namespace.yaml", "install/10-rights.yaml", "install/11-user-roles.yaml", "optional/more-resources.yaml",
	} {
		apply = append(apply, "-f", filepath.Join(root, "artifacts", manifest))
	}
	if _, _, err := s.cluster.Kubectl(ctx, apply...); err != nil {
		return err
	}
	_, _, err = s.cluster.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout", readyTimeout.String(),
		"crd/storedcleanuppolicies.internal.gc.winnow.dev", "crd/storedclustercleanuppolicies.internal.gc.winnow.dev",
		"crd/storedresourcelifecycles.internal.gc.winnow.dev", "crd/usagemarks.internal.gc.winnow.dev",
		"crd/recordchunks.internal.gc.winnow.dev", "crd/objectcopies.internal.gc.winnow.dev")
	return err
}

// service leads the aggregator to this machine.
func service() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": serviceName, "namespace": Namespace},
		"spec":     map[string]any{"type": "ExternalName", "externalName": "localhost"},
	}
}

// register sends what the aggregator gets for the API group to the forwarder.
func (s *Server) register(ctx context.Context) error {
	return s.apply(ctx, service(), map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": apiService},
		"spec": map[string]any{
			"group": "gc.winnow.dev", "version": "v1alpha1", "groupPriorityMinimum": 1000, "versionPriority": 15,
			"caBundle": s.certificate.CAPEM,
			"service":  map[string]any{"namespace": Namespace, "name": serviceName, "port": s.forwarder.port()},
		},
	})
}

func (s *Server) apply(ctx context.Context, objects ...any) error {
	for _, object := range objects {
		manifest, err := json.Marshal(object)
		if err != nil {
			return err
		}
		if _, _, err := s.cluster.KubectlStdin(ctx, string(manifest), "apply", "-f", "-"); err != nil {
			return err
		}
	}
	return nil
}

// unregister is the way out that the documentation names.
func (s *Server) unregister(ctx context.Context) error {
	_, _, err := s.cluster.Kubectl(ctx, "delete", "apiservice", apiService, "--ignore-not-found")
	return err
}

// caPEM are the authorities by which the certificates of replicas are verified.
func (s *Server) caPEM(ctx context.Context) ([]byte, error) {
	if !s.options.Register {
		return s.certificate.CAPEM, nil
	}
	if s.options.CertDir != "" {
		return os.ReadFile(s.certFile("ca.crt"))
	}
	out, _, err := s.cluster.Kubectl(ctx, "get", "secret", "winnow-certificates", "-n", Namespace, "-o", `jsonpath={.data.ca\.crt}`)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(out)
}

// WaitServed waits until kubectl finds policies. It follows WaitAvailable after a moment.
func (s *Server) WaitServed(ctx context.Context) error {
	return poll(ctx, func(ctx context.Context) error {
		_, _, err := s.cluster.Kubectl(ctx, "get", "cleanuppolicies.gc.winnow.dev", "--all-namespaces", "-o", "name")
		return err
	})
}

// WaitAvailable waits until the aggregator passes requests on.
func (s *Server) WaitAvailable(ctx context.Context) error {
	exists := func(ctx context.Context) error {
		_, _, err := s.cluster.Kubectl(ctx, "get", "apiservice", apiService)
		return err
	}
	if err := poll(ctx, exists); err != nil {
		return fmt.Errorf("there is no APIService: %w", err)
	}
	_, _, err := s.cluster.Kubectl(ctx, "wait", "--for=condition=Available", "apiservice/"+apiService, "--timeout", readyTimeout.String())
	if err != nil {
		return fmt.Errorf("the APIService does not become available: %w", err)
	}
	return nil
}
