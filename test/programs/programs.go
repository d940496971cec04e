// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package programs provides the programs of a test cluster: kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, etcd, kwok.
// It fetches the official builds where their hosts can be reached, and builds from Go modules what it cannot fetch. The modules in the
// folders beside it pin the versions; checksums.txt pins the contents of the official builds.
//
// The hosts are dl.k8s.io and github.com. A program is built if its host does not answer within eight seconds or does not have the file, if
// the file has no checksum, and on other platforms than Linux on amd64 and arm64. A file with another checksum than the pinned one is an
// error and never used. WINNOW_PROGRAMS=build turns fetching off. The usual proxy variables (HTTPS_PROXY, NO_PROXY, GOPROXY) apply.
//
// WINNOW_KUBERNETES chooses the version of Kubernetes. The newest version, etcd, kwok and Winnow are built in one workspace, programs.work:
// they share most packages, and each package of a shared module is compiled once. The versions in their go.mod files are the same, so that
// Go's build cache is also shared with what is built outside of the workspace. An older Kubernetes, and whatever else programs.work does
// not list, is built alone, with the modules of its release.
//
// To change a version, change it in all these go.mod files, and replace or remove its checksums: tests name what is still missing.
//
// It imports little, so that "go run ./hack/programs" starts to fetch within seconds when nothing is compiled yet.
package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/winnow-dev/winnow/test/internal/cache"
)

// The programs of a whole cluster.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kwok              = "kwok"
)

// Helm installs the chart in tests. It is no part of a cluster.
const Helm = "helm"

// KyvernoCleanup is the cleanup controller of Kyverno, which is measured beside Winnow. It is no part of a cluster.
const KyvernoCleanup = "cleanup-controller"

// All names the programs of a whole cluster.
var All = []string{Etcd, APIServer, ControllerManager, Scheduler, Kubectl, Kwok}

// Paths maps the name of a program to the path of its executable.
type Paths map[string]string

// pin is a module beside this file whose go.mod fixes the version of some programs.
type pin struct {
	name     string // its folder, except for the version of Kubernetes, and the first part of the cache folder
	project  string // as people write it
	module   string // the module that it pins
	packages map[string]string
	// ldflags are flags of the linker for this version, for packages that match a pattern.
	ldflags func(version string) (string, error)
	// address is where the official build of {program} in {version} for {os} and {arch} is. A .tar.gz has the program in it.
	address string
}

var pins = []*pin{{
	name:     "etcd",
	project:  "etcd",
	module:   "go.etcd.io/etcd/server/v3",
	packages: map[string]string{Etcd: "go.etcd.io/etcd/server/v3"},
	address:  "https://github.com/etcd-io/etcd/releases/download/{version}/etcd-{version}-{os}-{arch}.tar.gz",
}, {
	name:    kubernetes,
	project: "Kubernetes",
	module:  "k8s.io/kubernetes",
	packages: map[string]string{
		APIServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
		ControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
		Scheduler:         "k8s.io/kubernetes/cmd/kube-scheduler",
		Kubectl:           "k8s.io/kubernetes/cmd/kubectl",
	},
	ldflags: kubernetesLdflags,
	address: "https://dl.k8s.io/release/{version}/bin/{os}/{arch}/{program}",
}, {
	name:     "kwok",
	project:  "kwok",
	module:   "sigs.k8s.io/kwok",
	packages: map[string]string{Kwok: "sigs.k8s.io/kwok/cmd/kwok"},
	address:  "https://github.com/kubernetes-sigs/kwok/releases/download/{version}/kwok-{os}-{arch}",
}, {
	name:     "helm",
	project:  "Helm",
	module:   "helm.sh/helm/v4",
	packages: map[string]string{Helm: "helm.sh/helm/v4/cmd/helm"},
	// checksums.txt has none of these yet, so that it is built.
	address: "https://get.helm.sh/helm-{version}-{os}-{arch}.tar.gz",
}, {
	name:     "kyverno",
	project:  "Kyverno",
	module:   kyverno,
	packages: map[string]string{KyvernoCleanup: kyverno + "/cmd/cleanup-controller"},
	// There is no official build but in images, so that it is built.
}}

const kyverno = "github.com/kyverno/kyverno"

const kubernetes = "kubernetes"

// kubernetesLdflags stamps the version as Kubernetes' own build does (hack/lib/version.sh): without it a server
// evaluates its feature gates at v0.0.0.
func kubernetesLdflags(gitVersion string) (string, error) {
	var major, minor, patch int
	if _, err := fmt.Sscanf(gitVersion, "v%d.%d.%d", &major, &minor, &patch); err != nil {
		return "", fmt.Errorf("version %q of k8s.io/kubernetes: %w", gitVersion, err)
	}
	flags := "k8s.io/kubernetes/cmd/...=" + stripped
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]d -X %[1]s.gitMinor=%[4]d",
			pkg, gitVersion, major, minor)
	}
	return flags, nil
}

