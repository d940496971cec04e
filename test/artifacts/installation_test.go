// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/programs"
	"github.com/winnow-dev/winnow/test/winnow"
)

const apiService = "apiservice/v1alpha1.gc.winnow.dev"

// installation runs the commands of docs/install.md in a copy of the manifests, while namespaces are deleted beside it.
type installation struct {
	t       *testing.T
	cluster *cluster.Cluster
	dir     string // has the folder artifacts
	helm    string // the folder of the program
}

func newInstallation(t *testing.T, c *cluster.Cluster) *installation {
	t.Helper()
	paths, err := programs.Provide(t.Context(), os.Stderr, programs.Helm)
	if err != nil {
		t.Fatal(err)
	}
	i := &installation{t: t, cluster: c, dir: t.TempDir(), helm: filepath.Dir(paths[programs.Helm])}
	if err := os.CopyFS(filepath.Join(i.dir, "artifacts"), os.DirFS("../../artifacts")); err != nil {
		t.Fatal(err)
	}
	i.deleteNamespaces()
	return i
}

var consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// documented are the commands of the first block below a heading of docs/install.md.
func (i *installation) documented(heading string) []string {
	i.t.Helper()
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		i.t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n"+heading+"\n")
	block := consoleBlock.FindStringSubmatch(section)
	if !found || block == nil {
		i.t.Fatalf("docs/install.md has no commands below %q", heading)
	}
	// As somebody would write them, with an image that nothing pulls here.
	commands := strings.NewReplacer("\\\n", "", "NAMESPACE", "team-a", "sha256:DIGEST", "sha256:"+strings.Repeat("0", 64)).Replace(block[1])
	return strings.Split(strings.TrimSpace(commands), "\n")
}

// deleteNamespaces creates a namespace and deletes it, over and over until the test ends, and once more after that. Each has to go.
func (i *installation) deleteNamespaces() {
	over, gone := make(chan struct{}), make(chan struct{})
	i.t.Cleanup(func() { close(over); <-gone })
	go func() {
		defer close(gone)
		for last := false; !last; {
			select {
			case <-over:
				last = true
			default:
			}
			if err := i.deleteNamespace(); err != nil {
				i.t.Errorf("a namespace is not deleted beside the commands: %v", err)
				return
			}
		}
	}()
}

func (i *installation) deleteNamespace() error {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	for _, args := range [][]string{{"create", "namespace", "beside"}, {"delete", "namespace", "beside", "--timeout=5m"}} {
		if _, stderr, err := i.cluster.Kubectl(ctx, args...); err != nil {
			return fmt.Errorf("%w: %s", err, stderr)
		}
	}
	return nil
}

// run runs the commands below a heading. All of them must succeed.
func (i *installation) run(heading string) {
	i.t.Helper()
	for _, command := range i.documented(heading) {
		if out, err := i.command(command); err != nil {
			i.t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
}

// command runs one for a shell, and returns what it says.
func (i *installation) command(command string) (string, error) {
	cmd := exec.CommandContext(i.t.Context(), "bash", "-c", command)
	cmd.Dir = i.dir
	cmd.Env = append(os.Environ(), "HOME="+i.dir, "KUBECONFIG="+i.cluster.Kubeconfig(), "PATH="+strings.Join(
		[]string{filepath.Dir(i.cluster.KubectlPath()), i.helm, os.Getenv("PATH")}, string(os.PathListSeparator)))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (i *installation) kubectl(args ...string) string {
	i.t.Helper()
	out, _, err := i.cluster.Kubectl(i.t.Context(), args...)
	if err != nil {
		i.t.Fatal(err)
	}
	return out
}

// startWinnow runs Winnow as the kubelet would, with the flags and the rights of the Deployment. kube-apiserver reaches the process by the
// Service, which leads to this machine.
func (i *installation) startWinnow() *cluster.Process {
	i.t.Helper()
	deployment := &appsv1.Deployment{}
	if err := json.Unmarshal([]byte(i.kubectl("get", "deployment", "winnow", "-n", namespace, "-o", "json")), deployment); err != nil {
		i.t.Fatal(err)
	}
	i.kubectl("patch", "service", "winnow", "-n", namespace, "--type=merge",
		`--patch={"spec": {"type": "ExternalName", "externalName": "localhost"}}`)
	port, err := cluster.FreePort()
	if err != nil {
		i.t.Fatal(err)
	}
	user := serviceAccount(deployment.Spec.Template.Spec.ServiceAccountName)
	kubeconfig, err := i.cluster.KubeconfigFor(user.name, user.groups...)
	if err != nil {
		i.t.Fatal(err)
	}
	args := slices.Concat(deployment.Spec.Template.Spec.Containers[0].Args, []string{"--kubeconfig=" + kubeconfig, "--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port), "--service-port=" + strconv.Itoa(port), "--shutdown-delay-duration=0s"})
	if err := winnow.Build(i.t.Context(), i.binary(), false, os.Stderr); err != nil {
		i.t.Fatal(err)
	}
	process, err := i.cluster.Run(i.t.Context(), "installed", i.binary(), args, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	return process
}

func (i *installation) binary() string { return filepath.Join(i.cluster.Dir, "winnow-apiserver") }

// wantApart checks that the replicas are on different nodes, and that the guard runs.
func (i *installation) wantApart() {
	i.t.Helper()
	i.kubectl("rollout", "status", "deployment/winnow", "deployment/winnow-guard", "-n", namespace, "--timeout=5m")
	nodes := strings.Fields(
		i.kubectl("get", "pods", "-n", namespace, "-l", "app.kubernetes.io/name=winnow", "-o", "jsonpath={.items[*].spec.nodeName}"),
	)
	if len(nodes) != 2 || nodes[0] == nodes[1] {
		i.t.Errorf("the replicas are on the nodes %q, want two different ones", nodes)
	}
}
