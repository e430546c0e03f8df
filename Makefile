GO    ?= go
tool  := $(GO) tool -modfile=tools/go.mod
# One PostgreSQL for all test packages.
withpg := $(GO) run ./internal/pgtest/withpg

.PHONY: help playground build run setup peers test race cockroach test-cockroach fuzz generate sdk console collection release schema-picture first-minutes bench bench-compare lint
.DEFAULT_GOAL := help

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

playground: ## Build the engine for the browser, which the documentation has
	@GO='$(GO)' tools/playground

build: playground ## Build bin/stonetown and bin/stonetown-bench
	$(GO) build -o bin/ ./cmd/...

run: ## Build bin/stonetown and start a development server on http://dev.localhost:8080
	$(GO) build -o bin/ ./cmd/stonetown
	bin/stonetown serve --dev

first-minutes: ## Measure the time from a fresh clone to the first answer; COLD=1 without the cache of builds
	@tools/firstminutes

setup: ## Install the tools that the tests need (Debian, as root), or print the commands
	@tools/setup

peers: # The first build takes minutes, and must not disturb tests that measure time
	@$(GO) -C tools/peers tool -n dex >/dev/null

test: setup peers playground ## Run every test
	$(withpg) $(GO) test -timeout 60m ./...
	cd tools/peers && $(GO) vet ./... && $(GO) test ./...
	cd tools/deploy && $(GO) vet ./... && $(GO) test ./...
	cd tools/release && $(GO) vet ./... && $(GO) test ./...

race: setup peers playground ## Run every test with the race detector
	$(withpg) $(GO) test -race -timeout 30m ./...

# Packages whose tests use a database server.
with_database = $$($(GO) list -f '{{$$p := .ImportPath}}{{range .TestImports}}{{if eq . "stonetown/internal/pgtest"}}{{$$p}} {{end}}{{end}}{{range .XTestImports}}{{if eq . "stonetown/internal/pgtest"}}{{$$p}} {{end}}{{end}}' ./... | \
  tr ' ' '\n' | sort -u | grep -Ev '/(internal/sqldb|bench)$$')
# Tests that have no statement of CockroachDB to add: those of SQLite and of the store in memory, of
# times and plans, and of pages and foreign programs, whose requests the tests of the API send, too. The
# pattern with a slash is the last one: every name of a test begins it, and those after are not read.
no_statements := TestOneConnection|TestPlansUseIndexes|TestDamagedFiles|TestOverloadedServer|TestCorruptPages|TestScriptsAreBuilt|TestTimingTellsNothing
no_statements := $(no_statements)|TestFederationPages|TestSAMLPages|TestPages$$|TestConsole|TestControlConsole|TestJourneys|TestDocs|TestPlayground|TestInvitationPage|TestDevicePage|TestMCP|TestMellon|TestApacheOpenIDC|TestBrowserClient|TestNPMClients|TestRelyingParty|TestServiceProvider|TestFrontchannelLogout|TestTraces|TestAccessLog|TestWelcome|TestReceivers|TestWebhookLibraries|TestLinearizableUnderFaults|TestRollingUpgrade|TestReleasedSchemas|/(?i)^(sqlite|memory)
cockroach: setup peers ## Run the tests with the SQL for CockroachDB on PostgreSQL, and parse it with CockroachDB's grammar
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	  STONETOWN_REHEARSAL="$$dir" $(withpg) $(GO) test -tags rehearsal -timeout 45m -skip '$(no_statements)' \
	    -coverpkg ./... -coverprofile "$$dir/cover.out" $(with_database) && \
	  cd tools/cockroach && $(GO) vet ./... && $(GO) test ./... && $(GO) run . "$$dir"

# What asks for plans or counts of PostgreSQL, or for its procedural language.
not_cockroach := TestPlansUseIndexes|TestRoundTrips|TestRequestRoundTrips|TestPipelineMakesTwoRoundTrips|TestSerializationFailureRestartsTheGroup|TestFullDisk|TestMigrate
test-cockroach: ## Run the suites of the database on a real CockroachDB: COCKROACH=/path/to/binary
	@if ! [ -f '$(COCKROACH)' ] || ! [ -x '$(COCKROACH)' ]; then \
	  echo "test-cockroach needs CockroachDB's binary: make test-cockroach COCKROACH=/path/to/cockroach" >&2; exit 2; fi
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	  $(GO) -C tools/cockroach build -o "$$dir/with" ./withcockroach && \
	  "$$dir/with" '$(COCKROACH)' $(GO) test -timeout 60m -skip '$(not_cockroach)' \
	    ./tuplestore/... ./engine/... ./identity/... ./oauth/... ./api/... ./controlplane/... ./internal/... && \
	  "$$dir/with" '$(COCKROACH)' $(GO) test -timeout 60m -run 'TestKill|TestServePostgres' ./cmd/stonetown

