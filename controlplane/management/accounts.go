package management

import (
	"context"
	"fmt"

	"stonetown/controlplane"
	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/internal/text"
	"stonetown/schema"
	"stonetown/tuplestore"
)

func (a ServiceAccount) subject() tuplestore.Subject {
	return tuplestore.Subject{Type: schema.ApplicationType, ID: a.ClientID}
}

// maxName is the longest name of a service account, in bytes.
const maxName = 200

func validName(name string) error {
	if name == "" {
		return &FieldError{Field: "name", Code: "required", Message: "is required"}
	}
	if len(name) > maxName || !text.IsLine(name) {
		return &FieldError{Field: "name", Code: "invalid", Message: fmt.Sprintf("must be one line of at most %d bytes, without control characters", maxName)}
	}
	return nil
}

// CreateServiceAccount creates a service account with a role, and returns its secret, of which
// there is no other copy. A request that is sent again gets a new secret. It fails with
// [ErrOrganizationNotFound], [*ForbiddenError], [*FieldError] or [*ConflictError].
func (s *Service) CreateServiceAccount(ctx context.Context, by Caller, orgID, name string, role Role) (account ServiceAccount, secret string, err error) {
	if err := s.may(ctx, by, orgID, needed(role)...); err != nil {
		return account, "", err
	}
	if err := validName(name); err != nil {
		return account, "", err
	}
	if err := s.known(ctx, role, schema.ApplicationType); err != nil {
		return account, "", err
	}
	account = ServiceAccount{
		ID: id.New(id.Application), OrgID: orgID, ClientID: id.New(id.Client), Name: name, Role: role, CreatedBy: by.Subject.ID, CreatedAt: s.now(),
	}
	if by.CommitID != "" { // a repeated request writes the same relation
		account.ID, account.ClientID = id.Of(id.Application, by.CommitID), id.Of(id.Client, by.CommitID)
	}
	req := engine.WriteRequest{Ops: []engine.WriteOp{relation(orgID, role, account.subject())}, Origin: engine.Origin{Actor: by.Subject.ID, CommitID: by.CommitID}}
	req.Also = func(ctx context.Context, tx *sqldb.Tx) (err error) {
		if err := s.hasRoom(ctx, tx, orgID); err != nil {
			return err
		}
		if secret, err = s.applications.Create(ctx, tx, controlplane.SystemTenant, NewApplication{ID: account.ID, ClientID: account.ClientID, Name: name}); err != nil {
			return err
		}
		return insertAccount(ctx, tx, account)
	}
	req.Attach = func(_ tuplestore.Result, b *sqldb.Batch) {
		eventlog.Append(b, orgID, eventlog.Of(ctx, ServiceAccountCreatedEvent, account.Document()))
	}
	if err := s.write(ctx, req); err != nil {
		return ServiceAccount{}, "", fmt.Errorf("create service account: %w", err)
	}
	if secret == "" { // committed by an earlier attempt
		rotated, err := s.applications.RotateSecret(ctx, controlplane.SystemTenant, account.ID, true, func(*sqldb.Batch) {})
		if err != nil {
			return ServiceAccount{}, "", fmt.Errorf("create service account: %w", err)
		}
		if account, err = s.account(ctx, orgID, account.ID); err != nil {
			return ServiceAccount{}, "", err
		}
		secret = rotated.Secret
	}
	return account, secret, nil
}

// ServiceAccounts lists the service accounts of an organisation, newest first, after a position
// (nil: from the start), at most limit. It fails with [ErrOrganizationNotFound].
func (s *Service) ServiceAccounts(ctx context.Context, by Caller, orgID string, after *Position, limit int) ([]ServiceAccount, error) {
	if err := s.may(ctx, by, orgID); err != nil {
		return nil, err
	}
	list, err := s.selectAccounts(ctx, orgID, after, limit)
	if err != nil || len(list) == 0 {
		return list, err
	}
	roles, err := s.subjects(ctx, orgID)
	for i, a := range list {
		list[i].Role = roles[a.subject()]
	}
	return list, err
}

// ServiceAccount returns a service account. It fails with [ErrOrganizationNotFound] or
// [ErrServiceAccountNotFound].
func (s *Service) ServiceAccount(ctx context.Context, by Caller, orgID, accountID string) (ServiceAccount, error) {
	if err := s.may(ctx, by, orgID); err != nil {
		return ServiceAccount{}, err
	}
	return s.account(ctx, orgID, accountID)
}

func (s *Service) account(ctx context.Context, orgID, accountID string) (ServiceAccount, error) {
	a, err := s.selectAccount(ctx, orgID, accountID)
	if err != nil {
		return ServiceAccount{}, err
	}
	a.Role, err = s.roleOf(ctx, orgID, a.subject())
	return a, err
}

