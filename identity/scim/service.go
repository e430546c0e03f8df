package scim

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"stonetown/identity"
	"stonetown/internal/sqldb"
)

// Service executes the operations of provisioning clients. It is safe for concurrent use.
type Service struct{ directory *identity.Directory }

// New returns the service of a directory.
func New(d *identity.Directory) *Service { return &Service{d} }

// Client is the caller of an operation.
type Client struct {
	TenantID string
	ID       string // the client id, to which external ids belong
	Base     string // the URL of /scim/v2
}

// Resource is a resource with all its attributes.
type Resource struct {
	Type     *Type
	Object   Object
	ID       string
	Version  string // an entity tag
	Location string
}

// Match is the condition of a request on the version of its resource; empty: there is none.
type Match string

// check fails with 412 if If-Match has another version (RFC 7644 §3.14).
func (m Match) check(version string) error {
	if m != "" && !Matches(string(m), version) {
		return &Error{http.StatusPreconditionFailed, "", "the resource has another version than If-Match has"}
	}
	return nil
}

// Matches reports whether a list of entity tags has a version, by the weak comparison (RFC 9110
// §8.8.3.2).
func Matches(tags, version string) bool {
	for tag := range strings.SplitSeq(tags, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(version, "W/") {
			return true
		}
	}
	return false
}

func (s *Service) externalID(ctx context.Context, c Client, id string) (string, error) {
	found, err := s.directory.ExternalIDs(ctx, c.TenantID, c.ID, []string{id})
	return found[id], err
}

// User returns a user.
func (s *Service) User(ctx context.Context, c Client, id string) (Resource, error) {
	u, err := s.directory.User(ctx, c.TenantID, id)
	if errors.Is(err, identity.ErrUserNotFound) {
		return Resource{}, notFound(Users, id)
	}
	if err != nil {
		return Resource{}, err
	}
	externalID, err := s.externalID(ctx, c, id)
	return c.user(u, externalID), err
}

// CreateUser creates a user. The account is active, because the directory vouches for the address,
// unless it says otherwise.
func (s *Service) CreateUser(ctx context.Context, c Client, in Object) (Resource, error) {
	created, errs, err := s.createUsers(ctx, c, []Object{in})
	if err == nil {
		err = errs[0]
	}
	if err != nil {
		return Resource{}, err
	}
	return created[0], nil
}

// createUsers creates users in one transaction. A user that cannot be created does not affect the
// others.
func (s *Service) createUsers(ctx context.Context, c Client, in []Object) (created []Resource, errs []error, err error) {
	created, errs = make([]Resource, len(in)), make([]error, len(in))
	bulk := identity.Bulk{Actor: c.ID, Source: identity.FromProvisioning}
	var index []int // of bulk.Users in in
	var externalIDs []string
	for i, o := range in {
		canonical, err := Users.Canonical(o)
		u := identity.User{}
		if err == nil {
			err = write(&u, canonical, nil)
		}
		if err != nil {
			errs[i] = err
			continue
		}
		bulk.Users = append(bulk.Users, identity.BulkUser{NewUser: identity.NewUser{
			Email: u.Email, EmailVerified: true, Disabled: u.State == identity.Disabled, Profile: u.Profile,
		}})
		index, externalIDs = append(index, i), append(externalIDs, external(canonical))
	}
	if len(index) == 0 {
		return created, errs, nil
	}
	bulk.Created = func(b *sqldb.Batch, n int, u identity.User) {
		if externalIDs[n] != "" {
			c.setExternalID(b, u.ID, externalIDs[n])
		}
		created[index[n]] = c.user(u, externalIDs[n])
	}
	bulk.Commit = func(_ context.Context, _ *sqldb.Tx, _ *sqldb.Batch, failed []error) error {
		for n, err := range failed {
			errs[index[n]] = err
		}
		return nil
	}
	return created, errs, s.directory.CreateMany(ctx, c.TenantID, bulk)
}

// ReplaceUser sets all attributes of a user. Those that are absent are removed, but a user whose
// state is absent keeps it.
func (s *Service) ReplaceUser(ctx context.Context, c Client, id string, in Object, match Match) (Resource, error) {
	canonical, err := Users.Canonical(in)
	if err != nil {
		return Resource{}, err
	}
	return s.changeUser(ctx, c, id, match, func(before Object) (Object, error) { return canonical, nil })
}

// PatchUser changes attributes of a user.
func (s *Service) PatchUser(ctx context.Context, c Client, id string, operations []Operation, match Match) (Resource, error) {
	return s.changeUser(ctx, c, id, match, func(before Object) (Object, error) {
		return Users.Patch(before, operations)
	})
}

func (s *Service) changeUser(ctx context.Context, c Client, id string, match Match, change func(Object) (Object, error)) (Resource, error) {
	had, err := s.externalID(ctx, c, id)
	if err != nil {
		return Resource{}, err
	}
	has := had
	after, err := s.directory.Provision(ctx, c.TenantID, id, func(u *identity.User) error {
		if err := match.check(c.user(*u, had).Version); err != nil {
			return err
		}
		before := ofUser(*u, had)
		o, err := change(before)
		if err != nil {
			return err
		}
		has = external(o)
		return write(u, o, before)
	}, func(b *sqldb.Batch) {
		if has != had {
			c.setExternalID(b, id, has)
		}
	})
	if errors.Is(err, identity.ErrUserNotFound) {
		return Resource{}, notFound(Users, id)
	}
	return c.user(after, has), err
}

// DeleteUser deletes a user.
func (s *Service) DeleteUser(ctx context.Context, c Client, id string, match Match) error {
	if match != "" {
		r, err := s.User(ctx, c, id)
		if err == nil {
			err = match.check(r.Version)
		}
		if err != nil {
			return err
		}
	}
	err := s.directory.Delete(ctx, c.TenantID, id, "")
	if errors.Is(err, identity.ErrUserNotFound) {
		return notFound(Users, id)
	}
	return err
}

// GroupsOfUser sets the attribute groups of a user, which is returned on request only.
func (s *Service) GroupsOfUser(ctx context.Context, c Client, r Resource) error {
	groups, err := s.directory.Groups(ctx, c.TenantID, "", r.ID, nil, maxGroups)
	if err != nil {
		return err
	}
	var list []any
	for _, g := range groups {
		list = append(list, Object{"value": g.ID, "$ref": c.Base + "/Groups/" + g.ID, "display": g.Name, "type": "direct"})
	}
	r.Object["groups"] = list
	return nil
}

// maxGroups bounds the groups in the representation of a user.
const maxGroups = 1000

// setExternalID queues the external id of a resource.
func (c Client) setExternalID(b *sqldb.Batch, id, externalID string) {
	identity.SetExternalID(b, c.TenantID, c.ID, id, externalID)
}
