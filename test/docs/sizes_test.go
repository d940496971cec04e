// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// size is a row of the table in docs/install.md: megabytes of memory, and what follows for the container.
type size struct {
	atRest, atMost float64
	request, limit string
}

var sizeRow = regexp.MustCompile(`(?m)^\| ([\d,]+) \| ([\d,]+) MB \| ([\d,]+) MB \| (\d+Mi) \| (\d+Mi) \|$`)

func sizes(t *testing.T) map[int]size {
	t.Helper()
	found := map[int]size{}
	for _, row := range sizeRow.FindAllStringSubmatch(pages(t)[filepath.Join(root, "docs/install.md")], -1) {
		found[int(number(t, row[1]))] = size{number(t, row[2]), number(t, row[3]), row[4], row[5]}
	}
	if len(found) != 3 {
		t.Fatalf("found the sizes %v in docs/install.md", found)
	}
	return found
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSizesFollowFromWhatWasMeasured: a new measurement changes the table, and the table the limits.
func TestSizesFollowFromWhatWasMeasured(t *testing.T) {
	measured := func(row string) (hundredThousand, million float64) {
		t.Helper()
		cells := regexp.MustCompile(`(?m)^\| ` + row + ` \| ([\d,]+) \|[^|]*\|[^|]*\| ([\d,]+) \|`).
			FindStringSubmatch(pages(t)[filepath.Join(root, "docs/performance.md")])
		if cells == nil {
			t.Fatalf("docs/performance.md has no row %q", row)
		}
		return number(t, cells[1]), number(t, cells[2])
	}
	rest0, rest1 := measured("resident, MB")
	most0, most1 := measured("most resident during a list of all anew, MB")
	for objects, row := range sizes(t) {
		part := float64(objects-100_000) / 900_000
		want := size{atRest: math.Round(rest0 + part*(rest1-rest0)), atMost: math.Round(most0 + part*(most1-most0))}
		want.request, want.limit = mebibytes(1.1*want.atRest), mebibytes(1.25*want.atMost)
		if row != want {
			t.Errorf("docs/install.md says %+v of %d objects, want %+v", row, objects, want)
		}
	}
}

// mebibytes rounds megabytes up to 32Mi.
func mebibytes(megabytes float64) string {
	return fmt.Sprintf("%dMi", 32*int(math.Ceil(megabytes*1e6/(32<<20))))
}

// TestDeploymentHasASize: the container has the request and limit of one row, and GOMEMLIMIT is between what Winnow needs at most and the
// limit.
func TestDeploymentHasASize(t *testing.T) {
	container := deployment(t).Spec.Template.Spec.Containers[0]
	row := sizes(t)[300_000]
	request, limit := container.Resources.Requests[corev1.ResourceMemory], container.Resources.Limits[corev1.ResourceMemory]
	if request.Cmp(resource.MustParse(row.request)) != 0 || limit.Cmp(resource.MustParse(row.limit)) != 0 {
		t.Errorf("the container requests %v and is limited to %v, want %s and %s", &request, &limit, row.request, row.limit)
	}
	// As the kubelet does: the limit in the units of the divisor, put instead of its name.
	from := container.Env[0].ValueFrom.ResourceFieldRef
	units := int64(math.Ceil(float64(limit.Value()) / float64(from.Divisor.Value())))
	soft := number(t, strings.ReplaceAll(container.Env[1].Value, "$("+container.Env[0].Name+")", strconv.FormatInt(units, 10)))
	if container.Env[1].Name != "GOMEMLIMIT" || from.Resource != "limits.memory" || soft < 1e6*row.atMost ||
		soft > 0.96*float64(limit.Value()) {
		t.Errorf("%s is %.0f bytes, want it above %.0f MB and a little below %v", container.Env[1].Name, soft, row.atMost, &limit)
	}
}

func deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	file, err := os.Open(filepath.Join(root, "artifacts/install/20-server.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := &appsv1.Deployment{}
		if err := decoder.Decode(object); err != nil {
			t.Fatalf("no Deployment: %v", err)
		}
		if object.Kind == "Deployment" {
			return object
		}
	}
}
