package stonetown_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// order is the import order of the product, lowest first. In
//
//	a, b < c;
//
// c may import a and b and all that they may import. A package may not import
// one that its line does not put below it; neighbours on a line know nothing of
// each other. A name stands for the folder and all below it that have no name
// of their own, and within one name everything goes.
const order = `
	# One thing each. The fourth line keeps rows.
	NONE < internal/document, internal/fair, internal/geo, internal/id, internal/jwks, internal/lease, internal/seal, internal/text, internal/tracing, internal/translation;
	internal/text < internal/samlprotocol;
	internal/tracing < internal/outbound, internal/tracing/otlp;
	internal/fair, internal/text, internal/tracing < internal/sqldb;
	internal/id, internal/seal, internal/sqldb < internal/jobs;
	internal/sqldb < internal/groupcommit, internal/rotation;
	internal/seal, internal/sqldb < internal/tenantkeys;
	internal/jobs < internal/masterkey;
	internal/document, internal/groupcommit, internal/jobs < internal/eventlog;
	internal/groupcommit, internal/jobs < internal/idempotency, internal/notify, internal/ratelimit;
	internal/eventlog, internal/rotation < internal/samlkeys;
	internal/eventlog < internal/auditlog;
	internal/document, internal/fair, internal/geo, internal/jwks, internal/lease, internal/outbound, internal/text, internal/translation,
	internal/auditlog, internal/idempotency, internal/notify, internal/ratelimit, internal/samlkeys, internal/masterkey, internal/tenantkeys < internal;

	# Revisioned tuples know no schema, and the schema knows no tuples:
	# the two meet in the engine, which knows no store.
	NONE < schema/condition;
	schema/condition < schema;
	internal < tuplestore;
	tuplestore < tuplestore/internal, tuplestore/readlease;
	tuplestore/internal, tuplestore/readlease < tuplestore/memstore, tuplestore/sqlstore, tuplestore/storetest;
	tuplestore/sqlstore < tuplestore/leasenode;
	NONE < engine/internal/arena, engine/internal/chunks;
	tuplestore, engine/internal/arena, engine/internal/chunks < engine/internal/graph;
	engine/internal/graph < engine/internal/graphfile;
	NONE < engine/internal/work;
	tuplestore < engine/internal/nodecache;
	schema, engine/internal/graph < engine/internal/program;
	engine/internal/program, engine/internal/work, engine/internal/nodecache < engine/internal/view;
	engine/internal/view < engine/internal/eval, engine/internal/traversal;
	engine/internal/eval < engine/internal/denial, engine/internal/proof;
	engine/internal/eval, engine/internal/traversal < engine/internal/decisions;
	engine/internal/graphfile, engine/internal/denial, engine/internal/proof, engine/internal/decisions < engine;
	engine, tuplestore/memstore < engine/assertions;
	engine < engine/authority, engine/enginetest, engine/resources;
	engine/resources < engine/audit;

	# Modules are clients of the engine and strangers to each other. What one
	# needs of another it declares as an interface, and cmd plugs it in.
	internal < identity/password, identity/password/breached, identity/external, identity/factor, identity/session, identity/onetime, identity/threat, identity/branding, identity/federation/relyingparty;
	engine/authority, identity/password, identity/password/breached, identity/external, identity/factor, identity/session, identity/onetime, identity/threat < identity;
	identity < identity/flow, identity/userimport, identity/scim, identity/incident;
	identity/branding < identity/mails;
	identity/flow, identity/mails < identity/authn;
	internal/text < identity/federation/claims;
	internal/samlprotocol < identity/federation/serviceprovider;
	identity/federation/claims, identity/federation/relyingparty, identity/federation/serviceprovider, identity/authn < identity/federation;
	identity/federation < identity/federation/signin;
	internal/jwks < oauth/assertion;
	oauth/assertion < oauth/requestobject;
	NONE < oauth/dpop, oauth/mtls, oauth/protocol;
	internal/sqldb < oauth/internal/storage;
	internal/lease, internal/sqldb < oauth/revocation;
	engine, oauth/protocol < oauth/scope, oauth/detail;
	internal, oauth/internal/storage, oauth/protocol, oauth/revocation < oauth/keys;
	engine/authority, oauth/requestobject, oauth/dpop, oauth/mtls, oauth/keys, oauth/scope, oauth/detail < oauth/client;
	oauth/client < oauth/access, oauth/audience, oauth/workload;
	oauth/access < oauth/claim, oauth/claimrequest;
	oauth/claim < oauth/token;
	internal/samlprotocol < oauth/saml/identityprovider;
	oauth/token, oauth/audience, oauth/workload < oauth/grants;
	oauth/token, oauth/audience, oauth/claimrequest, oauth/saml/identityprovider < oauth/authorization;
	oauth/authorization < oauth/saml;
	oauth/grants, oauth/authorization < oauth;
	oauth, tuplestore/sqlstore < oauth/oauthtest;
	NONE < webhooks/signature;
	engine, webhooks/signature < webhooks/subscription;
	webhooks/subscription < webhooks/delivery;
	webhooks/delivery < webhooks;
	engine < controlplane, reporting;
	# A tenant moves with the rows of all modules, two of which have to refresh theirs.
	controlplane, oauth/revocation, tuplestore/sqlstore < controlplane/transfer;
	controlplane < controlplane/management;

	# What modules keep of a tenant's settings is one document to the tenant.
	identity, oauth/client, controlplane < settings;

	# Calls a server, and has nothing of it.
	internal < client;

	# HTTP only. api/web is what all operations share.
	oauth/token, controlplane < api/web;
	NONE < api/inprocess;
	api/web < api/openapi, api/scopes, api/applications;
	oauth/workload, api/web < api/trustedissuers;
	identity/incident, api/web < api/incidents;
	identity/flow, api/web < api/flows;
	identity/threat, api/web < api/threatfeeds;
	reporting, api/web < api/reports;
	identity/authn, api/web < api/branding;
	api/inprocess, api/web, identity/branding < api/pages;
	client, api/inprocess, api/web, identity/authn, identity/branding, identity/session < api/console;
	api/openapi, webhooks < api/webhooks;
	api/web, identity/authn, identity/userimport < api/profile;
	api/web, identity/scim < api/scim;
	api/web, settings < api/settings;
	api/web < api/audit;
	api/web, identity/federation/signin < api/federation;
	api/web, identity, engine/assertions, engine/resources < api/resources;
	api/resources < api/authzen;
	api/profile < api/people;
	api/people, oauth/authorization, identity/federation/signin < api/account;
	api/account, identity/branding, oauth, oauth/saml < api/oauth2;
	api/openapi, controlplane/management < api/control;
	api/pages, api/console, api/control < api/docs;
	api/webhooks, api/federation, api/audit, api/docs, api/console, api/scopes, api/trustedissuers, api/incidents, api/flows, api/threatfeeds, api/reports, api/branding, api/scim, api/settings, api/authzen, api/applications, api/oauth2 < api;

	# The composition of all packages, which the program and the tests of api open.
	api, controlplane/management, engine/audit, tuplestore/leasenode, webhooks < server;

	# Commands only. Benchmarks load the product and are not part of it.
	engine/assertions < cmd/stonetown/internal/importer;
	cmd/stonetown/internal/importer < cmd/stonetown/internal/playground;
	server, controlplane/transfer, internal/tracing/otlp, webhooks/signature, cmd/stonetown/internal/playground, client < cmd/stonetown;
	server < bench;
	bench < cmd/stonetown-bench;
`

