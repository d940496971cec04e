# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

SHELL := /bin/bash
.SHELLFLAGS := -o errexit -o nounset -o pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X github.com/winnow-dev/winnow/pkg/version.version=$(VERSION)

# Why the race detector is left out, empty when it is not: it needs cgo, and so a C compiler with its headers.
NORACE = $(shell if [ "$$(go env CGO_ENABLED)" != 1 ]; then echo "cgo is off, as it is without a C compiler"; \
	elif ! printf '\043include <stdlib.h>\n' | $$(go env CC) -x c -fsyntax-only - 2>/dev/null; then \
	echo "$$(go env CC) cannot compile C, or has no headers"; fi)

# Pure packages have no lock, so the race detector has nothing to find in them, and random tests are many times as fast without it. With the
# race detector, the random tests of other packages try a tenth of their cases.
PURE = $(shell go run ./hack/importcheck pure) ./pkg/controller/internal/model
OTHERS = $(filter-out $(PURE),$(patsubst github.com/winnow-dev/winnow/%,./%,$(shell go list ./pkg/... ./cmd/... ./hack/...)))

# Packages that start clusters share the machine: two of them at a time are enough for two cores.
TESTFLAGS ?=
BENCHFLAGS ?=
SOAKFLAGS ?=
DOCSFLAGS ?=
VERSIONSFLAGS ?=

# The version of Kubernetes of the test clusters: 1.34, 1.35, 1.36 or 1.37; the newest by default.
ifdef KUBERNETES
export WINNOW_KUBERNETES := $(KUBERNETES)
endif

GO_TEST = $(CURDIR)/hack/go-test.sh -p 2 -timeout 60m $(TESTFLAGS)

.PHONY: help
help: ## Show the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1	\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 24

# Programs without DWARF: it is stripped anyway, and compiling without it takes a sixth less time.
BUILD = go build -trimpath -tags grpcnotrace -gcflags=all=-dwarf=false

# Release builds are reproducible, so they ignore the Go settings of this machine. The commit is passed explicitly, because Go itself records it
# only in a full clone, and not in a worktree or a source archive.
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)$(if $(shell git status --porcelain 2>/dev/null),-dirty)
SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),0)
RELEASE_BUILD = env CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off GOAMD64=v1 GOARM64=v8.0 \
	$(BUILD) -ldflags '$(LDFLAGS) -X github.com/winnow-dev/winnow/pkg/version.commit=$(COMMIT)'
OUTPUT ?= $(CURDIR)/_output
REPOSITORY ?=
IMAGE = go -C hack/image run .

.PHONY: build
build: ## Build bin/winnow-apiserver and bin/kubectl-winnow
	CGO_ENABLED=0 $(BUILD) -ldflags '$(LDFLAGS)' -o bin/winnow-apiserver ./cmd/apiserver
	CGO_ENABLED=0 $(BUILD) -ldflags '$(LDFLAGS)' -o bin/kubectl-winnow ./cmd/kubectl-winnow

PLUGIN_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

.PHONY: plugin-archives
plugin-archives: ## Build _output/kubectl-winnow_OS_ARCH.tar.gz for artifacts/krew/winnow.yaml
	@rm -f "$(OUTPUT)"/kubectl-winnow_*.tar.gz
	@for platform in $(PLUGIN_PLATFORMS); do \
		name="$${platform/\//_}" program="$(OUTPUT)/plugin/$${platform/\//_}/kubectl-winnow"; \
		GOOS="$${platform%/*}" GOARCH="$${platform#*/}" $(RELEASE_BUILD) -o "$${program}" ./cmd/kubectl-winnow; \
		$(IMAGE) archive -time $(SOURCE_DATE_EPOCH) "$(OUTPUT)/kubectl-winnow_$${name}.tar.gz" "$${program}" "$(CURDIR)/LICENSE"; \
	done

IMAGE_PLATFORMS ?= linux/amd64 linux/arm64
# The builder ID in the provenance. The release workflow sets it; leave it empty for a local build.
BUILDER ?=

.PHONY: image
image: ## Build an OCI layout in _output/image, and beside it an archive of it, SBOMs and provenance
	@programs=(); for platform in $(IMAGE_PLATFORMS); do \
		program="$(OUTPUT)/programs/$${platform/\//_}/winnow-apiserver"; programs+=("$${program}"); \
		GOOS="$${platform%/*}" GOARCH="$${platform#*/}" $(RELEASE_BUILD) -o "$${program}" ./cmd/apiserver; \
	done; \
	$(IMAGE) build -version '$(VERSION)' -commit '$(COMMIT)' -time $(SOURCE_DATE_EPOCH) -licence "$(CURDIR)/LICENSE" \
		$(if $(BUILDER),-builder '$(BUILDER)') -output "$(OUTPUT)" "$${programs[@]}"

