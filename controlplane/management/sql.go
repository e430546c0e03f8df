package management

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"stonetown/internal/sqldb"
)

// querier is the database or a transaction on it.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

// before returns the values that the columns of a list are compared with; those of the first page
// come after all others.
func before(after *Position) (at int64, id string) {
	if after == nil {
		return math.MaxInt64, ""
	}
	return after.At.UnixMicro(), after.ID
}

const (
	selectMemberOf = `SELECT org_id, id, user_id, invited_by, joined_at FROM organization_members `
	deleteMember   = `DELETE FROM organization_members WHERE org_id = $1 AND id = $2`
	countSubjects  = `
		SELECT (SELECT COUNT(*) FROM organization_members WHERE org_id = $1) + (SELECT COUNT(*) FROM service_accounts WHERE org_id = $1)`

	// countMemberships counts by the index of the users.
	countMemberships = `SELECT COUNT(*) FROM organization_members WHERE user_id = $1`

	selectAccountOf = `SELECT org_id, id, client_id, name, created_by, created_at FROM service_accounts `
	renameAccount   = `UPDATE service_accounts SET name = $3 WHERE org_id = $1 AND id = $2`
	deleteAccount   = `DELETE FROM service_accounts WHERE org_id = $1 AND id = $2`

	selectInvitationsOf = `
		SELECT org_id, id, email, role, state, invited_by, created_at, expires_at, accepted_at FROM organization_invitations `
	countInvitations = `SELECT COUNT(*) FROM organization_invitations WHERE org_id = $1 AND state = 'pending'`
	// selectByToken finds a pending invitation by the index of the tokens.
	selectByToken    = `SELECT org_id, id, email_norm FROM organization_invitations WHERE token_hash = $1 AND state = 'pending' AND expires_at > $2`
	setToken         = `UPDATE organization_invitations SET token_hash = $3 WHERE org_id = $1 AND id = $2 AND state = 'pending'`
	expireInvitation = `UPDATE organization_invitations SET state = 'expired' WHERE org_id = $1 AND id = $2 AND state = 'pending' AND expires_at <= $3`
)

func (s *Service) selectMembers(ctx context.Context, orgID string, after *Position, limit int) (list []Member, err error) {
	at, id := before(after)
	rows, err := s.db.Query(ctx, selectMemberOf+`
		WHERE org_id = $1 AND (joined_at, id) < ($2, $3) ORDER BY joined_at DESC, id DESC LIMIT $4`, orgID, at, id, limit)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		m, err := scanMember(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, rows.Err()
}

func (s *Service) selectMember(ctx context.Context, orgID, memberID string) (Member, error) {
	if !sqldb.IsText(memberID) {
		return Member{}, ErrMemberNotFound
	}
	return scanMember(s.db.QueryRow(ctx, selectMemberOf+`WHERE org_id = $1 AND id = $2`, orgID, memberID))
}

func scanMember(row scanner) (m Member, err error) {
	var joined int64
	err = row.Scan(&m.OrgID, &m.ID, &m.UserID, &m.InvitedBy, &joined)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Member{}, ErrMemberNotFound
	}
	if err != nil {
		return Member{}, fmt.Errorf("read member: %w", err)
	}
	m.JoinedAt = sqldb.Instant(joined)
	return m, nil
}

func insertAccount(ctx context.Context, tx *sqldb.Tx, a ServiceAccount) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO service_accounts (org_id, id, client_id, name, created_by, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		a.OrgID, a.ID, a.ClientID, a.Name, a.CreatedBy, a.CreatedAt.UnixMicro())
	return err
}