const module = "stonetown/"

func TestImportOrder(t *testing.T) {
	below := parseOrder(t, order)
	for _, pkg := range list(t, "-json=ImportPath,Imports", "./...") {
		importer, ours := strings.CutPrefix(pkg.ImportPath, module)
		if !ours { // the root, which has the text of the documentation and tests
			continue
		}
		from := nameOf(below, importer)
		if from == "" {
			t.Errorf("%s has no place in the order", importer)
			continue
		}
		for _, path := range pkg.Imports {
			imported, ours := strings.CutPrefix(path, module)
			if !ours {
				continue
			}
			if to := nameOf(below, imported); to != from && !below[from][to] {
				t.Errorf("%s imports %s: %s is not below %s", importer, imported, to, from)
			}
		}
	}
}

// apiMayNotImport are the packages that a surface of the API leaves to the domains, which
// write their rows and events in their own transactions.
var apiMayNotImport = map[string][]string{
	"api/account":        {"internal/eventlog", "internal/sqldb"},
	"api/people":         {"internal/eventlog", "internal/sqldb"},
	"api/profile":        {"internal/eventlog", "internal/sqldb"},
	"api/applications":   {"internal/eventlog", "internal/sqldb"},
	"api/oauth2":         {"internal/eventlog", "internal/sqldb"},
	"api/resources":      {"internal/eventlog", "internal/sqldb"},
	"api/scopes":         {"internal/eventlog", "internal/sqldb"},
	"api/threatfeeds":    {"internal/eventlog", "internal/sqldb"},
	"api/incidents":      {"internal/eventlog", "internal/sqldb"},
	"api/reports":        {"internal/eventlog", "internal/sqldb"},
	"api/branding":       {"internal/eventlog", "internal/sqldb"},
	"api/trustedissuers": {"internal/eventlog", "internal/sqldb"},
	"api/settings":       {"internal/eventlog", "internal/sqldb"},
	"api/webhooks":       {"internal/eventlog", "internal/sqldb"},
	"api/audit":          {"internal/eventlog", "internal/sqldb"},
	"api/federation":     {"internal/eventlog", "internal/sqldb"},
	"api/control":        {"internal/eventlog", "internal/sqldb"},
	"api/console":        {"internal/eventlog", "internal/sqldb"},
}

