package incident

import (
	"context"
	"embed"
	"fmt"
	"time"

	"stonetown/identity"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("incident", migrations) }

// Users is the part of [identity.Directory] that incidents use.
type Users interface {
	UsersByID(ctx context.Context, tenantID string, userIDs []string) (map[string]identity.User, error)
	UserIDs(ctx context.Context, tenantID, after string, limit int) ([]string, error)
}

// Mail sends a text of an administrator to a user, who may not exist any more:
// [identity.ErrUserNotFound].
type Mail interface {
	SendAnnouncement(ctx context.Context, tenantID, userID, subject, message string) error
}

// Config contains the dependencies of a registry. All fields but Clock are required.
type Config struct {
	DB    *sqldb.DB
	Users Users
	Mail  Mail
	Jobs  *jobs.Queue
	// Clock returns the current time. Default: time.Now.
	Clock func() time.Time
}

// Registry stores the incidents of tenants and notifies users. It is safe for concurrent use.
type Registry struct {
	db    *sqldb.DB
	users Users
	mail  Mail
	jobs  *jobs.Queue
	clock func() time.Time
}

// New returns the registry, and registers its jobs.
func New(c Config) *Registry {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	r := &Registry{db: c.DB, users: c.Users, mail: c.Mail, jobs: c.Jobs, clock: c.Clock}
	r.register()
	return r
}

func (r *Registry) now() time.Time { return r.clock().UTC().Truncate(time.Microsecond) }

// List lists the incidents of a tenant, newest first: at most limit, and those before an id unless
// that is empty. open selects the open ones.
func (r *Registry) List(ctx context.Context, tenantID string, open bool, before string, limit int) ([]Incident, error) {
	found, err := selectIncidents(ctx, r.db, tenantID, open, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list breach incidents: %w", err)
	}
	return found, nil
}

// Get reads an incident. It fails with [ErrNotFound].
func (r *Registry) Get(ctx context.Context, tenantID, incidentID string) (Incident, error) {
	return selectIncident(ctx, r.db, tenantID, incidentID)
}

// Open opens an incident. It fails with [ErrTooMany] or [ErrAssigneeNotFound].
func (r *Registry) Open(ctx context.Context, tenantID string, s Settings) (Incident, error) {
	now := r.now()
	i := Incident{
		ID: id.NewOrdered(id.Incident, now), TenantID: tenantID, Settings: s,
		OpenedAt: now, OpenedBy: eventlog.OriginOf(ctx).Actor, UpdatedAt: now,
	}
	if err := r.checkAssignee(ctx, tenantID, s.AssigneeID); err != nil {
		return Incident{}, err
	}
	err := r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var open int
		if err := tx.QueryRow(ctx, `SELECT COUNT(*) FROM breach_incidents WHERE tenant_id = $1 AND closed_at = 0`, tenantID).Scan(&open); err != nil {
			return err
		}
		if open >= MaxOpen {
			return ErrTooMany
		}
		var b sqldb.Batch
		insertIncident(&b, i)
		eventlog.Append(&b, tenantID, opened(ctx, i))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Incident{}, fmt.Errorf("open breach incident: %w", err)
	}
	return i, nil
}

// checkAssignee requires that an assignee, if there is one, is a user.
func (r *Registry) checkAssignee(ctx context.Context, tenantID, userID string) error {
	if userID == "" {
		return nil
	}
	if !sqldb.IsText(userID) {
		return ErrAssigneeNotFound
	}
	found, err := r.users.UsersByID(ctx, tenantID, []string{userID})
	if err != nil {
		return fmt.Errorf("assignee of breach incident: %w", err)
	}
	if _, ok := found[userID]; !ok {
		return ErrAssigneeNotFound
	}
	return nil
}

// Update changes an incident. change is applied to the present settings and may be called more than
// once. If it changes nothing, nothing is written. Update fails with [ErrNotFound], [ErrClosed] or
// [ErrAssigneeNotFound].
func (r *Registry) Update(ctx context.Context, tenantID, incidentID string, change func(*Settings)) (Incident, error) {
	seen, err := r.Get(ctx, tenantID, incidentID)
	if err != nil {
		return Incident{}, err
	}
	before := seen.AssigneeID
	if change(&seen.Settings); seen.AssigneeID != before {
		if err := r.checkAssignee(ctx, tenantID, seen.AssigneeID); err != nil {
			return Incident{}, err
		}
	}
	return r.change(ctx, tenantID, incidentID, func(_ *sqldb.Tx, i *Incident) error {
		change(&i.Settings)
		return nil
	})
}

