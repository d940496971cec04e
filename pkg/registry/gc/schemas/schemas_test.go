// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	clocktesting "k8s.io/utils/clock/testing"
)

// schema has one field, with the name of the resource.
func schema(resource string) *spec.Schema {
	s := spec.MapProperty(nil)
	s.AdditionalProperties, s.Properties = nil, map[string]spec.Schema{resource: *spec.StringProperty()}
	return s
}

// cluster has the schemas of all resources, and counts what it is asked.
type cluster struct {
	asked  atomic.Int64
	answer func(ctx context.Context, resource string) (*spec.Schema, error)
	clock  *clocktesting.FakePassiveClock
	*Checker
}

func newCluster() *cluster {
	c := &cluster{clock: clocktesting.NewFakePassiveClock(time.Now())}
	c.answer = func(_ context.Context, resource string) (*spec.Schema, error) { return schema(resource), nil }
	c.Checker = NewChecker(func(ctx context.Context, resource string) (*spec.Schema, error) {
		c.asked.Add(1)
		return c.answer(ctx, resource)
	}, c.clock)
	return c
}

// use returns the use of expressions in one rule.
func use(rule int, resources []string, expressions ...string) Use {
	out := Use{Resources: resources}
	for i, e := range expressions {
		out.Expressions = append(out.Expressions, Expression{field.NewPath("rules").Index(rule).Key(fmt.Sprint(i)), e})
	}
	return out
}

func names(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint("r", i))
	}
	return out
}

func TestMisfits(t *testing.T) {
	refused := errors.New("no connection")
	many := slices.Repeat([]string{"object.x == 'a'"}, linesMost+5)
	misfit := func(at, resource string) string {
		return "rules" + at + " does not fit the schema of " + resource + ": 1:7: undefined field 'x'. Objects for which it fails are kept"
	}
	for name, tc := range map[string]struct {
		answer func(context.Context, string) (*spec.Schema, error)
		uses   []Use
		want   []string
		asked  int64
	}{
		"nothing to check": {uses: []Use{use(0, []string{"r0"})}},
		"fits":             {uses: []Use{use(0, []string{"r0"}, "object.r0 == 'a'")}, asked: 1},
		"no schema": {
			answer: func(context.Context, string) (*spec.Schema, error) { return nil, nil },
			uses:   []Use{use(0, []string{"r0"}, "object.x == 'a'")}, asked: 1,
		},
		"does not fit one of two": {
			uses: []Use{use(0, []string{"x", "r1"}, "object.x == 'a'")}, asked: 2, want: []string{misfit("[0][0]", "r1")},
		},
		"each resource once": {
			uses:  []Use{use(0, []string{"r0"}, "object.x == 'a'"), use(1, []string{"r0"}, "object.x == 'a'")},
			asked: 1, want: []string{misfit("[0][0]", "r0"), misfit("[1][0]", "r0")},
		},
		"an error once": {
			answer: func(context.Context, string) (*spec.Schema, error) { return nil, refused },
			uses:   []Use{use(0, []string{"r0"}, "object.x == 'a'"), use(1, []string{"r0"}, "object.x == 'a'")},
			asked:  1, want: []string{"the expressions could not be checked against the schema of r0: no connection"},
		},
		"a panic": {
			answer: func(context.Context, string) (*spec.Schema, error) { panic("a bad schema") },
			uses:   []Use{use(0, []string{"r0"}, "object.x == 'a'")}, asked: 1,
			want: []string{"the expressions could not be checked against the schema of r0: panic: a bad schema"},
		},
		"too many resources": {
			uses: []Use{use(0, names(resourcesMost+3), "object.x == 'a' || true")}, asked: resourcesMost,
			want: []string{"not all expressions were checked against the schemas of 3 of the resources: " +
				"a write is checked against up to 16 resources, for up to 3s"},
		},
		"too many misfits": {
			uses: []Use{use(0, []string{"r0"}, many...)}, asked: 1,
			want: []string{"5 more expressions do not fit the schema of a resource"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			if tc.answer != nil {
				c.answer = tc.answer
			}
			got := c.Misfits(t.Context(), tc.uses...)
			if strings.HasPrefix(name, "too many") { // What comes before is not of interest.
				got = got[len(got)-1:]
			}
			if !slices.Equal(got, tc.want) || c.asked.Load() != tc.asked {
				t.Errorf("asked %d times, got\n%s\nwant %d\n%s", c.asked.Load(), strings.Join(got, "\n"), tc.asked, strings.Join(tc.want, "\n"))
			}
		})
	}
	if got := (*Checker)(nil).Misfits(t.Context(), use(0, []string{"r0"}, "object.x")); got != nil {
		t.Errorf("without a cluster: %q", got)
	}
}