func TestAPILeavesStorageToDomains(t *testing.T) {
	seen := 0
	for _, pkg := range list(t, "-json=ImportPath,Imports", "./api/...") {
		path := strings.TrimPrefix(pkg.ImportPath, module)
		forbidden, ruled := apiMayNotImport[path]
		if !ruled {
			continue
		}
		seen++
		for _, imported := range forbidden {
			if slices.Contains(pkg.Imports, module+imported) {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	}
	if seen != len(apiMayNotImport) {
		t.Errorf("%d packages are there of %d with a rule", seen, len(apiMayNotImport))
	}
}

// What tests need must not be part of the program.
func TestProgramHoldsNoTests(t *testing.T) {
	for _, pkg := range list(t, "-deps", "-json=ImportPath", "./cmd/stonetown") {
		if pkg.ImportPath == "testing" || strings.HasPrefix(pkg.ImportPath, module) && strings.HasSuffix(pkg.ImportPath, "test") {
			t.Errorf("cmd/stonetown contains %s", pkg.ImportPath)
		}
	}
}

// A browser has no databases and receives no requests: the engine for browsers has nothing of both.
func TestBrowserProgram(t *testing.T) {
	t.Setenv("GOOS", "js")
	t.Setenv("GOARCH", "wasm")
	found := 0
	for _, pkg := range list(t, "-deps", "-json=ImportPath,Imports", "./cmd/stonetown/internal/playground/wasm") {
		path, ours := strings.CutPrefix(pkg.ImportPath, module)
		if !ours {
			continue
		}
		found++
		for _, forbidden := range []string{"net/http", "database/sql", "embed"} {
			if slices.Contains(pkg.Imports, forbidden) {
				t.Errorf("%s imports %s", path, forbidden)
			}
		}
		if path == "internal/sqldb" || strings.HasPrefix(path, "api/") {
			t.Errorf("it contains %s", path)
		}
	}
	if found < 20 {
		t.Errorf("%d packages", found)
	}
}

// TestOrderIsEnforced makes sure that the checks above can fail.
func TestOrderIsEnforced(t *testing.T) {
	below := parseOrder(t, order)
	for _, test := range []struct {
		from, to string
		want     bool
	}{
		{"engine", "schema", true},
		{"cmd/stonetown", "internal", true},
		{"schema", "tuplestore", false},
		{"tuplestore", "schema", false},
		{"oauth", "identity", false},
		{"engine", "api", false},
		{"internal", "schema", false},
		{"cmd/stonetown", "bench", false},
		{"engine", "tuplestore/sqlstore", false},
		{"engine/internal/graph", "schema", false},
		{"engine/internal/eval", "engine/internal/traversal", false},
		{"identity/session", "engine", false},
		{"identity/session", "identity/factor", false},
		{"identity/authn", "identity/session", true},
		{"oauth/token", "oauth/keys", true},
		{"oauth/client", "oauth/token", false},
		{"oauth/grants", "oauth/authorization", false},
		{"oauth/authorization", "oauth/grants", false},
		{"api/scopes", "api/people", false},
		{"api/web", "identity", false},
	} {
		if got := below[test.from][test.to]; got != test.want {
			t.Errorf("%s may import %s: %v, want %v", test.from, test.to, got, test.want)
		}
	}
	for path, want := range map[string]string{
		"engine/resources": "engine/resources", "engine/other": "engine", "cmd/stonetown-bench": "cmd/stonetown-bench", "cmd/stonetown": "cmd/stonetown", "engineering": "",
	} {
		if got := nameOf(below, path); got != want {
			t.Errorf("nameOf(%s) = %q, want %q", path, got, want)
		}
	}
}

// parseOrder returns, for each name, all names below it.
func parseOrder(t *testing.T, text string) map[string]map[string]bool {
	t.Helper()
	var rules strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		rules.WriteString(line)
	}
	below := make(map[string]map[string]bool)
	for rule := range strings.SplitSeq(rules.String(), ";") {
		if strings.TrimSpace(rule) == "" {
			continue
		}
		left, right, ok := strings.Cut(rule, "<")
		if !ok {
			t.Fatalf("rule without <: %q", rule)
		}
		lower := make(map[string]bool)
		for _, name := range names(left) {
			if name == "NONE" {
				continue
			}
			if below[name] == nil {
				t.Fatalf("%q is used before it has a place", name)
			}
			lower[name] = true
			for further := range below[name] {
				lower[further] = true
			}
		}
		for _, name := range names(right) {
			if below[name] != nil {
				t.Fatalf("%q has two places", name)
			}
			below[name] = lower
		}
	}
	return below
}

func names(list string) []string {
	var trimmed []string
	for name := range strings.SplitSeq(list, ",") {
		trimmed = append(trimmed, strings.TrimSpace(name))
	}
	return trimmed
}

// nameOf returns the most specific name that a package belongs to.
func nameOf(below map[string]map[string]bool, path string) string {
	best := ""
	for name := range below {
		if (path == name || strings.HasPrefix(path, name+"/")) && len(name) > len(best) {
			best = name
		}
	}
	return best
}

type listed struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T, args ...string) []listed {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"list"}, args)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg listed
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, pkg)
	}
	if len(all) == 0 {
		t.Fatal("go list listed nothing")
	}
	return all
}