func (s *Service) selectAccounts(ctx context.Context, orgID string, after *Position, limit int) (list []ServiceAccount, err error) {
	at, id := before(after)
	rows, err := s.db.Query(ctx, selectAccountOf+`
		WHERE org_id = $1 AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4`, orgID, at, id, limit)
	if err != nil {
		return nil, fmt.Errorf("list service accounts: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		a, err := scanAccount(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, rows.Err()
}

func (s *Service) selectAccount(ctx context.Context, orgID, accountID string) (ServiceAccount, error) {
	if !sqldb.IsText(accountID) {
		return ServiceAccount{}, ErrServiceAccountNotFound
	}
	return scanAccount(s.db.QueryRow(ctx, selectAccountOf+`WHERE org_id = $1 AND id = $2`, orgID, accountID))
}

func scanAccount(row scanner) (a ServiceAccount, err error) {
	var created int64
	err = row.Scan(&a.OrgID, &a.ID, &a.ClientID, &a.Name, &a.CreatedBy, &created)
	if errors.Is(err, sqldb.ErrNoRows) {
		return ServiceAccount{}, ErrServiceAccountNotFound
	}
	if err != nil {
		return ServiceAccount{}, fmt.Errorf("read service account: %w", err)
	}
	a.CreatedAt = sqldb.Instant(created)
	return a, nil
}

// insertInvitation stores an invitation. It fails with [*ConflictError] for an address with a
// pending one.
func insertInvitation(ctx context.Context, tx *sqldb.Tx, i Invitation, norm string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO organization_invitations (org_id, id, email, email_norm, role, state, token_hash, invited_by, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, '', $7, $8, $9)`,
		i.OrgID, i.ID, i.Email, norm, string(i.Role), string(i.State), i.InvitedBy, i.CreatedAt.UnixMicro(), i.ExpiresAt.UnixMicro())
	if sqldb.IsUniqueViolation(err) {
		return &ConflictError{"the address has a pending invitation"}
	}
	return err
}

// updateInvitation stores what can change of a pending invitation. One that another transaction has
// ended is [ErrInvitationNotFound].
func updateInvitation(ctx context.Context, tx *sqldb.Tx, i Invitation) error {
	n, err := tx.Exec(ctx, `
		UPDATE organization_invitations SET state = $3, expires_at = $4, accepted_at = $5 WHERE org_id = $1 AND id = $2 AND state = 'pending'`,
		i.OrgID, i.ID, string(i.State), i.ExpiresAt.UnixMicro(), sqldb.Micros(i.AcceptedAt))
	if err == nil && n == 0 {
		err = ErrInvitationNotFound
	}
	return err
}

func (s *Service) selectInvitation(ctx context.Context, from querier, orgID, invitationID string) (Invitation, error) {
	if !sqldb.IsText(invitationID) {
		return Invitation{}, ErrInvitationNotFound
	}
	return scanInvitation(from.QueryRow(ctx, selectInvitationsOf+`WHERE org_id = $1 AND id = $2`, orgID, invitationID), s.now())
}

// selectInvitations compares states as they are at this moment.
func (s *Service) selectInvitations(ctx context.Context, orgID string, state InvitationState, after *Position, limit int) ([]Invitation, error) {
	at, id := before(after)
	now := s.now()
	list, err := scanInvitations(now)(s.db.Query(ctx, selectInvitationsOf+`
		WHERE org_id = $1 AND (created_at, id) < ($2, $3)
			AND ($4 = '' OR $4 = CASE WHEN state = 'pending' AND expires_at <= $5 THEN 'expired' ELSE state END)
		ORDER BY created_at DESC, id DESC LIMIT $6`, orgID, at, id, string(state), now.UnixMicro(), limit))
	if err != nil {
		return nil, fmt.Errorf("list invitations: %w", err)
	}
	return list, nil
}

func scanInvitations(now time.Time) func(*sqldb.Rows, error) ([]Invitation, error) {
	return func(rows *sqldb.Rows, err error) (list []Invitation, _ error) {
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			i, err := scanInvitation(rows, now)
			if err != nil {
				return nil, err
			}
			list = append(list, i)
		}
		return list, rows.Err()
	}
}

// scanInvitation reads the columns of selectInvitationsOf. A pending invitation whose time is over
// has expired.
func scanInvitation(row scanner, now time.Time) (i Invitation, err error) {
	var created, expires, accepted int64
	err = row.Scan(&i.OrgID, &i.ID, &i.Email, (*string)(&i.Role), (*string)(&i.State), &i.InvitedBy, &created, &expires, &accepted)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Invitation{}, ErrInvitationNotFound
	}
	if err != nil {
		return Invitation{}, fmt.Errorf("read invitation: %w", err)
	}
	i.CreatedAt, i.ExpiresAt, i.AcceptedAt = sqldb.Instant(created), sqldb.Instant(expires), sqldb.Instant(accepted)
	if i.State == InvitationPending && !now.Before(i.ExpiresAt) {
		i.State = InvitationExpired
	}
	return i, nil
}
