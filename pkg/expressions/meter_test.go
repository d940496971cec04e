// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package expressions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/cel/environment"
)

// inLoops repeats an expression 900 times, which itself is within the budget.
func inLoops(expression string) string {
	numbers := "[" + strings.TrimSuffix(strings.Repeat("1,", 30), ",") + "]"
	return numbers + ".all(a, " + numbers + ".all(b, " + expression + "))"
}

// doubled is a list in lists, in which each level has the one below twice: 2^30 values in a few bytes.
func doubled() string { return "[1]" + strings.Repeat(".map(a, [a, a])", 30) }

// largePod is a Pod of 20,000 annotations, with a text of 400 kB.
func largePod() map[string]any {
	annotations := map[string]any{}
	for i := range 20_000 {
		annotations[fmt.Sprintf("example.com/%05d", i)] = "value"
	}
	return map[string]any{
		"metadata": map[string]any{
			"name": "large", "annotations": annotations, "labels": map[string]any{"app": "a", "tier": "b"},
			"finalizers": []any{"a", "b"},
		},
		"spec": map[string]any{"text": strings.Repeat("aé", 130_000), "pattern": strings.Repeat("(a|b)", 2_000)},
	}
}

// costly takes seconds, or any memory, if calls are counted only after they were made.
var costly = []string{
	"object == object",
	inLoops("object == object"),
	inLoops("object != object"),
	inLoops("[object] == [object]"),
	inLoops("object in [object]"),
	inLoops("object.metadata.annotations == object.metadata.annotations"),
	inLoops("object.metadata.annotations == object.metadata.annotations || true"),
	inLoops("object.metadata.annotations.exists(k, true)"),
	inLoops("object.metadata.annotations.exists(k, v, true)"),
	inLoops("size(object.spec.text) > 0"),
	inLoops("object.metadata.labels[object.spec.text] == 'x' || true"),
	inLoops("timestamp('2020-01-01T00:00:00Z').getHours('Europe/Berlin') > -1"),
	inLoops("sets.contains([object.metadata.annotations], [object.metadata.annotations])"),
	inLoops("object.spec.text <= object.spec.text"),
	inLoops("object.spec.text.contains(object.spec.text)"),
	inLoops("(object.spec.text + object.spec.text) != 'a'"),
	doubled() + ".all(x, x == x)",
	doubled() + ".all(x, x in [x])",
	"sets.equivalent(" + doubled() + ", " + doubled() + ")",
	"lists.range(1000000).size() > 0",
	"lists.range(3000).distinct().size() > 0",
	"lists.range(5000).sort().size() > 0",
	"object.metadata.annotations.map(k, k).distinct().size() > 0",
	"object.spec.text.replace('', object.spec.text).size() > 0",
	"object.spec.text.split('').size() > 0",
	"[object.spec.text, object.spec.text, object.spec.text].join(object.spec.text).size() > 0",
	"'%.1000000f'.format([1.0]).size() > 0",
	"'%s'.format([object]).size() > 0",
	"object.spec.text.matches('(.{1,1000})x')",
	"'a'.matches(object.spec.pattern)",
	"object.spec.text.matches(object.spec.pattern)",
	"object.spec.text.findAll('a').size() > 0",
	"quantity('1e99999999').isGreaterThan(quantity('1'))",
	"object.metadata.annotations.transformMapEntry(k, v, object.metadata.annotations).size() > 0",
}

// TestCostIsTime: whatever takes long costs more than its budget, and is not even begun.
func TestCostIsTime(t *testing.T) {
	pod := largePod()
	for _, text := range costly {
		e, err := New(text, Condition)
		if err != nil {
			t.Errorf("%.80s: %v", text, err)
			continue
		}
		if ok, err := e.Bool(NewObject(pod, ConditionBudget)); !errors.Is(err, ErrOutOfBudget) {
			t.Errorf("%.80s: %t, %v", text, ok, err)
		}
	}
}

