// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestRefusals: a wrong value is refused, with a message that names it.
func TestRefusals(t *testing.T) {
	for values, want := range map[string]string{
		"replica=1":                                        "additional properties 'replica' not allowed",
		"image.digst=sha256:0":                             "at '/image': additional properties 'digst' not allowed",
		"optional.referrer=true":                           "at '/optional': additional properties 'referrer' not allowed",
		"guard.resources.request.cpu=1":                    "at '/guard/resources': additional properties 'request' not allowed",
		"size=huge":                                        "at '/size': value must be one of 'small', 'medium', 'large'",
		"optional.trainJobDeadlineSeconds=-1":              "at '/optional/trainJobDeadlineSeconds': minimum: got -1, want 0",
		"replicas=-1":                                      "at '/replicas': minimum: got -1, want 0",
		"replicas=two":                                     "at '/replicas': got string, want integer",
		"image.repository=":                                "at '/image/repository': '' does not match pattern",
		"image.repository=example.org/winnow@sha":          "at '/image/repository': 'example.org/winnow@sha' does not match pattern",
		"image.repository=example.org/winnow:v1":           "at '/image/repository': 'example.org/winnow:v1' does not match pattern",
		"image.tag=v 1":                                    "at '/image/tag': 'v 1' does not match pattern",
		"image.digest=0123":                                "at '/image/digest': '0123' does not match pattern",
		"image.pullPolicy=always":                          "at '/image/pullPolicy': value must be one of",
		"startSuspended=please":                            "at '/startSuspended': got string, want boolean",
		"protectedNamespaces=argocd":                       "at '/protectedNamespaces': got string, want array",
		"protectedNamespaces={argo.cd}":                    "at '/protectedNamespaces/0': 'argo.cd' does not match pattern",
		"resources.limits.memory=448":                      "at '/resources/limits/memory': got number, want string",
		"resources.limits.memory=2GB":                      "at '/resources/limits/memory': '2GB' does not match pattern",
		"extraArgs={--register=false}":                     "extraArgs contains --register, on which other objects of the chart depend: set register instead",
		"extraArgs={-v=2,--secure-port=9443}":              "extraArgs contains --secure-port, on which other objects of the chart depend: set port instead",
		"protectedNamespaces={Argo_CD}":                    "at '/protectedNamespaces/0': 'Argo_CD' does not match pattern",
		"defaultHoldAbove=-2":                              "at '/defaultHoldAbove': minimum: got -2, want -1",
		"extraArgs={concurrent-deletions=1}":               "at '/extraArgs/0': 'concurrent-deletions=1' does not match pattern",
		"logging.format=xml":                               "at '/logging/format': value must be one of 'json', 'text'",
		"guard.withdrawAfter=10 minutes":                   "at '/guard/withdrawAfter': '10 minutes' does not match pattern",
		"guard.withdrawAfter=0s":                           "at '/guard/withdrawAfter': '0s' does not match pattern",
		"logging.verbosity=8":                              "at '/logging/verbosity': maximum: got 8, want 7",
		"replicas=6":                                       "criticalPodsQuota is 10, and an upgrade of 6 replicas needs up to 14 Pods: raise it, or set it to 0 for no quota",
		"certificates.certManager.issuerRef.name=internal": `certificates.certManager.issuerRef is set, and certificates.source is "own"`,
		"optional.manageStorage=true":                      "optional.manageStorage lets Winnow install its storage, so Helm must not: set storage to false",
		"certificates.source=certManager,certificates.certManager.issuerRef.kind=ClusterIssuer": "missing property 'name'",
		"port=443":                               "at '/port': minimum: got 443, want 1,024",
		"podLabels.app\\.kubernetes\\.io/name=x": "at '/podLabels/app.kubernetes.io~1name': false schema",
		"certificates.source=vault":              "at '/certificates/source': value must be one of 'own', 'certManager', 'secret'",
		"certificates.source=secret":             `certificates.secretName is empty: set it to a Secret with tls.crt, tls.key and ca.crt`,
		"certificates.secretName=tls":            `certificates.secretName is set, and certificates.source is "own": set the source to "secret"`,
		"register=false":                         `register is false, so you apply the APIService yourself`,
		"optional.referrers=true":                "optional.referrers needs optional.moreResources: set both to true",
		"rights.delete=false":                    "rights.delete is false, so Winnow deletes only as ServiceAccounts: set accounts.enabled to true",
		"rights.delete=false,accounts.enabled=true,optional.deadlines=true": "optional.deadlines gives Winnow itself the right to patch Jobs and Pods",
		"accounts.enabled=true,accounts.beforeKubernetes136=true":           "accounts.beforeKubernetes136 allows Winnow every request as the accounts",
		"accounts.beforeKubernetes136=true,accounts.names=null":             "accounts.beforeKubernetes136 without accounts.names would let Winnow become any ServiceAccount",
		"accounts.default=winnow-cleaner":                                   "accounts.default and accounts.require have no use as long as Winnow can act as no account",
		"accounts.require=true":                                             "accounts.default and accounts.require have no use as long as Winnow can act as no account",
		"accounts.enabled=true,accounts.default=janitor":                    `accounts.default is "janitor", and accounts.names does not contain it: add it to accounts.names`,
		"accounts.enabled=true,accounts.names={system:admin}":               "at '/accounts/names/0': 'system:admin' does not match pattern",
		"extraArgs={--default-service-account=x}":                           "extraArgs contains --default-service-account, on which other objects of the chart depend: set accounts.default instead",
		"notify.url=http://events.example.org":                              "at '/notify/url': 'http://events.example.org' does not match pattern",
		"notify.url=https://me:secret@events.example.org":                   "at '/notify/url'",
		"notify.tokenSecret=events":                                         "the values of notify have no use without notify.url",
		"notify.systemRoots=true":                                           "the values of notify have no use without notify.url",
		"notify.url=https://a":                                              "notify.url needs notify.caSecret or notify.caConfigMap, with the authorities of the receiver in ca.crt: the image has none",
		"notify.url=https://a,notify.caSecret=a,notify.caConfigMap=b":       "only one of notify.caSecret, notify.caConfigMap and notify.systemRoots can be set",
		"notify.url=https://a,notify.sourcePrefix=prod":                     "at '/notify/sourcePrefix': 'prod' does not match pattern",
		"notify.url=https://a,notify.caSecret=A":                            "at '/notify/caSecret': 'A' does not match pattern",
		"networkPolicy.enabled=true,hostNetwork=true":                       "networkPolicy.enabled has no effect with hostNetwork",
	} {
		_, stderr, err := tryHelm(t, "template", "winnow", chart, "--namespace", namespace, "--set", values)
		if err == nil || !strings.Contains(stderr, want) {
			t.Errorf("--set %s: error %v, want %q in\n%s", values, err, want, stderr)
		}
	}
	if _, stderr, err := tryHelm(t, "template", "winnow", chart, "--kube-version", "1.33.4"); err == nil ||
		!strings.Contains(stderr, "chart requires kubeVersion: >=1.34.0-0 which is incompatible with Kubernetes v1.33.4") {
		t.Errorf("an old cluster: error %v\n%s", err, stderr)
	}
}

