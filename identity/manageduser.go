package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// A managed user is a member of the organisation of a tenant, as a user of the tenant. A person is
// one from the first time that they open the console of the tenant from the control plane, so that
// events, tokens and relations name a user of the tenant, whom its administrators see and can disable.
//
// A managed user signs in from the control plane and in no other way: it has no password, and no
// address by which it is found. Its rights are those of one group, which it joins when it is made.

// OrganizationMembersSlug is the slug of the group of managed users.
const OrganizationMembersSlug = "organization-members"

// ManagedByControlPlane is the value of [UserDocument.ManagedBy] for managed users.
const ManagedByControlPlane = "control_plane"

var (
	// ErrManaged is returned for giving a managed user another way to sign in.
	ErrManaged = errors.New("the user is managed by the control plane, and signs in from there only")
	// ErrManagedDisabled is returned for admitting a person whose account in the tenant is disabled.
	ErrManagedDisabled = errors.New("an administrator of the tenant has disabled this person's account there")
	// ErrOrganizationMembers is returned for deleting the group of managed users. It would be made
	// again, with all scopes.
	ErrOrganizationMembers = errors.New("the group of the organisation's members cannot be deleted; remove its scopes instead")
)

// emailNorm is the form of the address by which the account is found. A managed user is not found by
// its address, so that it cannot be taken by, or take that of, another account.
func (u User) emailNorm() string {
	if u.ManagedBy != "" {
		return ""
	}
	return NormalEmail(u.Email)
}

// staysManaged fails with [ErrManaged] for a change of a managed user that concerns how it signs in.
func (c Change) staysManaged() error {
	before, after := c.Before, c.After
	if before.ManagedBy != "" && (before.Email != after.Email || before.EmailVerified != after.EmailVerified ||
		before.PasswordHash != after.PasswordHash || before.PasswordMustBeReset != after.PasswordMustBeReset) {
		return ErrManaged
	}
	return nil
}

// Person is a user of the system tenant.
type Person struct {
	ID    string
	Name  string // as it is shown in the tenant
	Email string // a name in the form of an address; no mail is sent to it
}

// Admit returns the managed user of a tenant for a person, and makes it if the person has none. The
// first one is made with the group of managed users, which has the given scopes then. What
// administrators of the tenant have changed since stays: the scopes of the group, and whether the
// user is a member of it. Admit is the product's own work; in the events, the managed user is the
// actor. It fails with [ErrManagedDisabled].
func (d *Directory) Admit(ctx context.Context, tenantID string, p Person, scopes []string) (User, error) {
	for {
		u, err := selectManagedUser(ctx, d.db, tenantID, p.ID)
		switch {
		case err == nil && u.State == Disabled:
			return User{}, ErrManagedDisabled
		case err == nil && u.Name != p.Name:
			return d.rename(ctx, u, p.Name)
		case err == nil:
			return u, nil
		case !errors.Is(err, ErrUserNotFound):
			return User{}, fmt.Errorf("admit a person: %w", err)
		}
		now := d.now()
		u = User{
			ID: id.New(id.User), TenantID: tenantID, Email: p.Email, State: Active, Profile: Profile{Name: p.Name}, ManagedBy: p.ID, CreatedAt: now, UpdatedAt: now,
		}
		g, err := selectGroupBySlug(ctx, d.db, tenantID, OrganizationMembersSlug)
		var req engine.WriteRequest
		switch {
		case err == nil:
			req = d.joining(ctx, u, g)
		case errors.Is(err, ErrGroupNotFound):
			req = d.founding(ctx, u, scopes)
		default:
			return User{}, fmt.Errorf("admit a person: %w", err)
		}
		_, err = d.relations.Write(ctx, tenantID, req)
		if errors.Is(err, errChanged) || errors.Is(err, ErrSlugTaken) {
			continue // another request was first
		}
		if err != nil {
			return User{}, fmt.Errorf("admit a person: %w", err)
		}
		return u, nil
	}
}

// rename gives a managed user the name that the person has now.
func (d *Directory) rename(ctx context.Context, u User, name string) (after User, err error) {
	err = d.db.Tx(ctx, func(tx *sqldb.Tx) error {
		c, err := d.UpdateIn(ctx, tx, u.TenantID, u.ID, func(u *User) { u.Name = name })
		if err != nil {
			return err
		}
		after = c.After
		var b sqldb.Batch
		eventlog.Append(&b, u.TenantID, c.events(by(ctx, u.ID))...)
		return tx.Send(ctx, &b)
	})
	return after, err
}

