package management

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/controlplane"
	"stonetown/engine"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// roles returns the roles of the deployment for a type of subjects: the direct relations of an
// organisation that allow them.
func (s *Service) roles(ctx context.Context, subjects string) (roles []Role, err error) {
	types, err := s.relations.Types(ctx, controlplane.SystemTenant)
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
	_, err := s.relations.Write(ctx, controlplane.SystemTenant, req)
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
	t, err := s.directory.TenantByID(ctx, tenantID)
	if errors.Is(err, controlplane.ErrTenantNotFound) || err == nil && t.OrgID != orgID {
		if err := s.may(ctx, by, orgID); err != nil {
			return controlplane.Tenant{}, err
		}
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
		_, err := s.directory.OrganizationByID(ctx, orgID)
		if errors.Is(err, controlplane.ErrOrganizationNotFound) {
			err = ErrOrganizationNotFound
		}
		return err
	}
	if len(orgID) > engine.MaxID || !sqldb.IsText(orgID) {
		return ErrOrganizationNotFound
	}
	req := engine.CheckRequest{
		Subject: by.Subject, Contextual: contextual,
		Queries: []engine.Query{{Resource: organizationObject(orgID), Action: string(Read)}},
	}
	for _, p := range wanted {
		req.Queries = append(req.Queries, engine.Query{Resource: of, Action: string(p)})
	}
	res, err := s.relations.Check(ctx, controlplane.SystemTenant, req)
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
	res, err := s.relations.Check(ctx, controlplane.SystemTenant, req)
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

// roleOf returns the role of a subject in an organisation; empty if it has none.
func (s *Service) roleOf(ctx context.Context, orgID string, subject tuplestore.Subject) (Role, error) {
	records, err := s.relations.Naming(ctx, controlplane.SystemTenant, organizationType, subject.Object(), nil, 2*maxMemberships)
	if err != nil {
		return "", fmt.Errorf("read roles: %w", err)
	}
	records = slices.DeleteFunc(records, func(r tuplestore.Record) bool { return r.Object.ID != orgID })
	return rolesIn(records)[subject], nil
}

// subjects returns the roles in an organisation that exists.
func (s *Service) subjects(ctx context.Context, orgID string) (map[tuplestore.Subject]Role, error) {
	records, _, err := s.relations.Relations(ctx, controlplane.SystemTenant, organizationObject(orgID), "", nil, 2*maxSubjects)
	if err != nil {
		return nil, fmt.Errorf("read roles: %w", err)
	}
	return rolesIn(records), nil
}
