// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	batchv1 "k8s.io/api/batch/v1"
)

const shopPolicy = `
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: defaults, namespace: shop}
spec:
  annotationTTL: Any
  rules:
  - {name: failures, selector: {matchLabels: {app: shop}}, outcome: Failed, ttl: 7d}
  - {name: finished, selector: {matchLabels: {app: shop}}, ttl: 1d}
`

// shop fills a namespace for the pictures.
func shop(t *testing.T) {
	t.Helper()
	kubectl(t, governed, "create", "namespace", "shop")
	random := rand.New(rand.NewPCG(1, 2))
	ttl := func() string {
		if random.IntN(4) == 0 {
			return fmt.Sprintf("%dm", 5+random.IntN(55))
		}
		return fmt.Sprintf("%dm", 60+random.IntN(24*60)*(1+random.IntN(6)))
	}
	names := []string{"nightly-backup", "send-invoices", "resize-images", "rebuild-index"}
	finishedJobs(t, kube, "shop", 120, func(j *batchv1.Job) {
		annotated("gc.winnow.dev/ttl", ttl())(j)
		j.Labels = map[string]string{"app": "shop"}
		j.Name = names[random.IntN(len(names))] + j.Name[len("job"):]
	})
	finishedPods(t, "shop", 30, func(int) string { return ttl() })
	apply(t, governed, shopPolicy)
	hold(t, "shop", 42)
	candidates(t, "shop", 192)
}

// picture writes what one sees of a page.
func picture(p *tab, name string) {
	p.Helper()
	if *pictures == "" {
		return
	}
	shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	must(p.T, err)
	decoded, err := png.Decode(bytes.NewReader(shot))
	must(p.T, err)
	var out bytes.Buffer
	must(p.T, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, fewColours(decoded)))
	must(p.T, os.WriteFile(filepath.Join(*pictures, name+".png"), out.Bytes(), 0o644))
}

// fewColours returns a picture with the 256 most frequent colours of another one, which needs a third of the space.
func fewColours(of image.Image) *image.Paletted {
	counts, bounds := map[color.Color]int{}, of.Bounds()
	each := func(f func(x, y int)) {
		for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
			for x := bounds.Min.X; x < bounds.Max.X; x++ {
				f(x, y)
			}
		}
	}
	each(func(x, y int) { counts[of.At(x, y)]++ })
	palette := color.Palette(slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] }))
	out := image.NewPaletted(bounds, palette[:min(len(palette), 256)])
	nearest := map[color.Color]uint8{}
	each(func(x, y int) {
		c := of.At(x, y)
		if _, ok := nearest[c]; !ok {
			nearest[c] = uint8(out.Palette.Index(c))
		}
		out.SetColorIndex(x, y, nearest[c])
	})
	return out
}

// TestSchemes looks at each section in both colour schemes, on a wide and on a narrow screen: nothing is cut off, and all text has the
// contrast that WCAG asks for at level AA.
func TestSchemes(t *testing.T) {
	shop(t)
	address := serve(t, governed.Kubeconfig(), "-n", "shop")
	backgrounds := map[string]bool{}
	for name, colours := range map[string]func(*tab){"light": light, "dark": dark} {
		t.Run(name, func(t *testing.T) {
			p := open(t, address, colours)
			p.shows("#tiles", "192")
			p.checkLooks("overview-" + name)
			p.section("candidates")
			p.choose("state", "Waiting")
			p.shows("#found", "150 candidates")
			p.do(chromedp.Click[chromedp.CSS]("#rows button[tabindex='0']"))
			p.shows("#explanation", "Decided by")
			p.checkLooks("candidates-" + name)
			p.section("policies")
			p.shows("#policies", "Approve 42 deletions")
			p.checkLooks("policies-" + name)
			p.do(chromedp.Click[chromedp.CSS]("#policies button.primary"))
			p.shows("#approve", "42")
			p.checkLooks("approve-" + name)
			p.press(kb.Escape)
			p.section("editor")
			p.shows("#preview", "would delete")
			p.eventually("document.getElementById('preview').getAttribute('aria-busy') === 'false'")
			p.checkLooks("editor-" + name)
			p.write("kind: CleanupPolicy\napiVersion: gc.winnow.dev/v1alpha1\nmetadata: {name: x}\nspec:\n  # A comment.\n  tll: 1h\n  suspend: true\n")
			p.shows("#preview", "Not valid")
			p.checkLooks("errors-" + name)
			backgrounds[eval[string](p, "getComputedStyle(document.documentElement).backgroundColor")] = true
		})
	}
	if len(backgrounds) != 2 {
		t.Errorf("both schemes have the background %v", backgrounds)
	}
}

