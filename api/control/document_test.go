package control

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"stonetown/api/openapi/documenttest"
)

func TestDocument(t *testing.T) { documenttest.Test(t, Document, 59) }

// permissions are the values of x-permission.
var permissions = []string{
	"read", "create_tenant", "update_tenant", "suspend_tenant", "decommission_tenant", "open_console", "manage_members", "update_organization",
}

// TestPermissions requires a permission of every operation on an organisation, and of no other, and
// the introduction to explain each.
func TestPermissions(t *testing.T) {
	var doc struct {
		Info  struct{ Description string }
		Paths map[string]map[string]yaml.Node
	}
	if err := yaml.Unmarshal(Document.YAML, &doc); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for path, item := range doc.Paths {
		for method, node := range item {
			if method == "parameters" {
				continue
			}
			var op struct {
				Permission string `yaml:"x-permission"`
			}
			if err := node.Decode(&op); err != nil {
				t.Fatal(err)
			}
			if of := strings.Contains(path, "{org_id}"); of != slices.Contains(permissions, op.Permission) || method == "get" && of && op.Permission != "read" {
				t.Errorf("%s %s requires %q", method, path, op.Permission)
			}
			used[op.Permission] = true
		}
	}
	for _, permission := range append(slices.Clone(permissions), "manage_owners") {
		if !strings.Contains(doc.Info.Description, "`"+permission+"`") {
			t.Errorf("%s is not explained", permission)
		}
		if permission != "manage_owners" && !used[permission] {
			t.Errorf("no operation requires %s", permission)
		}
	}
}

// TestOperations requires a token of every operation, and no scope.
func TestOperations(t *testing.T) {
	for _, op := range Document.Operations {
		if public := op.Tag == "description"; op.AnyScope == public || op.Scope != "" || op.Anonymous || op.Cookie || op.Idempotent != (op.Method != "GET") {
			t.Errorf("%s: %+v", op.ID, op)
		}
	}
}
