// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
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
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	must(p.T, err)
	must(p.T, os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o644))
}

// scheme is what the user has chosen for all pages: light or dark.
func scheme(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	})
}

// TestPictures shows each section in both colour schemes.
func TestPictures(t *testing.T) {
	shop(t)
	address := serve(t, governed.Kubeconfig(), "-n", "shop")
	for _, colours := range []string{"light", "dark"} {
		t.Run(colours, func(t *testing.T) {
			p := open(t, address, scheme(colours))
			p.shows("#tiles", "192")
			picture(p, "overview-"+colours)
			p.section("candidates")
			p.eventually("document.querySelectorAll('#rows button').length > 10")
			p.do(chromedp.Click[chromedp.CSS]("#rows button[tabindex='0']"))
			p.shows("#explanation", "Decided by")
			picture(p, "candidates-"+colours)
			p.section("policies")
			p.shows("#policies", "Approve 42 deletions")
			picture(p, "policies-"+colours)
			p.section("editor")
			p.shows("#preview", "would delete")
			picture(p, "editor-"+colours)
		})
	}
}