// program is one that is wanted.
type program struct {
	name, version string
	pin           *pin
	place         place  // where it is built
	target        string // where its executable belongs
}

func (p program) String() string { return p.name + " " + p.version }

// address of the official build for a platform.
func (p program) address(goos, goarch string) string {
	return strings.NewReplacer("{version}", p.version, "{program}", p.name, "{os}", goos, "{arch}", goarch).Replace(p.pin.address)
}

// temporary is where the executable is until it is complete. Whoever holds the lock may write over it.
func (p program) temporary() string { return p.target + ".tmp" }

// finish puts what is at temporary where it belongs.
func (p program) finish() error { return os.Rename(p.temporary(), p.target) }

func (p program) missing() bool {
	_, err := os.Stat(p.target)
	return errors.Is(err, os.ErrNotExist)
}

// Provide returns the paths of the named programs, or of all of them without a name. It first fetches or builds
// those that are missing, once for each version, into $WINNOW_CACHE/programs or winnow/programs below the user's cache
// folder, and says on out what it does. Several processes may call it at once.
func Provide(ctx context.Context, out io.Writer, names ...string) (Paths, error) {
	return ProvideBeside(ctx, out, Build{}, names...)
}

// Build is what is built beside programs: packages of the module that the working directory is in.
type Build struct {
	Output   string // a folder
	Packages []string
}

// ProvideBeside is Provide that also builds other packages. While programs are fetched, that costs no time.
func ProvideBeside(ctx context.Context, out io.Writer, beside Build, names ...string) (Paths, error) {
	if len(names) == 0 {
		names = All
	}
	version, err := Kubernetes()
	if err != nil {
		return nil, err
	}
	root, err := folder(ctx)
	if err != nil {
		return nil, err
	}
	s, err := newSupplier(os.Getenv(modeVariable), root)
	if err != nil {
		return nil, err
	}
	dir, err := cache.Dir()
	if err != nil {
		return nil, err
	}
	wanted, err := plan(root, filepath.Join(dir, "programs"), version, names)
	if err != nil {
		return nil, err
	}
	if err := s.supply(ctx, out, wanted, beside); err != nil {
		return nil, err
	}
	paths := Paths{}
	for _, p := range wanted {
		paths[p.name] = p.target
	}
	return paths, nil
}

// KyvernoManifests is the folder of the CustomResourceDefinitions that KyvernoCleanup needs.
func KyvernoManifests(ctx context.Context) (string, error) {
	root, err := folder(ctx)
	if err != nil {
		return "", err
	}
	module, err := goOutput(ctx, alone(filepath.Join(root, "kyverno")), io.Discard, "list", "-m", "-f", "{{.Dir}}", kyverno)
	return filepath.Join(module, "config", "crds"), err
}

// plan says for each program which version is pinned and where its executable belongs.
func plan(root, cacheDir, kubernetesVersion string, names []string) ([]program, error) {
	shared, err := workspaceFolders(root)
	if err != nil {
		return nil, err
	}
	var wanted []program
	for _, name := range names {
		i := slices.IndexFunc(pins, func(p *pin) bool { return p.packages[name] != "" })
		if i < 0 {
			return nil, fmt.Errorf("unknown program %q: choose from %s", name, strings.Join(All, ", "))
		}
		p := program{name: name, pin: pins[i], place: workspace(root)}
		folder := p.pin.name
		if folder == kubernetes {
			folder += "-" + kubernetesVersion
		}
		dir := filepath.Join(root, folder)
		if !slices.Contains(shared, folder) {
			p.place = alone(dir)
		}
		if p.version, err = pinnedVersion(dir, p.pin.module); err != nil {
			return nil, err
		}
		p.target = filepath.Join(cacheDir, p.pin.name+"-"+p.version, name)
		wanted = append(wanted, p)
	}
	return wanted, nil
}

// pinnedVersion reads go.mod itself: the go command would first ask the network about other modules.
func pinnedVersion(dir, module string) (string, error) {
	file := filepath.Join(dir, "go.mod")
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(content)
	if found == nil {
		return "", fmt.Errorf("%s does not require %s", file, module)
	}
	return string(found[1]), nil
}

// folder is where this file is, wherever the process runs.
func folder(ctx context.Context) (string, error) {
	// Not with -trimpath, which leaves no absolute path in the executable.
	if _, file, _, ok := runtime.Caller(0); ok {
		if _, err := os.Stat(file); err == nil {
			return filepath.Dir(file), nil
		}
	}
	dir, err := goOutput(ctx, place{}, io.Discard, "list", "-m", "-f", "{{.Dir}}", "github.com/winnow-dev/winnow")
	if err != nil {
		return "", fmt.Errorf("cannot find test/programs; run inside a checkout of Winnow: %w", err)
	}
	return filepath.Join(dir, "test", "programs"), nil
}