.PHONY: push-image
push-image: ## Push _output/image, for example REPOSITORY=registry.example.com/winnow; prints its name with digest
	@$(IMAGE) push -output "$(OUTPUT)" -repository '$(REPOSITORY)'

.PHONY: release-artifacts
release-artifacts: ## Gather all files of a release in _output/release; REPOSITORY is where its image will be
	@if [ -z '$(REPOSITORY)' ]; then echo "no repository: set REPOSITORY, for example REPOSITORY=registry.example.com/winnow" >&2; exit 1; fi
	@$(MAKE) --no-print-directory image plugin-archives
	@$(IMAGE) release -output "$(OUTPUT)" -repository '$(REPOSITORY)' -artifacts "$(CURDIR)/artifacts"

.PHONY: run
# As the programs of the cluster are built, so that the standard library is compiled once. Without DWARF that takes a sixth less time.
run cluster: export CGO_ENABLED = 0
run cluster: export GOFLAGS = $(shell go env GOFLAGS) -gcflags=all=-dwarf=false
run: ## Run a local cluster with Winnow and a demonstration; Ctrl-C ends all of it
	@echo "You will see Winnow delete finished Jobs in a local Kubernetes cluster:"
	@echo "which ones, when, and why. Ctrl-C ends it."
	@go run ./hack/programs -o bin ./hack/demo ./cmd/apiserver ./cmd/kubectl-winnow
	@exec bin/demo --env bin/demo.env

.PHONY: cluster
cluster: ## Run a local cluster with Winnow to try things in; Ctrl-C ends it
	@exec go run ./hack/local-cluster --winnow 1

.PHONY: programs
programs: ## Fetch or build the programs of the test cluster and helm, once for each version
	@go run ./hack/programs -helm

# Why the tests of the page are left out, empty when they are not: they need a Chromium.
NOBROWSER = $(shell hack/chromium.sh 2>&1 >/dev/null || true)

