package management

import (
	"context"
	"errors"
	"fmt"

	"stonetown/controlplane"
	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

func (m Member) subject() tuplestore.Subject {
	return tuplestore.Subject{Type: schema.UserType, ID: m.UserID}
}

// of returns the member with the data of its user.
func (m Member) of(p Person) Member {
	m.Email, m.Name, m.MFAEnrolled, m.LastActiveAt = p.Email, p.Name, p.MFAEnrolled, p.LastActiveAt
	return m
}

// Members lists the members of an organisation, newest first, after a position (nil: from the
// start), at most limit. It fails with [ErrOrganizationNotFound].
func (s *Service) Members(ctx context.Context, by Caller, orgID string, after *Position, limit int) ([]Member, error) {
	if err := s.may(ctx, by, orgID); err != nil {
		return nil, err
	}
	list, err := s.selectMembers(ctx, orgID, after, limit)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	roles, err := s.subjects(ctx, orgID)
	if err != nil {
		return nil, err
	}
	return list, s.complete(ctx, list, roles)
}

// complete adds to members their roles and the data of their users.
func (s *Service) complete(ctx context.Context, list []Member, roles map[tuplestore.Subject]Role) error {
	ids := make([]string, len(list))
	for i, m := range list {
		ids[i] = m.UserID
	}
	people, err := s.users.People(ctx, ids)
	if err != nil {
		return err
	}
	for i, m := range list {
		m.Role = roles[m.subject()]
		list[i] = m.of(people[m.UserID])
	}
	return nil
}

// insertMember stores a member. It fails with [*ConflictError] for a user who is one, or who is in as
// many organisations as a user can be.
func insertMember(ctx context.Context, tx *sqldb.Tx, m Member) error {
	var n int
	if err := tx.QueryRow(ctx, countMemberships, m.UserID).Scan(&n); err != nil {
		return err
	}
	if n >= maxMemberships {
		return &ConflictError{fmt.Sprintf("the user is in %d organisations, which is the limit", maxMemberships)}
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO organization_members (org_id, id, user_id, invited_by, joined_at) VALUES ($1, $2, $3, $4, $5)`,
		m.OrgID, m.ID, m.UserID, m.InvitedBy, m.JoinedAt.UnixMicro())
	if sqldb.IsUniqueViolation(err) {
		return &ConflictError{"the user is a member"}
	}
	return err
}

// Member returns a member. It fails with [ErrOrganizationNotFound] or [ErrMemberNotFound].
func (s *Service) Member(ctx context.Context, by Caller, orgID, memberID string) (Member, error) {
	if err := s.may(ctx, by, orgID); err != nil {
		return Member{}, err
	}
	return s.member(ctx, orgID, memberID)
}

func (s *Service) member(ctx context.Context, orgID, memberID string) (Member, error) {
	m, err := s.selectMember(ctx, orgID, memberID)
	if err != nil {
		return Member{}, err
	}
	role, err := s.roleOf(ctx, orgID, m.subject())
	if err != nil {
		return Member{}, err
	}
	one := []Member{m}
	err = s.complete(ctx, one, map[tuplestore.Subject]Role{m.subject(): role})
	return one[0], err
}

// needed returns the permissions to give and take some roles.
func needed(roles ...Role) []Permission {
	for _, role := range roles {
		if role == Owner {
			return []Permission{ManageMembers, ManageOwners}
		}
	}
	return []Permission{ManageMembers}
}

// Add makes a user of the system tenant a member without an invitation, for a command. It fails with
// [ErrOrganizationNotFound], [*FieldError] or [*ConflictError].
func (s *Service) Add(ctx context.Context, orgID, email string, role Role) (Member, error) {
	if err := s.may(ctx, Caller{Operator: true}, orgID); err != nil {
		return Member{}, err
	}
	if err := s.known(ctx, role, schema.UserType); err != nil {
		return Member{}, err
	}
	person, ok, err := s.users.ByEmail(ctx, email)
	if err != nil {
		return Member{}, err
	}
	if !ok {
		return Member{}, &FieldError{Field: "email", Code: "invalid", Message: "must be the address of a user of the control plane"}
	}
	m := Member{ID: id.New(id.Member), OrgID: orgID, UserID: person.ID, Role: role, JoinedAt: s.now()}.of(person)
	err = s.replace(ctx, Caller{}, orgID, m.subject(), "", role, func(ctx context.Context, tx *sqldb.Tx) ([]eventlog.Event, error) {
		if err := s.hasRoom(ctx, tx, orgID); err != nil {
			return nil, err
		}
		return []eventlog.Event{eventlog.Of(ctx, MemberJoinedEvent, m.Document())}, insertMember(ctx, tx, m)
	})
	if errors.Is(err, errRoleChanged) {
		err = &ConflictError{"the user is a member"}
	}
	if err != nil {
		return Member{}, fmt.Errorf("add member: %w", err)
	}
	return m, nil
}

// MemberByEmail returns the member with an address. It fails with [ErrMemberNotFound].
func (s *Service) MemberByEmail(ctx context.Context, orgID, email string) (Member, error) {
	person, ok, err := s.users.ByEmail(ctx, email)
	if err != nil {
		return Member{}, err
	}
	if !ok {
		return Member{}, ErrMemberNotFound
	}
	m, err := scanMember(s.db.QueryRow(ctx, selectMemberOf+`WHERE user_id = $1 AND org_id = $2`, person.ID, orgID))
	if err != nil {
		return Member{}, err
	}
	return s.member(ctx, orgID, m.ID)
}

// ChangeRole gives a member another role. The invitations that the member has sent are revoked. It
// fails with [ErrOrganizationNotFound], [ErrMemberNotFound], [*ForbiddenError], [*FieldError], or
// [*ConflictError] for the last owner.
func (s *Service) ChangeRole(ctx context.Context, by Caller, orgID, memberID string, role Role) (Member, error) {
	if err := s.may(ctx, by, orgID, ManageMembers); err != nil {
		return Member{}, err
	}
	if err := s.known(ctx, role, schema.UserType); err != nil {
		return Member{}, err
	}
	m, err := s.member(ctx, orgID, memberID)
	if err != nil {
		return Member{}, err
	}
	if err := s.may(ctx, by, orgID, needed(m.Role, role)...); err != nil {
		return Member{}, err
	}
	if m.Role == role {
		return m, nil
	}
	after := m
	after.Role = role
	err = s.replace(ctx, by, orgID, m.subject(), m.Role, role, func(ctx context.Context, tx *sqldb.Tx) ([]eventlog.Event, error) {
		revoked, err := s.revokeOf(ctx, tx, orgID, m.UserID)
		return append(revoked, eventlog.Of(ctx, MemberRoleChangedEvent, changedRole{after.Document(), m.Role})), err
	})
	if err != nil {
		return Member{}, fmt.Errorf("change role: %w", err)
	}
	return after, nil
}

// RemoveMember removes a member from an organisation: a caller with the permission, or the member
// itself. The invitations that the member has sent are revoked. It fails with
// [ErrOrganizationNotFound], [ErrMemberNotFound], [*ForbiddenError], or [*ConflictError] for the
// last owner.
func (s *Service) RemoveMember(ctx context.Context, by Caller, orgID, memberID string) error {
	if err := s.may(ctx, by, orgID); err != nil {
		return err
	}
	m, err := s.member(ctx, orgID, memberID)
	if err != nil {
		return err
	}
	if m.subject() != by.Subject {
		if err := s.may(ctx, by, orgID, needed(m.Role)...); err != nil {
			return err
		}
	}
	err = s.replace(ctx, by, orgID, m.subject(), m.Role, "", func(ctx context.Context, tx *sqldb.Tx) ([]eventlog.Event, error) {
		if n, err := tx.Exec(ctx, deleteMember, orgID, m.ID); err != nil {
			return nil, err
		} else if n == 0 {
			return nil, ErrMemberNotFound
		}
		revoked, err := s.revokeOf(ctx, tx, orgID, m.UserID)
		return append(revoked, eventlog.Of(ctx, MemberRemovedEvent, m.Document())), err
	})
	if err != nil {
		return fmt.Errorf("remove member: %w", err)
	}
	return nil
}

// errRoleChanged: another request changed the role concurrently.
var errRoleChanged = &ConflictError{"the role was changed by another request at the same time"}

// replace replaces the role of a subject in one transaction, with what also writes and the events
// that it returns; an empty role takes it away. A change that would leave the organisation without
// an owner who is a user fails with [*ConflictError].
func (s *Service) replace(ctx context.Context, by Caller, orgID string, subject tuplestore.Subject, from, to Role, also func(context.Context, *sqldb.Tx) ([]eventlog.Event, error)) error {
	if from == to {
		return s.db.Tx(ctx, func(tx *sqldb.Tx) error {
			events, err := also(ctx, tx)
			if err != nil {
				return err
			}
			var b sqldb.Batch
			eventlog.Append(&b, orgID, events...)
			return tx.Send(ctx, &b)
		})
	}
	var ops []engine.WriteOp
	if from != "" {
		op := relation(orgID, from, subject)
		op.Delete, op.IfPresent = true, true
		ops = append(ops, op)
	}
	if to != "" {
		ops = append(ops, relation(orgID, to, subject))
	}
	var events []eventlog.Event // of the last attempt
	req := engine.WriteRequest{Ops: ops, Origin: engine.Origin{
		Actor: by.Subject.ID,
		// The owners must be those of this moment, so no other change commits together with this.
		Alone: true,
		Also: func(ctx context.Context, tx *sqldb.Tx) error {
			records, err := s.relations.RelationsIn(ctx, tx, controlplane.SystemTenant, organizationObject(orgID), "", nil, 2*maxSubjects)
			if err != nil {
				return err
			}
			if rolesIn(records)[subject] != from {
				return errRoleChanged
			}
			if from == Owner && subject.Type == schema.UserType && owners(records) < 2 {
				return &ConflictError{"the organisation must keep an owner"}
			}
			events, err = also(ctx, tx)
			return err
		},
		Attach: func(_ tuplestore.Result, b *sqldb.Batch) { eventlog.Append(b, orgID, events...) },
	}}
	return s.write(ctx, req)
}

// owners counts the users that own an organisation.
func owners(records []tuplestore.Record) (n int) {
	for _, r := range records {
		if Role(r.Relation) == Owner && r.Subject.Type == schema.UserType {
			n++
		}
	}
	return n
}