// checkLooks checks the contrast of what one sees, and that a narrow screen has no room for it only in boxes that scroll.
func (p *tab) checkLooks(name string) {
	p.Helper()
	p.do(chromedp.MouseEvent(chromedp.MouseMoved, 600, 2)) // away from buttons
	picture(p, name)
	faults := eval[[]string](p, lowContrast)
	if len(faults) > 0 {
		p.Errorf("%s has too little contrast: %q", name, faults)
	}
	p.expectAccessible(name)
	p.resize(400, 800)
	picture(p, name+"-narrow")
	if width := eval[int](p, "document.documentElement.scrollWidth"); width > 400 {
		p.Errorf("%s needs a width of %d", name, width)
	}
	if cut := eval[[]string](p, cutOff); len(cut) > 0 {
		p.Errorf("%s cuts off on a narrow screen: %q", name, cut)
	}
	p.expectAccessible(name + "-narrow")
	for width, size := range map[int]string{800: "medium", 1900: "wide"} {
		p.resize(int64(width), 900)
		picture(p, name+"-"+size)
		if needs := eval[int](p, "document.documentElement.scrollWidth"); needs > width {
			p.Errorf("%s needs a width of %d, and has %d", name, needs, width)
		}
	}
	p.resize(1200, 800)
}

// resize changes the size of the window, and waits for the frame in which the page has adapted its drawings to it.
func (p *tab) resize(width, height int64) {
	p.Helper()
	p.do(chromedp.EmulateViewport(width, height))
	eval[bool](p, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(true)))))")
}

// expectAccessible fails if axe-core finds anything.
func (p *tab) expectAccessible(name string) {
	p.Helper()
	if !eval[bool](p, "window.axe !== undefined") {
		script, err := os.ReadFile("test/browser/testdata/axe/axe.min.js")
		must(p.T, err)
		eval[bool](p, string(script)+"\n;window.axe !== undefined")
	}
	faults := eval[[]string](p, `axe.run({ resultTypes: ['violations'] }).then((found) =>
		found.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.target.join(' ') + ' ' + n.html).join('; ')))`)
	if len(faults) > 0 {
		p.Errorf("%s: axe-core finds %q", name, faults)
	}
}

// cutOff returns the texts of which a part is hidden, or seen only after one has scrolled to the side. What is for screen readers alone is
// hidden on purpose.
const cutOff = `[...document.querySelectorAll('main *, header *, dialog[open] *')].filter((e) => {
	const style = getComputedStyle(e);
	return e.checkVisibility() && e.innerText?.trim() && !e.closest('.hidden, .skip, svg, .CodeMirror, thead') &&
		(style.overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1 || style.overflowY === 'hidden' && e.scrollHeight > e.clientHeight + 1);
}).map((e) => e.tagName + ' ' + e.className + ' ' + e.innerText.slice(0, 60))`

// lowContrast returns the texts whose contrast with their background is less than 4.5, or 3 for large ones.
const lowContrast = `(() => {
	const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number); return { rgb: [r, g, b], a }; };
	const luminance = (rgb) => rgb.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const background = (e) => {
		for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.a === 1) return c.rgb; }
		return [255, 255, 255];
	};
	const out = [];
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node; (node = walker.nextNode());) {
		const e = node.parentElement;
		if (!node.data.trim() || !e.checkVisibility() || e.closest('.hidden, .skip, datalist, svg')) continue;
		const style = getComputedStyle(e), size = parseFloat(style.fontSize);
		const [a, b] = [luminance(parse(style.color).rgb), luminance(background(e))].sort((x, y) => y - x);
		const contrast = (a + 0.05) / (b + 0.05), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
		if (contrast < (large ? 3 : 4.5)) out.push(node.data.trim().slice(0, 40) + ' ' + contrast.toFixed(2));
	}
	return out;
})()`