.PHONY: test
test: test-unit test-e2e ## Run all tests; the last line says what is left out
	@if [ -z "$(NOBROWSER)" ]; then $(MAKE) --no-print-directory test-browser; fi
	@left=(); race="$(NORACE)"; browser="$(NOBROWSER)"; \
	if [ "$$race" ]; then left+=("the race detector, because $$race."); fi; \
	if [ "$$browser" ]; then left+=("the tests of the page. $$browser"); fi; \
	if (($${#left[@]})); then echo "All tests passed that ran. Left out: $${left[*]}"; else echo "All tests passed. Nothing was left out."; fi

# Random tests of "make test" try the same cases each time, so that what fails was broken by a change. "make test-long" tries others.
test-unit: export RAPID_SEED ?= 1

.PHONY: test-unit
test-unit: programs ## Run unit and integration tests and fuzz seeds, with the race detector for packages with locks if there is a C compiler
	@why="$(NORACE)"; if [ "$$why" ]; then \
		echo "The tests run without the race detector: $$why."; \
		if [ "$${CI:-}" = true ]; then echo "CI must have a C compiler." >&2; exit 1; fi; \
	fi
	$(GO_TEST) $(PURE)
	$(GO_TEST) $(if $(NORACE),,-race) $(OTHERS)
	cd test/monitoring && $(GO_TEST) ./...
	cd test/plot && $(GO_TEST) ./...
	cd hack/image && $(GO_TEST) ./...
	cd hack/site && $(GO_TEST) ./...

# The longest package comes first, so that the others run beside it. Its tests mostly wait, so more of them run at once than there are processors.
.PHONY: test-e2e
test-e2e: programs ## Run end-to-end tests on real clusters, of another version with KUBERNETES=1.34; never from the test cache
	$(GO_TEST) -count=1 -parallel 4 ./test/e2e ./test/...

.PHONY: test-e2e-etcd
test-e2e-etcd: programs ## Run end-to-end tests with policies in an etcd of Winnow's own (--etcd-servers); an hour
	go test -count=1 -timeout 3h ./test/e2e -etcd

.PHONY: test-versions
test-versions: ## Run the suites that need a cluster on each version of Kubernetes, and print the table of docs/install.md; hours
	go run ./hack/test-versions $(VERSIONSFLAGS)

.PHONY: test-browser
test-browser: programs ## Test the page of kubectl winnow ui in a Chromium; installs one if it is missing, as root on Debian
	@hack/chromium.sh --install
	cd test/browser && $(GO_TEST) -count=1 .

# Steps of a random test are checks times steps.
LONG_CHECKS ?= 17000

.PHONY: test-long
test-long: programs ## Try new random cases, a million steps of the engine beside its model, 10,000 deletions over restarts, 200 Jobs, 40 seeds of the simulation, and an etcd; two hours
	go test -count=1 -timeout 1h $(PURE) ./pkg/controller/objects/facts
	go test -count=1 -timeout 4h -run 'TestEngine$$' ./pkg/controller/engine -rapid.checks=$(LONG_CHECKS)
	go test -count=1 -timeout 1h -run 'TestDeletionsOverRestarts$$' ./test/e2e -over-restarts=10000 -restarts-seed=$$RANDOM
	go test -count=1 -timeout 2h -run 'TestCountedPodsOfRandomJobs$$' ./test/e2e -counted-jobs=200 -counted-seed=$$RANDOM
	$(MAKE) --no-print-directory simulate SIMULATEFLAGS="-seeds=40 -length=1h"
	$(MAKE) --no-print-directory test-e2e-etcd

.PHONY: bench
bench: build programs ## Measure Winnow on a real cluster; BENCHFLAGS=-help lists the flags, docs/performance.md has figures
	@go build -o bin/bench ./test/bench
	@go -C test/plot build -o "$(CURDIR)/bin/plot" .
	@exec bin/bench $(BENCHFLAGS)

.PHONY: bench-full
bench-full: ## Also measure 20,000 Jobs that expire together and a million that wait; takes some hours and 16 GiB
	@$(MAKE) --no-print-directory bench BENCHFLAGS="-throughput=4000,20000 -scale=10000,100000,1000000 $(BENCHFLAGS)"

.PHONY: bench-peers
bench-peers: ## Measure Winnow beside ttl-after-finished and the cleanup controller of Kyverno, which is built from its Go module first
	@$(MAKE) --no-print-directory bench BENCHFLAGS="-run=peers -peers $(BENCHFLAGS)"

.PHONY: bench-micro
bench-micro: ## Measure the parts of the engine in memory, in the format of benchstat; go test gets BENCHFLAGS
	go test -run '^$$' -bench . -benchmem -count 6 $(BENCHFLAGS) ./pkg/controller/...

.PHONY: soak
soak: build programs ## Run everything at once for twenty minutes and compare Winnow with its model; SOAKFLAGS=-help lists the flags
	@go build -o bin/soak ./test/soak
	@exec bin/soak $(SOAKFLAGS)

.PHONY: simulate
simulate: ## Run new seeds of the simulation; SIMULATEFLAGS=-help lists the flags, docs/robustness.md says what is simulated
	go run ./test/simulation/simulate -from=$$((RANDOM * 1000 + 1000)) $(SIMULATEFLAGS)

.PHONY: verify
verify: verify-licence verify-mod verify-imports verify-codegen verify-generated-docs verify-manifests verify-fmt verify-lint ## Run all checks below

.PHONY: verify-codegen
verify-codegen: ## Check that generated code is up to date
	hack/verify-codegen.sh

.PHONY: verify-fmt
verify-fmt: ## Check the format of Go code, and that scripts parse
	hack/verify-fmt.sh

.PHONY: verify-imports
verify-imports: ## Check which package imports which
	hack/verify-imports.sh

.PHONY: verify-licence
verify-licence: ## Check the licence headers
	hack/verify-licence.sh

.PHONY: verify-lint
verify-lint: ## Run golangci-lint
	hack/verify-lint.sh

.PHONY: verify-mod
verify-mod: ## Check that go.mod and go.sum are tidy
	hack/verify-mod.sh

.PHONY: verify-generated-docs
verify-generated-docs: ## Check that docs/semantics.md, docs/metrics.md and docs/reference/api.md are what their sources say
	hack/verify-generated-docs.sh

.PHONY: verify-manifests
verify-manifests: ## Check that the manifests in artifacts, and the README of the chart, are what the chart says
	hack/verify-manifests.sh

.PHONY: verify-docs
verify-docs: build programs ## Run the commands of the documentation on real clusters, and check that they print what it shows; three minutes
	go run ./hack/docs-commands $(DOCSFLAGS)

.PHONY: update-docs
update-docs: build programs ## Run the commands of the documentation on real clusters, and write what they print into it
	go run ./hack/docs-commands -update $(DOCSFLAGS)

.PHONY: site
site: ## Make a site with a search from the Markdown pages in _output/site, and check its links; needs Go only, ten minutes the first time
	@CGO_ENABLED=0 go -C hack/site build -trimpath -ldflags '-s -w' -o "$(CURDIR)/bin/hugo" github.com/gohugoio/hugo
	@bin/hugo --source hack/site --destination "$(OUTPUT)/site" --cleanDestinationDir --noBuildLock --panicOnWarning --quiet
	@go -C hack/site run . "$(OUTPUT)/site"
	@echo "The site is in $(OUTPUT)/site/index.html"

.PHONY: update
update: update-codegen update-manifests update-fmt ## Run all updates below

.PHONY: update-codegen
update-codegen: ## Generate code from pkg/apis
	hack/update-codegen.sh

.PHONY: update-manifests
update-manifests: ## Make the manifests in artifacts, and the README of the chart, from the chart
	hack/update-manifests.sh

.PHONY: update-fmt
update-fmt: ## Format all Go code
	hack/update-fmt.sh

.PHONY: clean
clean: ## Remove what was built here, but not the caches of programs and tools
	rm -rf bin _output
