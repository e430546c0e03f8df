package management

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/controlplane"
	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
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
	{ManageMembers, []Role{Owner, Admin}},
	{ManageOwners, []Role{Owner}},
	{UpdateOrganization, []Role{Owner}},
}

// ofTenant are the permissions on tenants.
var ofTenant = []Permission{Read, UpdateTenant, SuspendTenant, DecommissionTenant}

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
	stored, err := s.Relations.Types(ctx, controlplane.SystemTenant)
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
		if _, _, _, err := s.Relations.PutType(ctx, controlplane.SystemTenant, t, engine.Origin{}); err != nil {
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

// roles returns the roles of the deployment for a type of subjects: the direct relations of an
// organisation that allow them.
func (s *Service) roles(ctx context.Context, subjects string) (roles []Role, err error) {
	types, err := s.Relations.Types(ctx, controlplane.SystemTenant)
	if err != nil {
		return nil, fmt.Errorf("read roles: %w", err)
	}
	allowed := func(t schema.SubjectType) bool { return t == schema.SubjectType{Type: subjects} }
	for _, t := range types {
		if t.Name != organizationType {
			continue
		}
		for _, r := range t.Relations {
			if len(r.Rewrites) == 0 && (r.Subjects == nil || slices.ContainsFunc(r.Subjects, allowed)) {
				roles = append(roles, Role(r.Name))
			}
		}
	}
	return roles, nil
}

// known fails with [*FieldError] for a role that does not exist for a type of subjects.
func (s *Service) known(ctx context.Context, role Role, subjects string) error {
	roles, err := s.roles(ctx, subjects)
	if err != nil {
		return err
	}
	if !slices.Contains(roles, role) {
		return &FieldError{Field: "role", Code: "unknown_value", Message: fmt.Sprintf("must be one of %q", roles)}
	}
	return nil
}

func organizationObject(orgID string) tuplestore.Object {
	return tuplestore.Object{Type: organizationType, ID: orgID}
}

// relation is the relation of a role.
func relation(orgID string, role Role, subject tuplestore.Subject) engine.WriteOp {
	return engine.WriteOp{Resource: organizationObject(orgID), Relation: string(role), Subject: subject}
}

// write writes relations of an organisation. It fails with [*ConflictError] for a role that the
// operator has removed since it was chosen.
func (s *Service) write(ctx context.Context, req engine.WriteRequest) error {
	_, err := s.Relations.Write(ctx, controlplane.SystemTenant, req)
	undefined, invalid := (*engine.UndefinedRelationError)(nil), (*engine.InvalidSubjectError)(nil)
	if errors.As(err, &undefined) || errors.As(err, &invalid) {
		return &ConflictError{"the role is no longer available"}
	}
	return err
}

// may fails with [ErrOrganizationNotFound] for a caller that may not read an organisation, and with
// [*ForbiddenError] for one that lacks one of some permissions.
func (s *Service) may(ctx context.Context, by Caller, orgID string, wanted ...Permission) error {
	return s.decide(ctx, by, organizationObject(orgID), orgID, wanted, nil)
}

// mayTenant is may for a permission on a tenant. That the organisation is its parent is known from
// the directory, so it is a contextual relation.
func (s *Service) mayTenant(ctx context.Context, by Caller, orgID, tenantID string, wanted Permission) (controlplane.Tenant, error) {
	if err := s.may(ctx, by, orgID); err != nil {
		return controlplane.Tenant{}, err
	}
	t, err := s.Directory.TenantByID(ctx, tenantID)
	if errors.Is(err, controlplane.ErrTenantNotFound) || err == nil && t.OrgID != orgID {
		return controlplane.Tenant{}, ErrTenantNotFound
	}
	if err != nil {
		return controlplane.Tenant{}, err
	}
	object := tuplestore.Object{Type: tenantType, ID: t.ID}
	link := engine.WriteOp{Resource: object, Relation: parent, Subject: tuplestore.Subject{Type: organizationType, ID: orgID}}
	return t, s.decide(ctx, by, object, orgID, []Permission{wanted}, []engine.WriteOp{link})
}

func (s *Service) decide(ctx context.Context, by Caller, of tuplestore.Object, orgID string, wanted []Permission, contextual []engine.WriteOp) error {
	if by.Operator {
		_, err := s.Directory.OrganizationByID(ctx, orgID)
		if errors.Is(err, controlplane.ErrOrganizationNotFound) {
			err = ErrOrganizationNotFound
		}
		return err
	}
	if len(orgID) > engine.MaxID {
		return ErrOrganizationNotFound
	}
	req := engine.CheckRequest{
		Subject: by.Subject, Contextual: contextual,
		Queries: []engine.Query{{Resource: organizationObject(orgID), Action: string(Read)}},
	}
	for _, p := range wanted {
		req.Queries = append(req.Queries, engine.Query{Resource: of, Action: string(p)})
	}
	res, err := s.Relations.Check(ctx, controlplane.SystemTenant, req)
	if err != nil {
		return fmt.Errorf("compare roles: %w", err)
	}
	for i, d := range res.Decisions {
		switch {
		case d.Allowed:
		case i == 0:
			return ErrOrganizationNotFound
		default:
			return &ForbiddenError{"the role of the caller does not permit " + string(wanted[i-1])}
		}
	}
	return nil
}

// Permissions lists what the caller may do in an organisation. It fails with
// [ErrOrganizationNotFound].
func (s *Service) Permissions(ctx context.Context, by Caller, orgID string) (allowed []string, err error) {
	if err := s.may(ctx, by, orgID); err != nil {
		return nil, err
	}
	req := engine.CheckRequest{Subject: by.Subject}
	for _, p := range permissions {
		req.Queries = append(req.Queries, engine.Query{Resource: organizationObject(orgID), Action: string(p.name)})
	}
	res, err := s.Relations.Check(ctx, controlplane.SystemTenant, req)
	if err != nil {
		return nil, fmt.Errorf("compare roles: %w", err)
	}
	for i, d := range res.Decisions {
		if d.Allowed {
			allowed = append(allowed, string(permissions[i].name))
		}
	}
	return allowed, nil
}

// maxSubjects bounds the members and the service accounts of an organisation.
const maxSubjects = 1000

// rolesIn returns the role of every subject of an organisation.
func rolesIn(records []tuplestore.Record) map[tuplestore.Subject]Role {
	found := make(map[tuplestore.Subject]Role, len(records))
	for _, r := range records {
		found[r.Subject] = Role(r.Relation)
	}
	return found
}

// subjects returns the roles in an organisation that exists.
func (s *Service) subjects(ctx context.Context, orgID string) (map[tuplestore.Subject]Role, error) {
	records, err := s.Relations.Relations(ctx, controlplane.SystemTenant, organizationObject(orgID), "", nil, 2*maxSubjects)
	if err != nil {
		return nil, fmt.Errorf("read roles: %w", err)
	}
	return rolesIn(records), nil
}