// managed returns a service account that the caller may change.
func (s *Service) managed(ctx context.Context, by Caller, orgID, accountID string) (ServiceAccount, error) {
	if err := s.may(ctx, by, orgID, ManageMembers); err != nil {
		return ServiceAccount{}, err
	}
	a, err := s.account(ctx, orgID, accountID)
	if err != nil {
		return ServiceAccount{}, err
	}
	return a, s.may(ctx, by, orgID, needed(a.Role)...)
}

// UpdateServiceAccount changes a service account. It fails with [ErrOrganizationNotFound],
// [ErrServiceAccountNotFound], [*ForbiddenError], [*FieldError] or [*ConflictError].
func (s *Service) UpdateServiceAccount(ctx context.Context, by Caller, orgID, accountID string, change ServiceAccountChange) (ServiceAccount, error) {
	before, err := s.managed(ctx, by, orgID, accountID)
	if err != nil {
		return ServiceAccount{}, err
	}
	after := before
	if change.Name != nil {
		if err := validName(*change.Name); err != nil {
			return ServiceAccount{}, err
		}
		after.Name = *change.Name
	}
	if change.Role != nil {
		if err := s.known(ctx, *change.Role, schema.ApplicationType); err != nil {
			return ServiceAccount{}, err
		}
		if err := s.may(ctx, by, orgID, needed(*change.Role)...); err != nil {
			return ServiceAccount{}, err
		}
		after.Role = *change.Role
	}
	if after == before {
		return after, nil
	}
	err = s.replace(ctx, by, orgID, before.subject(), before.Role, after.Role, func(ctx context.Context, tx *sqldb.Tx) ([]eventlog.Event, error) {
		if n, err := tx.Exec(ctx, renameAccount, orgID, accountID, after.Name); err != nil {
			return nil, err
		} else if n == 0 {
			return nil, ErrServiceAccountNotFound
		}
		return []eventlog.Event{eventlog.Of(ctx, ServiceAccountUpdatedEvent, after.Document())}, nil
	})
	if err != nil {
		return ServiceAccount{}, fmt.Errorf("update service account: %w", err)
	}
	return after, nil
}

// DeleteServiceAccount deletes a service account. Its role ends at once, and after the return no
// process accepts its tokens. It fails with [ErrOrganizationNotFound], [ErrServiceAccountNotFound]
// or [*ForbiddenError].
func (s *Service) DeleteServiceAccount(ctx context.Context, by Caller, orgID, accountID string) error {
	a, err := s.managed(ctx, by, orgID, accountID)
	if err != nil {
		return err
	}
	// The row is deleted last, so that a deletion that was interrupted can be repeated.
	if err := s.applications.Delete(ctx, controlplane.SystemTenant, accountID); err != nil {
		return fmt.Errorf("delete service account: %w", err)
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec(ctx, deleteAccount, orgID, accountID)
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrServiceAccountNotFound
		}
		var b sqldb.Batch
		eventlog.Append(&b, orgID, eventlog.Of(ctx, ServiceAccountDeletedEvent, a.Document()))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("delete service account: %w", err)
	}
	return nil
}

// RotateServiceAccountSecret replaces the secret of a service account. It fails with
// [ErrOrganizationNotFound], [ErrServiceAccountNotFound] or [*ForbiddenError].
func (s *Service) RotateServiceAccountSecret(ctx context.Context, by Caller, orgID, accountID string) (RotatedSecret, error) {
	a, err := s.managed(ctx, by, orgID, accountID)
	if err != nil {
		return RotatedSecret{}, err
	}
	rotated, err := s.applications.RotateSecret(ctx, controlplane.SystemTenant, accountID, false, func(b *sqldb.Batch) {
		eventlog.Append(b, orgID, eventlog.Of(ctx, ServiceAccountSecretRotatedEvent, a.Document()))
	})
	if err != nil {
		return RotatedSecret{}, fmt.Errorf("rotate secret: %w", err)
	}
	return rotated, nil
}

// hasRoom fails with [*ConflictError] if an organisation has as many members and service accounts
// as it can.
func (s *Service) hasRoom(ctx context.Context, tx *sqldb.Tx, orgID string) error {
	var n int
	if err := tx.QueryRow(ctx, countSubjects, orgID).Scan(&n); err != nil {
		return err
	}
	if n >= maxSubjects {
		return &ConflictError{fmt.Sprintf("the organisation has %d members and service accounts, which is the limit", maxSubjects)}
	}
	return nil
}
