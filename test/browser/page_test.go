// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/winnow-dev/winnow/pkg/plugin"
	"github.com/winnow-dev/winnow/pkg/plugin/ui"
	"github.com/winnow-dev/winnow/test/poll"
)

// waitMost is how long the page may take to show something.
const waitMost = 2 * time.Minute

// serve runs kubectl winnow ui as a user until the test ends, and returns the address that it prints.
func serve(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	args = append([]string{"ui", "--kubeconfig", kubeconfig, "--cache-dir", filepath.Join(t.TempDir(), "cache")}, args...)
	go func() {
		code := plugin.Run(ctx, args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: in, ErrOut: in})
		_ = in.Close()
		ended <- code
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("kubectl winnow ui ended with %d", code)
		}
	})
	var address string
	if _, err := fmt.Fscanln(out, &address); err != nil || !strings.HasPrefix(address, "http://127.0.0.1:") {
		t.Fatalf("kubectl winnow ui printed %q: %v", address, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return address
}

// serveSource serves a page with another source.
func serveSource(t *testing.T, source ui.Source) string {
	t.Helper()
	listener, err := ui.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	server, err := ui.New(source, listener)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = ui.Serve(t.Context(), listener, server) }()
	return server.URL()
}

// tab is a page in the browser.
type tab struct {
	*testing.T
	ctx context.Context
}

// browse opens an address in a browser without a history.
func browse(t *testing.T, address string, before ...func(*tab)) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &tab{T: t, ctx: ctx}
	must(t, chromedp.Do(ctx)) // The tab is closed when the context of its first action ends.
	p.do(chromedp.EmulateViewport(1200, 800))
	for _, f := range before {
		f(p)
	}
	p.do(chromedp.Navigate(address))
	return p
}

// open opens the page. If it reports an error, such as a violation of its content security policy, the test fails.
func open(t *testing.T, address string, before ...func(*tab)) *tab {
	t.Helper()
	return browse(t, address, append(before, func(p *tab) {
		messages, ended := chromedp.Console(p.ctx), make(chan struct{})
		go func() {
			defer close(ended)
			for message, err := range messages {
				if err != nil {
					return
				}
				if !strings.HasPrefix(message.Text, "Failed to load resource") { // The page says itself which answer was an error.
					t.Errorf("the console of the page: %s", message)
				}
			}
		}()
		t.Cleanup(func() {
			must(t, chromedp.Cancel(p.ctx))
			<-ended
		})
	})...)
}

// dark makes the browser prefer dark pages.
func dark(p *tab) { prefer(p, "dark") }

// light makes the browser prefer light pages.
func light(p *tab) { prefer(p, "light") }

func prefer(p *tab, scheme string) {
	p.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	must(p.T, err)
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitMost)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// eval evaluates an expression, or a promise.
func eval[T any](p *tab, expression string) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitMost)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return out
}

// eventually waits until an expression is true.
func (p *tab) eventually(expression string) {
	p.Helper()
	err := poll.Until(p.ctx, waitMost, 30*time.Millisecond, func(ctx context.Context) error {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && !ok {
			err = errors.New("it is false")
		}
		return err
	})
	if err != nil {
		p.Fatalf("never true: %s: %v\nThe page shows:\n%s", expression, err, eval[string](p, "document.body.innerText"))
	}
}

// shows waits until an element contains a text.
func (p *tab) shows(selector, text string) {
	p.Helper()
	quoted, _ := json.Marshal(text)
	p.eventually(fmt.Sprintf("document.querySelector('%s')?.innerText.includes(%s)", selector, quoted))
}

// section leads to a section of the page, and waits until it has been read.
func (p *tab) section(name string) {
	p.Helper()
	p.do(chromedp.Click(chromedp.CSS(`nav a[href="#` + name + `"]`)))
	p.eventually("!document.getElementById('" + name + "').hidden && document.getElementById('updated').innerText.startsWith('Read at')")
}

// choose sets a control as a user does, and tells the page.
func (p *tab) choose(id, value string) {
	p.Helper()
	quoted, _ := json.Marshal(value)
	eval[bool](p, fmt.Sprintf(`(() => { const e = document.getElementById('%s'); e.value = %s;
		for (const name of ['input', 'change']) e.dispatchEvent(new Event(name, { bubbles: true })); return true; })()`, id, quoted))
}

// write replaces the text of the editor.
func (p *tab) write(text string) {
	p.Helper()
	quoted, _ := json.Marshal(text)
	eval[bool](p, fmt.Sprintf("(document.querySelector('.CodeMirror').CodeMirror.setValue(%s), true)", quoted))
}

// press presses keys.
func (p *tab) press(keys ...string) {
	p.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
}

// tabTo presses Tab until the element with the focus has a text.
func (p *tab) tabTo(text string) {
	p.Helper()
	const most = 60
	for range most {
		p.press(kb.Tab)
		if strings.Contains(p.focused(), text) {
			return
		}
	}
	p.Fatalf("Tab does not lead to %q; the focus is on %q", text, p.focused())
}

// focused describes the element with the focus, which must be visible. It is empty if none has it, as when Tab leads out of the page.
func (p *tab) focused() string {
	p.Helper()
	return eval[string](p, `(() => { const e = document.activeElement;
		if (e === document.body) return '';
		if (e.getBoundingClientRect().height === 0) return 'something invisible';
		return [e.id, e.getAttribute('aria-label'), e.labels?.[0]?.innerText, e.innerText].join(' '); })()`)
}
