package openapi

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"stonetown/oauth/scope"
)

// TestRelatedOperations requires that any token suffices only where a second requirement of the
// document says so.
func TestRelatedOperations(t *testing.T) {
	related := 0
	for _, op := range DataPlane.Operations {
		want := strings.HasPrefix(op.Path, "/api/v1/webhooks/") && op.ID != "createWebhookSubscription" && op.ID != "listEventTypes"
		if op.Related != want || want && op.Scope == "" {
			t.Errorf("%s: related is %v, with the scope %q", op.ID, op.Related, op.Scope)
		}
		if op.Related {
			related++
		}
	}
	if related != 15 {
		t.Errorf("%d operations are related", related)
	}
}

// TestScopesAreDeclared requires the security scheme to declare all built-in scopes and those
// of every operation.
func TestScopesAreDeclared(t *testing.T) {
	var doc struct {
		Components struct {
			SecuritySchemes map[string]struct {
				Type  string
				Flows map[string]struct{ Scopes map[string]string }
			} `yaml:"securitySchemes"`
		}
	}
	if err := yaml.Unmarshal(DataPlane.YAML, &doc); err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, flow := range doc.Components.SecuritySchemes["bearer"].Flows {
		for scope, description := range flow.Scopes {
			declared[scope] = description != ""
		}
	}
	demanded := slices.Clone(scope.Builtin)
	for _, op := range DataPlane.Operations {
		if op.Scope != "" {
			demanded = append(demanded, op.Scope)
		}
	}
	for _, scope := range slices.Concat(demanded, scope.OIDC) {
		if !declared[scope] {
			t.Errorf("the scope %s is not declared", scope)
		}
	}
	if want := len(scope.Builtin) + len(scope.OIDC); len(declared) != want {
		t.Errorf("%d scopes are declared, want %d", len(declared), want)
	}
}