var documentedRefusal = regexp.MustCompile("(?m)^\\| `--set ([^`]+)` \\| `([^`]+)` \\|$")

// TestDocumentedRefusals: docs/install.md shows what Helm says.
func TestDocumentedRefusals(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := documentedRefusal.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 5 {
		t.Fatalf("docs/install.md has %d rows with --set", len(rows))
	}
	for _, row := range rows {
		_, stderr, err := tryHelm(t, "template", "winnow", chart, "--namespace", namespace, "--set", row[1])
		if err == nil || !strings.Contains(stderr, row[2]) {
			t.Errorf("--set %s: error %v, want %q in\n%s", row[1], err, row[2], stderr)
		}
	}
}

// schema is as much of JSON schema as the chart uses.
type schema struct {
	Ref                  string             `json:"$ref"`
	Defs                 map[string]*schema `json:"$defs"`
	Type                 any
	Properties           map[string]*schema
	AdditionalProperties any
	Enum                 []any
}

// UnmarshalJSON leaves a schema empty that is only true or false.
func (s *schema) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return nil
	}
	type plain schema
	return json.Unmarshal(text, (*plain)(s))
}

// TestAllowed: what may look wrong is allowed.
func TestAllowed(t *testing.T) {
	for _, values := range []string{
		"image.repository=localhost:5000/winnow", "guard.withdrawAfter=1h30m", "monitoring.serviceMonitor.interval=1m30s",
		"podDisruptionBudget.maxUnavailable=100%", "priorityClassName=null", "replicas=5,guard.enabled=false",
		"replicas=8,hostNetwork=true", "optional.manageStorage=true,storage=false", "extraArgs={--leader-elect-lease-duration=30s}",
	} {
		render(t, "--set", values)
	}
}