// TestManyRules: a write of as many rules as a policy can have takes one question for each of a few resources, and a few lines.
func TestManyRules(t *testing.T) {
	c := newCluster()
	var uses []Use
	for i := range 100 {
		uses = append(uses, use(i, names(16), "object.x == 'a'"))
	}
	got := c.Misfits(t.Context(), uses...)
	if c.asked.Load() != 16 || len(got) != linesMost+1 {
		t.Errorf("asked %d times, got %d lines: %s", c.asked.Load(), len(got), got[len(got)-1])
	}
}

// TestKept: many writes ask once a minute, also if they come at the same time. An error, or that there is no schema, is kept for a shorter
// time.
func TestKept(t *testing.T) {
	c, wanted := newCluster(), use(0, []string{"r0"}, "object.x == 'a'")
	writes := func(want int64) {
		t.Helper()
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() { c.Misfits(t.Context(), wanted) })
		}
		group.Wait()
		if got := c.asked.Load(); got != want {
			t.Errorf("asked %d times, want %d", got, want)
		}
	}
	writes(1)
	c.clock.SetTime(c.clock.Now().Add(keepFor))
	writes(1)
	c.answer = func(context.Context, string) (*spec.Schema, error) { return nil, errors.New("no connection") }
	c.clock.SetTime(c.clock.Now().Add(1))
	writes(2)
	c.clock.SetTime(c.clock.Now().Add(keepNoneFor + 1))
	c.answer = func(context.Context, string) (*spec.Schema, error) { return nil, nil }
	writes(3)
	c.clock.SetTime(c.clock.Now().Add(keepNoneFor + 1))
	writes(4)
}

// TestTimeout: a cluster that does not answer delays a write by a few seconds, however many resources it names. A request that ends earlier
// does not wait for that, and others still get the answer.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.answer = func(ctx context.Context, _ string) (*spec.Schema, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		begin, wanted := time.Now(), use(0, names(10), "object.x == 'a'")
		got := c.Misfits(t.Context(), wanted)
		took := time.Since(begin)
		if took != timeout || len(got) != 2 || !strings.Contains(got[0], "the schemas of 9 of the resources") ||
			!strings.HasSuffix(got[1], "the schema of r0: context deadline exceeded") {
			t.Errorf("after %s: %q", took, got)
		}
		time.Sleep(fetchTimeout) // The answer for the second resource may still come.
		if synctest.Wait(); c.asked.Load() != 2 {
			t.Errorf("asked %d times", c.asked.Load())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, wanted := newCluster(), use(0, []string{"r0"}, "object.x == 'a'")
		c.answer = func(ctx context.Context, resource string) (*spec.Schema, error) {
			time.Sleep(time.Second)
			return schema(resource), ctx.Err()
		}
		var group sync.WaitGroup
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if got := c.Misfits(ctx, wanted); len(got) != 1 || !strings.HasPrefix(got[0], "not all expressions were checked") {
				t.Errorf("the first request got %q", got)
			}
		})
		time.Sleep(time.Microsecond)
		group.Go(func() {
			if got := c.Misfits(t.Context(), wanted); len(got) != 1 || !strings.Contains(got[0], "undefined field 'x'") {
				t.Errorf("the second request got %q", got)
			}
		})
		group.Wait()
		if c.asked.Load() != 1 {
			t.Errorf("asked %d times", c.asked.Load())
		}
	})
}