// joining is the write that makes a managed user a member of the group that exists.
func (d *Directory) joining(ctx context.Context, u User, g Group) engine.WriteRequest {
	req := engine.WriteRequest{Origin: engine.Origin{Actor: u.ID}, Ops: []engine.WriteOp{membership(g.ID, u.ID)}}
	req.Also = func(ctx context.Context, tx *sqldb.Tx) error {
		// The transaction holds the lock of the relations, which deleting the group requires.
		if _, err := selectGroup(ctx, tx, u.TenantID, g.ID); errors.Is(err, ErrGroupNotFound) {
			return errChanged
		} else if err != nil {
			return err
		}
		return insertManagedUser(ctx, tx, u)
	}
	req.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		countMembers(b, g, 1, d.now())
		eventlog.AppendAt(b, u.TenantID, int64(r.Revision), UserCreated(by(ctx, u.ID), u, FromControlPlane), memberAdded(by(ctx, u.ID), g, u.ID))
	}
	return req
}

// founding is the write that makes a managed user with the group, as its first member.
func (d *Directory) founding(ctx context.Context, u User, scopes []string) engine.WriteRequest {
	g := Group{
		ID: id.New(id.Group), TenantID: u.TenantID, Slug: OrganizationMembersSlug, Name: "Organisation members",
		Description: "Members of the organisation who have opened the console from the control plane.",
		Scopes:      sorted(scopes), MemberCount: 1, CreatedAt: u.CreatedAt, UpdatedAt: u.CreatedAt,
	}
	req := engine.WriteRequest{Origin: engine.Origin{Actor: u.ID}, Register: []tuplestore.Object{groupObject(g.ID)}, Ops: []engine.WriteOp{membership(g.ID, u.ID)}}
	for _, scope := range g.Scopes {
		req.Ops = append(req.Ops, grant(g.ID, scope))
	}
	req.Also = func(ctx context.Context, tx *sqldb.Tx) error {
		if err := insertGroup(ctx, tx, g); err != nil {
			return err
		}
		return insertManagedUser(ctx, tx, u)
	}
	req.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		eventlog.AppendAt(b, u.TenantID, int64(r.Revision), groupCreated(by(ctx, u.ID), g), UserCreated(by(ctx, u.ID), u, FromControlPlane), memberAdded(by(ctx, u.ID), g, u.ID))
	}
	return req
}

// by returns a context whose events have a user as their actor, in place of a caller that belongs to
// another tenant.
func by(ctx context.Context, userID string) context.Context {
	return eventlog.WithOrigin(ctx, func() eventlog.Origin {
		o := eventlog.OriginOf(ctx)
		o.Actor, o.ClientID = eventlog.Actor{Type: schema.UserType, ID: userID}, ""
		return o
	})
}

func selectManagedUser(ctx context.Context, from reader, tenantID, personID string) (User, error) {
	return scanUser(from.QueryRow(ctx, `SELECT `+userColumns+` FROM users u WHERE u.tenant_id = $1 AND u.managed_by = $2 AND u.managed_by <> ''`, tenantID, personID), tenantID)
}

// insertManagedUser fails with errChanged if the person has a managed user by now. The transaction holds
// the lock of the relations, so that of two that make the same user one finds that of the other.
func insertManagedUser(ctx context.Context, tx *sqldb.Tx, u User) error {
	_, err := selectManagedUser(ctx, tx, u.TenantID, u.ManagedBy)
	if err == nil {
		return errChanged
	}
	if !errors.Is(err, ErrUserNotFound) {
		return err
	}
	var b sqldb.Batch
	queueUser(&b, u)
	return tx.Send(ctx, &b)
}

// counted returns the users among ids who are not managed.
func counted(ctx context.Context, tx *sqldb.Tx, tenantID string, userIDs []string) ([]string, error) {
	users, err := selectUsers(ctx, tx, tenantID, userIDs)
	return slices.DeleteFunc(slices.Clone(userIDs), func(id string) bool { return users[id].ManagedBy != "" }), err
}
