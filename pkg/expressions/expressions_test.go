// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package expressions

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCompile: errors are the same as for a ValidatingAdmissionPolicy, with the position.
func TestCompile(t *testing.T) {
	for name, tc := range map[string]struct {
		text   string
		result Result
		err    string // part of it; empty if it compiles
	}{
		"a comparison":                    {"object.status.phase == 'Failed'", Bool, ""},
		"optional fields":                 {"object.?status.phase.orValue('') in ['Succeeded', 'Failed']", Bool, ""},
		"a library of Kubernetes":         {"quantity('1Gi').isGreaterThan(quantity('1Mi'))", Bool, ""},
		"a field is not known to be bool": {"object.spec.suspend", Bool, "must evaluate to bool but got dyn"},
		"a string is not bool":            {"'true'", Bool, "must evaluate to bool but got string"},
		"an unknown variable": {
			"object.a == 1 && oldObject.b == 2", Bool,
			"compilation failed: ERROR: <input>:1:18: undeclared reference to 'oldObject' (in container '')\n" +
				" | object.a == 1 && oldObject.b == 2\n" +
				" | .................^"},
		"on another line": {"true &&\n  foo()", Bool, "<input>:2:6: undeclared reference to 'foo'"},
		"syntax":          {"object.a ==", Bool, "compilation failed: ERROR: <input>:1:12: Syntax error"},
		"empty":           {"", Bool, "compilation failed: ERROR: <input>:1:0: Syntax error"},
		"a bad pattern":   {"'a'.matches('[')", Bool, "invalid matches argument"},
		"no clock":        {"now() > timestamp('2026-01-01T00:00:00Z')", Bool, "compilation failed: expressions cannot read the time; the TTL of a rule says how long an object is kept: ERROR"},
		"a field of nothing": {
			"metadata.name == 'a'", Bool, "compilation failed: did you mean object.metadata? ERROR: <input>:1:1: undeclared reference to 'metadata'",
		},
		"a field as time": {"object.status.completionTime", Time, ""},
		"a timestamp":     {"timestamp(object.status.completionTime)", Time, ""},
		"a string":        {"'2026-01-01T00:00:00Z'", Time, ""},
		"no time":         {"null", Time, ""},
		"a number is no time": {
			"1", Time, "must evaluate to one of [google.protobuf.Timestamp string dyn null_type] but got int"},
		"an optional is no time": {"object.?status.at", Time, "but got optional_type(dyn)"},
		"seconds":                {"3600", Duration, ""},
		"a field as duration":    {"object.spec.ttlSecondsAfterFinished", Duration, ""},
		"a duration":             {"duration('1h')", Duration, ""},
		"perhaps a duration":     {"object.?spec.ttl.orValue(null)", Duration, ""},
		"a list is no duration":  {"[1]", Duration, "but got list(int)"},
		"a name":                 {"object.metadata.name + '-tls'", Names, ""},
		"names":                  {"object.spec.items.map(i, [i.name, i.?secret.name.orValue('')])", Names, ""},
		"a field with names":     {"object.?spec.solvers.orValue([])", Names, ""},
		"an object with names":   {"{'a': object.spec}", Names, ""},
		"a number is no name":    {"1", Names, "but got int"},
		"bool is no name":        {"object.a == 'b'", Names, "but got bool"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, compile := range []func(string, Result) (*Expression, error){New, Stored} {
				e, err := compile(tc.text, tc.result)
				switch {
				case tc.err == "" && (err != nil || e.String() != tc.text):
					t.Errorf("got %v, %v", e, err)
				case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
					t.Errorf("got error %v, want %s", err, tc.err)
				}
			}
		})
	}
}

var content = map[string]any{
	"metadata": map[string]any{"name": "a", "labels": map[string]any{"app.kubernetes.io/name": "web"}},
	"spec": map[string]any{
		"ttl": int64(60), "fraction": 1.5, "text": "1h30m", "zero": int64(0), "negative": int64(-1), "nothing": nil, "huge": 1e300,
		"list": []any{int64(1), int64(2)},
	},
	"status": map[string]any{"phase": "Failed", "at": "2026-03-01T14:00:00+02:00", "soon": "soon", "done": true},
}