FUZZTIME ?= 30s
fuzz: ## Fuzz every target in turn, FUZZTIME (30s) each
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$pkg || exit 1; \
	  done; \
	done

generate: ## Regenerate code from the OpenAPI document
	$(GO) generate ./...

sdk: ## Generate the types of the TypeScript client from the OpenAPI document (needs npm)
	cd sdk/typescript && npm ci --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error && npm run --silent types

DIST ?= $(CURDIR)/api/console/dist
console: ## Check and build the scripts of the console, from api/console/web to api/console/dist (needs npm)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	  cp -r api/console/web/. "$$dir" && cd "$$dir" && \
	  npm ci --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error && \
	  node_modules/.bin/openapi-typescript $(CURDIR)/api/openapi/openapi.yaml -o src/api.d.ts >/dev/null && \
	  npm run --silent check && npm run --silent build -- --outDir '$(DIST)' --emptyOutDir

CONVERTER := openapi-to-postmanv2@6.3.3
collection: ## Convert the OpenAPI documents to collection.json beside them (needs npm; at release)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	  npm install --prefix "$$dir" --no-audit --no-fund --silent $(CONVERTER) && \
	  for of in openapi control; do \
	    (cd "$$dir" && node $(CURDIR)/api/openapi/collection.mjs $(CURDIR)/api/$$of/openapi.yaml $(CURDIR)/api/$$of/collection.json) || exit 1; \
	  done

SBOM := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
release: playground ## Build static binaries of each system in dist/, with checksums, a list of their modules and provenance
	@rm -rf dist && mkdir dist && version=$$(git describe --tags --always --dirty) && \
	  for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do \
	    file=stonetown-$$version-$${target%/*}-$${target#*/}; \
	    case $$target in windows/*) file=$$file.exe;; esac; \
	    CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build -trimpath -ldflags '-s -w' -o dist/$$file ./cmd/stonetown || exit 1; \
	    echo dist/$$file; \
	  done && \
	  $(GO) run $(SBOM) app -json -main cmd/stonetown -output dist/stonetown-$$version.cdx.json . && \
	  (cd dist && sha256sum stonetown-* > SHA256SUMS) && \
	  dist=$$PWD/dist && cd tools/release && $(GO) run . "$$dist/SHA256SUMS" > "$$dist/provenance.json"

schema-picture: ## Store a picture of the tables with data, for the tests of upgrades: VERSION=1.0.0 (needs pg_dump; at release)
	$(withpg) $(GO) test ./cmd/stonetown -run 'TestReleasedSchemas$$' -count 1 -picture '$(VERSION)'

bench: build ## Measure the product and write bench.json
	bin/stonetown-bench -server bin/stonetown -out bench.json

WORKLOADS ?= docs
# SPICEDB=127.0.0.1:50051 SPICEDB_KEY=… OPENFGA=http://127.0.0.1:8081 DATABASE_URL=postgres://… LEASES=1
bench-compare: build ## Measure Stonetown and other engines, which run empty at the given addresses
	cd tools/compare && $(GO) run . -server ../../bin/stonetown -database-url '$(DATABASE_URL)' \
	  $(if $(LEASES),-leases) -workloads '$(WORKLOADS)' -spicedb '$(SPICEDB)' -spicedb-key '$(SPICEDB_KEY)' -openfga '$(OPENFGA)' -out ../../compare

lint: ## Check formatting, vet, staticcheck, go.mod and known vulnerabilities
	@unformatted=$$($(tool) gofumpt -l $$(git ls-files '*.go' | grep -v '\.gen\.go$$')); \
	  if [ -n "$$unformatted" ]; then echo "gofumpt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(tool) staticcheck ./...
	$(GO) mod tidy -diff
	cd tools/compare && $(GO) mod tidy -diff && $(GO) vet ./...
	cd tools/deploy && $(GO) mod tidy -diff
	cd tools/peers && $(GO) mod tidy -diff
	cd tools/release && $(GO) mod tidy -diff
	cd tools/cockroach && $(GO) mod tidy -diff
	@for system in windows darwin; do echo "build for $$system"; CGO_ENABLED=0 GOOS=$$system $(GO) build -o /dev/null ./cmd/stonetown || exit 1; done
	@$(tool) govulncheck ./...; code=$$?; \
	  if [ $$code -eq 3 ]; then exit 3; fi; \
	  if [ $$code -ne 0 ]; then echo "SKIPPED govulncheck: its database is out of reach"; fi