// TestMeteredValues: the meter changes no result.
func TestMeteredValues(t *testing.T) {
	pod := largePod()
	for text, want := range map[string]bool{
		"object.metadata.labels == object.metadata.labels":                     true,
		"object.metadata.labels == object.metadata.finalizers":                 false,
		"object.metadata.labels != {'app': 'a', 'tier': 'b'}":                  false,
		"object.metadata.labels == object":                                     false,
		"object.metadata.labels.app < object.metadata.labels.tier":             true,
		"object.metadata.name in ['small', 'large']":                           true,
		"object.metadata.name in object.metadata.labels":                       false,
		"object.metadata.labels.app in object.metadata.finalizers":             true,
		"object.metadata.labels[object.metadata.finalizers[0] + 'pp'] == 'a'":  true,
		"object.metadata.?annotations['example.com/00001'].orValue('') == ''":  false,
		"object.metadata.labels.map(k, k).size() == 2":                         true,
		"object.metadata.labels.exists(k, v, k == 'app' && v == 'a')":          true,
		"object.metadata.labels.transformMap(k, v, v + k).tier == 'btier'":     true,
		"object.metadata.name.matches('^l[a-z]{1,10}e$')":                      true,
		"object.metadata.name.matches(object.metadata.labels.tier)":            false,
		"object.metadata.name.replace('l', 'b').startsWith('bar')":             true,
		"sets.intersects(object.metadata.finalizers, ['b', 'c'])":              true,
		"object.metadata.finalizers + ['c'] == ['a', 'b', 'c']":                true,
		"lists.range(3).sort() == [0, 1, 2]":                                   true,
		"[3, 1, 2].sortBy(n, -n) == [3, 2, 1]":                                 true,
		"object.metadata.finalizers.join('/') == '%s/%s'.format(['a', 'b'])":   true,
		"quantity('1Gi') == quantity('1024Mi')":                                true,
		"timestamp('2020-01-01T00:00:00Z').getHours('Europe/Berlin') == 1":     true,
		"optional.of(object.metadata.labels) == optional.of({'app': 'a'})":     false,
		"object.metadata.annotations['example.com/19999'] == 'value'":          true,
		"object.metadata.name == 'large' && object.spec.text != 'a'":           true,
		"has(object.metadata.deletionTimestamp) || object.metadata.name != ''": true,
	} {
		e, err := New(text, Condition)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		o := NewObject(pod, ConditionBudget)
		if got, err := e.Bool(o); got != want || err != nil {
			t.Errorf("%s: got %t, %v", text, got, err)
		}
		if used := ConditionBudget - o.budget; used > 1_000 {
			t.Errorf("%s costs %d", text, used)
		}
	}
}

// TestNamesOfLists: a result that has more values than the budget allows is not read.
func TestNamesOfLists(t *testing.T) {
	e, err := New(doubled(), Names)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Names(NewObject(map[string]any{}, LifecycleBudget)); !errors.Is(err, ErrOutOfBudget) {
		t.Errorf("got %v", err)
	}
}

// TestLargePattern: the program of a regular expression is kept with its expression, so it is not compiled if it is too large.
func TestLargePattern(t *testing.T) {
	for pattern, ok := range map[string]bool{
		"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$": true, ".{1000}": true, strings.Repeat(".{1000}", 10): false, "(((a{10}){10}){10})b{100}": true,
	} {
		_, err := New("object.a.matches('"+pattern+"')", Condition)
		if (err == nil) != ok {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// TestEveryFunctionHasAPrice: a function that CEL adds is looked at before it is priced as the product of its arguments.
func TestEveryFunctionHasAPrice(t *testing.T) {
	set, err := environments()
	if err != nil {
		t.Fatal(err)
	}
	env, err := set.Env(environment.StoredExpressions)
	if err != nil {
		t.Fatal(err)
	}
	var products []string
	for function := range env.Functions() {
		if _, listed := prices[function]; !listed && !constant.Has(function) && !slices.Contains(withoutAPrice, function) {
			products = append(products, function)
		}
	}
	slices.Sort(products)
	want := strings.Fields(`bool bytes charAt cidr contains containsCIDR containsIP double duration flatten includes indexOf int ip
		ip.isCanonical isCIDR isIP isSemver isSorted isURL join lastIndexOf lowerAscii max min replace reverse semver sets.contains
		sets.equivalent sets.intersects slice split string strings.quote substring sum timestamp trim uint unwrapOpt optional.unwrap
		upperAscii url validate`)
	slices.Sort(want)
	if !slices.Equal(products, want) {
		t.Errorf("the product of their arguments is the price of\n%v, want\n%v", products, want)
	}
}

// withoutAPrice are priced by their keys, cannot be called without an authorizer, have no arguments, or are old names.
var withoutAPrice = strings.Fields(`@metered _[_] _[?_] _?._ _/_ _in_ in fieldSelector group labelSelector name namespace path resource
	serviceAccount subresource format.byte format.date format.datetime format.dns1035Label format.dns1035LabelPrefix format.dns1123Label
	format.dns1123LabelPrefix format.dns1123Subdomain format.dns1123SubdomainPrefix format.labelValue format.named format.qualifiedName
	format.uri format.uuid`)

// BenchmarkCostly shows how long the costliest conditions take on a Pod of 20,000 annotations.
func BenchmarkCostly(b *testing.B) {
	pod := largePod()
	for _, text := range costly {
		e, err := New(text, Condition)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%.60s", text[max(0, len(text)-60):]), func(b *testing.B) {
			for b.Loop() {
				_, _ = e.Bool(NewObject(pod, ConditionBudget))
			}
		})
	}
}
