package management

import (
	"context"
	"fmt"
	"slices"

	"stonetown/controlplane"
	"stonetown/engine"
	"stonetown/schema"
)

// The resource types of the system tenant, and the relation of a tenant to its organisation.
const (
	organizationType = "organization"
	tenantType       = "tenant"
	parent           = "parent"
)

// Permission is a relation of an organisation that is derived from roles, and the action of the
// same name.
type Permission string

// The permissions.
const (
	Read               Permission = "read"
	CreateTenant       Permission = "create_tenant"
	UpdateTenant       Permission = "update_tenant"
	SuspendTenant      Permission = "suspend_tenant" // and resume
	DecommissionTenant Permission = "decommission_tenant"
	OpenConsole        Permission = "open_console"   // of a tenant, as a managed user of it
	ManageMembers      Permission = "manage_members" // below owner: invite, give roles, remove
	ManageOwners       Permission = "manage_owners"
	UpdateOrganization Permission = "update_organization"
)

// permissions are the roles that have each permission, in the order of the documentation.
var permissions = []struct {
	name  Permission
	roles []Role
}{
	{Read, []Role{Owner, Admin, Operator, Viewer}},
	{CreateTenant, []Role{Owner, Admin}},
	{UpdateTenant, []Role{Owner, Admin}},
	{SuspendTenant, []Role{Owner, Admin, Operator}},
	{DecommissionTenant, []Role{Owner}},
	{OpenConsole, []Role{Owner, Admin, Operator}},
	{ManageMembers, []Role{Owner, Admin}},
	{ManageOwners, []Role{Owner}},
	{UpdateOrganization, []Role{Owner}},
}

// ofTenant are the permissions on tenants.
var ofTenant = []Permission{Read, UpdateTenant, SuspendTenant, DecommissionTenant, OpenConsole}

// Types returns the resource types of the system tenant: roles are direct relations of an
// organisation, and permissions unite some of them. A tenant has the permissions of its parent.
func Types() []schema.Type {
	organization := schema.Type{Name: organizationType, Description: "Owns tenants.", Actions: map[string]string{}}
	for _, role := range []Role{Owner, Admin, Operator, Viewer} {
		organization.Relations = append(organization.Relations, schema.Relation{
			Name: string(role), Subjects: []schema.SubjectType{{Type: schema.UserType}, {Type: schema.ApplicationType}},
		})
	}
	for _, p := range permissions {
		r := schema.Relation{Name: string(p.name)}
		for _, role := range p.roles {
			r.Rewrites = append(r.Rewrites, schema.Rewrite{Kind: schema.Computed, Relation: string(role)})
		}
		organization.Relations = append(organization.Relations, r)
		organization.Actions[string(p.name)] = string(p.name)
	}
	tenant := schema.Type{
		Name: tenantType, Description: "A tenant of an organisation.", Actions: map[string]string{},
		Relations: []schema.Relation{{Name: parent, Subjects: []schema.SubjectType{{Type: organizationType}}}},
	}
	for _, p := range ofTenant {
		tenant.Relations = append(tenant.Relations, schema.Relation{
			Name: string(p), Rewrites: []schema.Rewrite{{Kind: schema.TupleToUserset, Tupleset: parent, Computed: string(p)}},
		})
		tenant.Actions[string(p)] = string(p)
	}
	return []schema.Type{organization, tenant}
}

// Prepare defines the resource types of the system tenant where they are missing. Relations and
// actions that it does not know stay, and so do the definitions of those that exist: they may
// include further roles.
func (s *Service) Prepare(ctx context.Context) error {
	stored, err := s.relations.Types(ctx, controlplane.SystemTenant)
	if err != nil {
		return fmt.Errorf("prepare the system tenant: %w", err)
	}
	for _, t := range Types() {
		changed := true
		if i := slices.IndexFunc(stored, func(o schema.Type) bool { return o.Name == t.Name }); i >= 0 {
			t, changed = complete(stored[i], t)
		}
		if !changed {
			continue
		}
		if _, _, _, err := s.relations.PutType(ctx, controlplane.SystemTenant, t, engine.Origin{}); err != nil {
			return fmt.Errorf("prepare the system tenant: %w", err)
		}
	}
	return nil
}

// complete adds to a type the relations and actions of another that it lacks.
func complete(t, with schema.Type) (_ schema.Type, changed bool) {
	for _, r := range with.Relations {
		if !slices.ContainsFunc(t.Relations, func(o schema.Relation) bool { return o.Name == r.Name }) {
			t.Relations, changed = append(t.Relations, r), true
		}
	}
	for action, relation := range with.Actions {
		if _, ok := t.Actions[action]; !ok {
			if t.Actions == nil {
				t.Actions = map[string]string{}
			}
			t.Actions[action], changed = relation, true
		}
	}
	return t, changed
}
