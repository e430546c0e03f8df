package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/engine"
	"stonetown/engine/authority"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// bulkAttempts is how often users are created before a concurrent change of the same users or
// groups is an error.
const bulkAttempts = 5

// BulkUser is one of the users that [Directory.CreateMany] creates.
type BulkUser struct {
	NewUser
	Groups []string // the slugs of the groups to join
}

// Bulk is what [Directory.CreateMany] creates.
type Bulk struct {
	Users []BulkUser
	// Actor is recorded as the author of the memberships.
	Actor  string
	Source Source
	// SendVerification sends a mail to each user whose address is not verified.
	SendVerification bool
	// Created, if not nil, is called for each user that is created, with the index in Users. What
	// it queues commits with the user. It may run more than once.
	Created func(b *sqldb.Batch, n int, u User)
	// Commit runs first in the transaction; what it queues commits with the users. errs has
	// an error for each user that is not created. Commit may run more than once.
	Commit func(ctx context.Context, tx *sqldb.Tx, b *sqldb.Batch, errs []error) error
}

// UnknownGroupError is returned for a slug that no group has.
type UnknownGroupError struct{ Slug string }

func (e *UnknownGroupError) Error() string { return fmt.Sprintf("group %q not found", e.Slug) }

// CreateMany creates users and their memberships in one transaction, with the rights of the
// context's caller. A user that cannot be created does not affect the others: Bulk.Commit gets
// its error, which is [ErrEmailInvalid], [ErrUserExists], a [*UnknownGroupError], or an
// [*authority.DeniedError] for a group that the caller may not add members to.
func (d *Directory) CreateMany(ctx context.Context, tenantID string, bulk Bulk) error {
	for attempt := 1; ; attempt++ {
		err := d.createMany(ctx, tenantID, bulk)
		if attempt < bulkAttempts && (sqldb.IsUniqueViolation(err) || errors.Is(err, errChanged)) {
			continue // one of the users was created meanwhile, or a group was changed
		}
		return err
	}
}

func (d *Directory) createMany(ctx context.Context, tenantID string, bulk Bulk) error {
	errs := make([]error, len(bulk.Users))
	groups, err := d.joinable(ctx, tenantID, bulk.Users, errs)
	if err != nil {
		return err
	}
	// Every user has an id before the transaction begins, because memberships name it.
	users := make([]User, len(bulk.Users))
	var emails []string
	for n, u := range bulk.Users {
		switch {
		case errs[n] != nil:
		case !ValidEmail(u.Email):
			errs[n] = ErrEmailInvalid
		default:
			users[n] = d.newUser(tenantID, u.NewUser)
			emails = append(emails, NormalEmail(u.Email))
		}
	}
	taken, err := selectTaken(ctx, d.db, tenantID, emails)
	if err != nil {
		return err
	}
	var created []User
	var indices []int                // of those in bulk.Users
	joining := map[string][]string{} // user ids by slug
	req := engine.WriteRequest{Origin: engine.Origin{Actor: bulk.Actor}}
	for n, u := range bulk.Users {
		if errs[n] != nil {
			continue
		}
		email := NormalEmail(u.Email)
		if taken[email] {
			errs[n] = ErrUserExists
			continue
		}
		taken[email] = true // the first of several users with one address is created
		created, indices = append(created, users[n]), append(indices, n)
		for _, slug := range slices.Compact(slices.Sorted(slices.Values(u.Groups))) {
			req.Ops = append(req.Ops, membership(groups[slug].ID, users[n].ID))
			joining[slug] = append(joining[slug], users[n].ID)
		}
	}
	var events []eventlog.Event // of the last attempt
	outer := ctx                // has the origin of the events, which the context of a shared transaction lacks
	queue := func(ctx context.Context, tx *sqldb.Tx, b *sqldb.Batch) error {
		if err := bulk.Commit(ctx, tx, b, errs); err != nil {
			return err
		}
		events = nil
		for i, u := range created {
			queueUser(b, u)
			if bulk.Created != nil {
				bulk.Created(b, indices[i], u)
			}
			if bulk.SendVerification {
				d.verify(b, u)
			}
			events = append(events, UserCreated(outer, u, bulk.Source))
		}
		for slug, userIDs := range joining {
			g := groups[slug]
			now, err := selectGroup(ctx, tx, tenantID, g.ID)
			if errors.Is(err, ErrGroupNotFound) || err == nil && len(added(g.Scopes, now.Scopes)) > 0 {
				return errChanged
			}
			if err != nil {
				return err
			}
			countMembers(b, g, len(userIDs), d.now())
			events = append(events, membersChanged(outer, memberAdded, g, userIDs)...)
		}
		return nil
	}
	if len(req.Ops) == 0 {
		return d.db.Tx(ctx, func(tx *sqldb.Tx) error {
			var b sqldb.Batch
			if err := queue(ctx, tx, &b); err != nil {
				return err
			}
			eventlog.Append(&b, tenantID, events...)
			return tx.Send(ctx, &b)
		})
	}
	req.Also = func(ctx context.Context, tx *sqldb.Tx) error {
		var b sqldb.Batch
		if err := queue(ctx, tx, &b); err != nil {
			return err
		}
		return tx.Send(ctx, &b)
	}
	req.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		eventlog.AppendAt(b, tenantID, int64(r.Revision), events...)
	}
	_, err = d.relations.Write(ctx, tenantID, req)
	return err
}

// joinable returns the groups, by slug, that users are to join. It sets the errors of users
// that name a group that does not exist or that the caller may not add members to.
func (d *Directory) joinable(ctx context.Context, tenantID string, users []BulkUser, errs []error) (map[string]Group, error) {
	groups, failed := map[string]Group{}, map[string]error{}
	for n, u := range users {
		for _, slug := range u.Groups {
			_, known := groups[slug]
			if !known && failed[slug] == nil {
				g, err := selectGroupBySlug(ctx, d.db, tenantID, slug)
				if errors.Is(err, ErrGroupNotFound) {
					err = &UnknownGroupError{slug}
				} else if err == nil {
					err = d.authority.MayGive(ctx, tenantID, append([]string{"groups:write"}, g.Scopes...))
				}
				var unknown *UnknownGroupError
				var denied *authority.DeniedError
				if err != nil && !errors.As(err, &unknown) && !errors.As(err, &denied) {
					return nil, err
				}
				groups[slug], failed[slug] = g, err
			}
			if failed[slug] != nil {
				errs[n] = failed[slug]
				break
			}
		}
	}
	return groups, nil
}

// selectTaken returns those of some folded addresses that have an account.
func selectTaken(ctx context.Context, from sender, tenantID string, emails []string) (map[string]bool, error) {
	taken := map[string]bool{}
	var b sqldb.Batch
	for _, email := range emails {
		b.Queue(`SELECT 1 FROM users WHERE tenant_id = $1 AND email_norm = $2 AND email_norm <> ''`, []any{tenantID, email}, func(rows *sqldb.Rows) error {
			for rows.Next() {
				taken[email] = true
			}
			return nil
		})
	}
	if b.Len() == 0 {
		return taken, nil
	}
	return taken, from.Send(ctx, &b)
}
