package management

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/controlplane"
	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// maxMemberships is in how many organisations a user can be.
const maxMemberships = 100

// CreateOrganization creates an organisation with the caller, a user with a verified address, as
// its owner. It fails with [*ForbiddenError] or [*ConflictError], or as
// [controlplane.Directory.CreateOrganization] does.
func (s *Service) CreateOrganization(ctx context.Context, by Caller, slug, name string) (controlplane.Organization, error) {
	none := controlplane.Organization{}
	if by.Subject.Type != schema.UserType {
		return none, &ForbiddenError{"a service account cannot create an organisation"}
	}
	people, err := s.users.People(ctx, []string{by.Subject.ID})
	if err != nil {
		return none, err
	}
	if !people[by.Subject.ID].EmailVerified {
		return none, &ForbiddenError{"the caller must verify the e-mail address of the account first"}
	}
	held, err := s.relations.Naming(ctx, controlplane.SystemTenant, organizationType, by.Subject.Object(), nil, maxMemberships)
	if err != nil {
		return none, fmt.Errorf("create organisation: %w", err)
	}
	owns := func(r tuplestore.Record) bool { return Role(r.Relation) == Owner }
	if !s.open && !slices.ContainsFunc(held, owns) {
		return none, &ForbiddenError{"only owners of an organisation can create others on this deployment"}
	}

	orgID := id.New(id.Organization)
	if by.CommitID != "" { // a repeated request writes the same relation
		orgID = id.Of(id.Organization, by.CommitID)
	}
	req := engine.WriteRequest{Ops: []engine.WriteOp{relation(orgID, Owner, by.Subject)}, Origin: engine.Origin{Actor: by.Subject.ID, CommitID: by.CommitID}}
	var joined Member
	req.Also = func(ctx context.Context, tx *sqldb.Tx) error {
		if _, err := s.directory.CreateOrganizationAs(ctx, tx, orgID, slug, name); err != nil {
			return err
		}
		joined = Member{ID: id.New(id.Member), OrgID: orgID, UserID: by.Subject.ID, Role: Owner, JoinedAt: s.now()}
		return insertMember(ctx, tx, joined)
	}
	person := people[by.Subject.ID]
	req.Attach = func(_ tuplestore.Result, b *sqldb.Batch) {
		eventlog.Append(b, orgID, eventlog.Of(ctx, MemberJoinedEvent, joined.of(person).Document()))
	}
	if err := s.write(ctx, req); err != nil {
		return none, fmt.Errorf("create organisation: %w", err)
	}
	return s.directory.OrganizationByID(ctx, orgID)
}

// Adopt makes the first user of the system tenant the owner of an organisation that has neither
// members nor service accounts, as one that a command has created.
func (s *Service) Adopt(ctx context.Context, orgID string) error {
	first, ok, err := s.users.First(ctx)
	if err != nil || !ok {
		return err
	}
	if members, err := s.selectMembers(ctx, orgID, nil, 1); err != nil || len(members) > 0 {
		return err
	}
	_, err = s.Add(ctx, orgID, first.Email, Owner)
	if conflict := (*ConflictError)(nil); errors.As(err, &conflict) { // another process has done it
		return nil
	}
	return err
}

// Organizations lists the organisations in which the caller has a role, newest first, after a
// position (nil: from the start), at most limit.
func (s *Service) Organizations(ctx context.Context, by Caller, after *Position, limit int) ([]controlplane.Organization, error) {
	records, err := s.relations.Naming(ctx, controlplane.SystemTenant, organizationType, by.Subject.Object(), nil, maxMemberships)
	if err != nil {
		return nil, fmt.Errorf("list organisations: %w", err)
	}
	var ids []string
	for _, r := range records {
		ids = append(ids, r.Object.ID)
	}
	slices.Sort(ids)
	list, err := s.directory.OrganizationsByID(ctx, slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	if after != nil {
		list = slices.DeleteFunc(list, func(o controlplane.Organization) bool {
			return o.CreatedAt.After(after.At) || o.CreatedAt.Equal(after.At) && o.ID >= after.ID
		})
	}
	return list[:min(len(list), limit)], nil
}

// Organization returns an organisation. It fails with [ErrOrganizationNotFound].
func (s *Service) Organization(ctx context.Context, by Caller, orgID string) (controlplane.Organization, error) {
	if err := s.may(ctx, by, orgID); err != nil {
		return controlplane.Organization{}, err
	}
	return s.directory.OrganizationByID(ctx, orgID)
}

// UpdateOrganization changes the name of an organisation. It fails with [ErrOrganizationNotFound],
// [*ForbiddenError] or [controlplane.ErrNameInvalid].
func (s *Service) UpdateOrganization(ctx context.Context, by Caller, orgID string, change func(*controlplane.Organization)) (controlplane.Organization, error) {
	if err := s.may(ctx, by, orgID, UpdateOrganization); err != nil {
		return controlplane.Organization{}, err
	}
	o, err := s.directory.OrganizationByID(ctx, orgID)
	if err != nil {
		return controlplane.Organization{}, err
	}
	change(&o)
	return s.directory.RenameOrganization(ctx, orgID, o.Name)
}