// Close closes an incident. It fails with [ErrNotFound] or [ErrClosed].
func (r *Registry) Close(ctx context.Context, tenantID, incidentID, resolution string) (Incident, error) {
	return r.change(ctx, tenantID, incidentID, func(_ *sqldb.Tx, i *Incident) error {
		i.Resolution, i.ClosedAt = resolution, r.now()
		return nil
	})
}

// change changes an open incident in a transaction, with the event of the change.
func (r *Registry) change(ctx context.Context, tenantID, incidentID string, change func(*sqldb.Tx, *Incident) error) (after Incident, err error) {
	err = r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		before, err := lockIncident(ctx, tx, tenantID, incidentID)
		if err != nil {
			return err
		}
		after = before
		if !before.ClosedAt.IsZero() {
			return ErrClosed
		}
		if err := change(tx, &after); err != nil || after == before {
			return err
		}
		after.UpdatedAt = r.now()
		event := updated(ctx, before, after)
		if !after.ClosedAt.IsZero() {
			event = closed(ctx, after)
		}
		var b sqldb.Batch
		updateIncident(&b, after)
		eventlog.Append(&b, tenantID, event)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Incident{}, fmt.Errorf("change breach incident: %w", err)
	}
	return after, nil
}

// AddAffected adds users, at most [MaxAtOnce], to the list of an incident. It returns the ids that no
// user has, which are not added. It fails with [ErrNotFound], [ErrClosed] or [ErrTooManyAffected].
func (r *Registry) AddAffected(ctx context.Context, tenantID, incidentID string, userIDs []string) (after Incident, unknown []string, err error) {
	users, err := r.users.UsersByID(ctx, tenantID, userIDs)
	if err != nil {
		return Incident{}, nil, fmt.Errorf("affected users: %w", err)
	}
	for _, userID := range userIDs {
		if _, ok := users[userID]; !ok {
			unknown = append(unknown, userID)
		}
	}
	after, err = r.change(ctx, tenantID, incidentID, func(tx *sqldb.Tx, i *Incident) error {
		var b sqldb.Batch
		for userID := range users {
			insertAffected(&b, *i, AffectedUser{userID, r.now()}, func() { i.Affected++ })
		}
		err := tx.Send(ctx, &b)
		if err == nil && i.Affected > MaxAffected {
			err = ErrTooManyAffected
		}
		return err
	})
	return after, unknown, err
}

// RemoveAffected removes a user from the list of an incident; one that is not in the list is no
// error. It fails with [ErrNotFound] or [ErrClosed].
func (r *Registry) RemoveAffected(ctx context.Context, tenantID, incidentID, userID string) error {
	_, err := r.change(ctx, tenantID, incidentID, func(tx *sqldb.Tx, i *Incident) error {
		n, err := deleteAffected(ctx, tx, *i, userID)
		i.Affected -= n
		return err
	})
	return err
}

// Affected lists the users of the list of an incident by their ids: at most limit, and those after
// an id. It fails with [ErrNotFound].
func (r *Registry) Affected(ctx context.Context, tenantID, incidentID, after string, limit int) ([]AffectedUser, error) {
	if _, err := r.Get(ctx, tenantID, incidentID); err != nil {
		return nil, err
	}
	found, err := selectAffected(ctx, r.db, tenantID, incidentID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list affected users: %w", err)
	}
	return found, nil
}

// Addresses returns the addresses of affected users.
func (r *Registry) Addresses(ctx context.Context, tenantID string, affected []AffectedUser) (map[string]string, error) {
	ids := make([]string, len(affected))
	for n, a := range affected {
		ids[n] = a.UserID
	}
	found, err := r.users.UsersByID(ctx, tenantID, ids)
	if err != nil {
		return nil, fmt.Errorf("addresses of affected users: %w", err)
	}
	addresses := make(map[string]string, len(found))
	for userID, u := range found {
		addresses[userID] = u.Email
	}
	return addresses, nil
}

// ForgetUser queues that a deleted user is not affected by incidents, nor assigned to them.
func (r *Registry) ForgetUser(b *sqldb.Batch, tenantID, userID string) {
	b.Queue(`UPDATE breach_incidents SET affected = affected - 1 WHERE tenant_id = $1 AND id IN (
		SELECT incident_id FROM breach_affected_users WHERE tenant_id = $1 AND user_id = $2)`, []any{tenantID, userID}, nil)
	b.Queue(`DELETE FROM breach_affected_users WHERE tenant_id = $1 AND user_id = $2`, []any{tenantID, userID}, nil)
	b.Queue(`UPDATE breach_incidents SET assignee_id = '' WHERE tenant_id = $1 AND assignee_id = $2`, []any{tenantID, userID}, nil)
}