func TestEvaluate(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, tc := range map[string]struct {
		result Result
		want   any
		err    string
	}{
		"object.status.phase == 'Failed'":                           {Bool, true, ""},
		"has(object.status.other)":                                  {Bool, false, ""},
		"object.?status.other.orValue('') == 'x'":                   {Bool, false, ""},
		"object.metadata.labels['app.kubernetes.io/name'] == 'web'": {Bool, true, ""},
		"object.spec.list.exists(x, x == 2)":                        {Bool, true, ""},
		"object.spec.ttl > 59.5":                                    {Bool, true, ""},
		"object.status.other == 'x'":                                {Bool, nil, "expression 'object.status.other == 'x'' resulted in error: no such key: other"},
		"object.status.phase.other == 'x'":                          {Bool, nil, "resulted in error"},
		"object.status.at":                                          {Time, at, ""},
		"timestamp(object.status.at)":                               {Time, at, ""},
		"object.spec.nothing":                                       {Time, time.Time{}, ""},
		"object.?status.other.orValue(null)":                        {Time, time.Time{}, ""},
		"object.status.soon":                                        {Time, nil, `cannot parse "soon"`},
		"object.spec.ttl":                                           {Time, nil, "but got int"},
		"object.spec['ttl']":                                        {Duration, time.Minute, ""},
		"object.spec.fraction":                                      {Duration, 1500 * time.Millisecond, ""},
		"object.spec.text":                                          {Duration, 90 * time.Minute, ""},
		"object.spec.zero":                                          {Duration, time.Duration(0), ""},
		"duration(object.spec.text)":                                {Duration, 90 * time.Minute, ""},
		"60u":                                                       {Duration, time.Minute, ""},
		"null":                                                      {Duration, nil, ""},
		"object.spec.negative":                                      {Duration, nil, "negative"},
		"'-1h'":                                                     {Duration, nil, "negative"},
		"object.spec.huge":                                          {Duration, nil, "out of range"},
		"9223372036854775807":                                       {Duration, nil, "out of range"},
		"object.status.phase":                                       {Duration, nil, "invalid duration"},
		"object.status.done":                                        {Duration, nil, "but got bool"},
		"'a'":                                                       {Names, "a", ""},
		"object.?spec.other.orValue(null)":                          {Names, nil, ""},
		"[{'x': object.spec.text}]":                                 {Names, []any{map[string]any{"x": "1h30m"}}, ""},
		"[[object.status.phase], []]":                               {Names, []any{[]any{"Failed"}, []any(nil)}, ""},
		"object.spec['zero']":                                       {Names, nil, "but got int"},
	} {
		t.Run(text, func(t *testing.T) {
			e, err := New(text, tc.result)
			if err != nil {
				t.Fatal(err)
			}
			got, err := evaluate(e, tc.result)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, error %v, want %s", got, err, tc.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

func evaluate(e *Expression, result Result) (any, error) {
	o := NewObject(content, LifecycleBudget)
	switch result {
	case Bool, Condition:
		return e.Bool(o)
	case Time:
		return e.Time(o)
	case Names:
		return e.Names(o)
	case Duration:
		d, err := e.Duration(o)
		if d == nil {
			return nil, err
		}
		return *d, err
	}
	return nil, errors.New("unknown result")
}

func TestAnotherResult(t *testing.T) {
	e, err := New("true", Bool)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Time(NewObject(content, LifecycleBudget)); !errors.Is(err, errOtherResult) {
		t.Errorf("a condition was evaluated as a time: %v", err)
	}
}

// expensive costs about a hundredth of the square of the length of the text.
func expensive(t *testing.T) *Expression {
	t.Helper()
	e, err := New("object.text.contains(object.text)", Bool)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func text(length int) map[string]any { return map[string]any{"text": strings.Repeat("x", length)} }

// TestCostOfOneCall: an evaluation is cut off when it has used the budget of the object.
func TestCostOfOneCall(t *testing.T) {
	e := expensive(t)
	if ok, err := e.Bool(NewObject(text(2_000), LifecycleBudget)); !ok || err != nil {
		t.Errorf("a short text: %t, %v", ok, err)
	}
	o := NewObject(text(10_000), LifecycleBudget)
	if ok, err := e.Bool(o); ok || err == nil || !errors.Is(err, ErrOutOfBudget) {
		t.Errorf("a long text: %t, %v", ok, err)
	}
	if o.budget != 0 {
		t.Errorf("a call that was cut off left %d of the budget", o.budget)
	}
}

// TestCostOfACondition: a match condition may cost less than an expression of a lifecycle.
func TestCostOfACondition(t *testing.T) {
	for length, fails := range map[int]bool{200: false, 2_000: true} {
		e, err := New("object.text.contains(object.text)", Condition)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Bool(NewObject(text(length), ConditionBudget)); errors.Is(err, ErrOutOfBudget) != fails {
			t.Errorf("a text of %d bytes: %v", length, err)
		}
	}
}

// TestLoops: the iterations of a loop cost too.
func TestLoops(t *testing.T) {
	e, err := New("object.items.all(a, object.items.all(b, a + b >= 0))", Bool)
	if err != nil {
		t.Fatal(err)
	}
	for n, least := range map[int]uint64{10: 10 * 10, 50: 50 * 50} {
		items := make([]any, n)
		for i := range items {
			items[i] = int64(i)
		}
		o := NewObject(map[string]any{"items": items}, LifecycleBudget)
		ok, err := e.Bool(o)
		if used := LifecycleBudget - o.budget; !ok || err != nil || used < least {
			t.Errorf("%d items: %t, %v, used %d", n, ok, err, used)
		}
	}
}

// TestBudgetOfOneObject: all expressions of an object share its budget, and nothing is evaluated once it is used up.
func TestBudgetOfOneObject(t *testing.T) {
	e, o := expensive(t), NewObject(text(1_700), LifecycleBudget)
	calls := 0
	for ; calls < 100; calls++ {
		if _, err := e.Bool(o); err != nil {
			if !errors.Is(err, ErrOutOfBudget) {
				t.Fatal(err)
			}
			break
		}
	}
	if calls != 3 {
		t.Errorf("%d calls were within the budget", calls)
	}
	cheap, err := New("true", Bool)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cheap.Bool(o); !errors.Is(err, ErrOutOfBudget) {
		t.Errorf("without a budget: %v", err)
	}
	if ok, err := cheap.Bool(NewObject(text(1_700), LifecycleBudget)); !ok || err != nil {
		t.Errorf("another object: %t, %v", ok, err)
	}
}

// TestLargeObject: an object of a megabyte fails neither by time nor by cost if little of it is read.
func TestLargeObject(t *testing.T) {
	e, err := New("object.status.phase == 'Failed' && object.spec.text.size() > 0", Bool)
	if err != nil {
		t.Fatal(err)
	}
	o := NewObject(map[string]any{
		"spec": map[string]any{"text": strings.Repeat("x", 1<<20)}, "status": map[string]any{"phase": "Failed"},
	}, LifecycleBudget)
	if ok, err := e.Bool(o); !ok || err != nil {
		t.Errorf("got %t, %v", ok, err)
	}
}

func TestFields(t *testing.T) {
	for text, want := range map[string]string{
		"true":                       "[]",
		"object.status.phase == 'a'": "[[status phase]]",
		"has(object.status.phase)":   "[[status phase]]",
		"object.?status.phase.orValue('') == 'a'":                                                                 "[[status phase]]",
		"object.?status.?phase.hasValue()":                                                                        "[[status phase]]",
		"object['status'][?'phase'].orValue('') == object.status.other":                                           "[[status other] [status phase]]",
		"object.spec.a == object.spec":                                                                            "[[spec]]",
		"object.spec[object.metadata.name] == 1":                                                                  "[[metadata name] [spec]]",
		"object.status.conditions.exists(c, c.type == 'A')":                                                       "[[status conditions]]",
		"object.status.conditions[0].type == 'A'":                                                                 "[[status conditions]]",
		"object.?status.conditions.orValue([]).all(c, c.type == object.spec.type)":                                "[[spec type] [status conditions]]",
		"object == object":                                                                                        "[[]]",
		"dyn(object).spec.a == 1":                                                                                 "[[]]",
		"[object].exists(o, o.spec.a == 1)":                                                                       "[[]]",
		"{'a': object.spec.b}.a == 1 && object.spec.bc == 1":                                                      "[[spec b] [spec bc]]",
		"{object.spec.b: 1}.size() == 1":                                                                          "[[spec b]]",
		"object.spec.list.exists(object, object.a == 1)":                                                          "[[a] [spec list]]",
		"[1].exists(object, has(.object.spec.a) && .object.spec['b'] == 1)":                                       "[[spec a] [spec b]]",
		".object.metadata.name == 'a'":                                                                            "[[metadata name]]",
		"(object.spec.a ? object.spec.b : object.spec.c).d == 1":                                                  "[[spec a] [spec b] [spec c]]",
		"object.metadata.name.startsWith('a')":                                                                    "[[metadata name]]",
		"object.metadata.labels['a/b'] == 'c' && 'd' in object.metadata.annotations":                              "[[metadata annotations] [metadata labels a/b]]",
		"object.status.map.transformList(k, v, k == object.spec.key).size() == 1":                                 "[[spec key] [status map]]",
		"object.?status.map.optMap(m, m.a + object.spec.b).orValue(0) == 1 && object.status.?other.orValue(true)": "[[spec b] [status map] [status other]]",
	} {
		e, err := New(text, Bool)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := fmt.Sprint(e.Fields()); got != want {
			t.Errorf("%s\nreads %s, want %s", text, got, want)
		}
	}
}

// TestReads: a path leads into the elements of lists, whatever takes them.
func TestReads(t *testing.T) {
	for text, want := range map[string]string{
		"object.status.phase == 'a'":                                                        "status.phase",
		"object.spec.containers.exists(c, has(c.newer))":                                    "spec.containers.newer",
		"object.spec.containers[0].newer == 'a'":                                            "spec.containers.newer",
		"object.spec.containers.all(c, c.env.exists(e, e.newer == object.metadata.name))":   "spec.containers.env.newer",
		"object.spec.list.exists(object, object.a == 1)":                                    "spec.list.a",
		"object.spec.list.transformList(i, v, v.newer).size() == 1":                         "spec.list.newer",
		"[1].exists(object, has(.object.spec.a))":                                           "spec.a",
		"object.spec.list.exists(c, object.spec.other.exists(c, c.newer == 1) && c.a == 1)": "spec.other.newer",
	} {
		e, err := New(text, Bool)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		all := e.Reads()
		if !slices.ContainsFunc(all, func(path []string) bool { return strings.Join(path, ".") == want }) {
			t.Errorf("%s\nreads %v, want %s among them", text, all, want)
		}
	}
}

func TestOverlap(t *testing.T) {
	for paths, want := range map[string]bool{
		"": false, "a": true, "a.b": true, "a.b.c": true, "a.bc": false, "b": false, "b,a": true,
	} {
		var fields [][]string
		for path := range strings.SplitSeq(paths, ",") {
			if path != "" {
				fields = append(fields, strings.Split(path, "."))
			}
		}
		if got := Overlap(fields, "a", "b"); got != want {
			t.Errorf("%s and a.b: %t", paths, got)
		}
	}
	if !Overlap([][]string{{}}, "a", "b") {
		t.Error("a.b is in the whole object")
	}
}

func TestUnion(t *testing.T) {
	a := [][]string{{"spec", "ttl"}, {"status", "phase"}, {"a", "b"}}
	b := [][]string{{"status"}, {"spec", "ttl"}, {"a", "bc"}, {"a", "b", "c"}}
	if got, want := fmt.Sprint(Union(a, b)), "[[a b] [a bc] [spec ttl] [status]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Union(a, [][]string{{}}); len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("with the whole object: %v", got)
	}
	if got := Union(); got != nil {
		t.Errorf("of nothing: %v", got)
	}
	if !slices.Equal(a[0], []string{"spec", "ttl"}) {
		t.Errorf("the argument became %v", a)
	}
}