// TestSharedNamespace is refused: Winnow may create a Secret in its namespace, and by that a token of any ServiceAccount there.
func TestSharedNamespace(t *testing.T) {
	for _, shared := range []string{"kube-system", "default"} {
		_, stderr, err := tryHelm(t, "template", "winnow", chart, "--namespace", shared)
		if want := `the namespace is "` + shared + `", and Winnow needs one to itself`; err == nil || !strings.Contains(stderr, want) {
			t.Errorf("got %v, %s", err, stderr)
		}
	}
}

// TestSchemaFitsValues: values.schema.json knows exactly the values of values.yaml, and allows them; helm lint checks the latter.
func TestSchemaFitsValues(t *testing.T) {
	var values map[string]any
	var root schema
	read := func(file string, into any) {
		content, err := os.ReadFile(filepath.Join(chart, file))
		if err == nil {
			err = yaml.Unmarshal(content, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read("values.yaml", &values)
	read("values.schema.json", &root)
	delete(root.Properties, "global") // every chart has it
	for _, fault := range compare("", values, &root, root.Defs) {
		t.Error(fault)
	}
	values["added"], values["logging"].(map[string]any)["format"] = 1, 1
	delete(values, "size")
	if faults := compare("", values, &root, root.Defs); len(faults) != 3 {
		t.Errorf("three faults are %q", faults)
	}
}

// compare says what only one of values and schema has.
func compare(path string, value any, s *schema, defs map[string]*schema) (faults []string) {
	if s == nil {
		return []string{path + " is not in values.schema.json"}
	}
	if name, isRef := strings.CutPrefix(s.Ref, "#/$defs/"); isRef {
		s = defs[name]
	}
	object, isObject := value.(map[string]any)
	switch {
	case isObject && len(object) == 0: // what users may fill
	case isObject && s.AdditionalProperties == false:
		for name := range s.Properties {
			if _, ok := object[name]; !ok {
				faults = append(faults, fmt.Sprintf("%s/%s is not in values.yaml", path, name))
			}
		}
		for name, inner := range object {
			faults = append(faults, compare(path+"/"+name, inner, s.Properties[name], defs)...)
		}
	case s.Type == nil && !slices.Contains(s.Enum, value):
		faults = append(faults, fmt.Sprintf("%s is %v, want one of %v", path, value, s.Enum))
	}
	return faults
}

var sizeRow = regexp.MustCompile(`(?m)^\| ([\d,]+) \| [\d,]+ MB \| [\d,]+ MB \| (\d+Mi) \| (\d+Mi) \|$`)

// TestSizes: the sizes of the chart are the rows of docs/install.md.
func TestSizes(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, row := range sizeRow.FindAllStringSubmatch(string(page), -1) {
		rows[row[1]] = row[2:]
	}
	for size, documented := range map[string]string{"small": "100,000", "medium": "300,000", "large": "1,000,000"} {
		row := rows[documented]
		if row == nil {
			t.Fatalf("docs/install.md has no row for %s", documented)
		}
		want := fmt.Sprintf("          requests: {cpu: 50m, memory: %s}\n          limits: {memory: %s}\n", row[0], row[1])
		if out := render(t, "--set=size="+size, "--show-only=templates/server.yaml"); !strings.Contains(out, want) {
			t.Errorf("size %s, want\n%s in\n%s", size, want, out)
		}
	}
	// As much again for after: Unused as the page says.
	added := regexp.MustCompile(`add (\d+)Mi to the request and (\d+)Mi\s+to the limit`).FindStringSubmatch(string(page))
	if added == nil || added[1] != "96" || added[2] != "192" {
		t.Errorf("docs/install.md adds %q for unused objects, the chart 96 and 192", added)
	}
}
