package federation

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/identity/external"
)

// mayCreate fails with [*authority.DeniedError] for rights that the caller lacks, and sets the
// default of the link policy by those that it has.
func (r *Registry) mayCreate(ctx context.Context, c *Connection) error {
	if c.LinkPolicy == "" {
		if err := r.defaultLinkPolicy(ctx, c); err != nil {
			return err
		}
	}
	if c.replacesProof() {
		if err := r.authority.MayGive(ctx, c.TenantID, r.scopes); err != nil {
			return err
		}
	}
	return r.mayMap(ctx, *c)
}

// replacesProof reports whether a statement of the provider replaces a proof that the user gives
// here: of an account with the same address, or of a second factor. Even if users prove that they
// own the account, and so link it with the provider, their second factor must not depend on it.
func (c Connection) replacesProof() bool {
	return c.LinkPolicy == LinkVerified || c.SecondFactor == AcceptSecondFactor
}

// defaultLinkPolicy sets the default of the link policy: [LinkVerified] for a caller with all
// built-in scopes, and [LinkPrompt] for others.
func (r *Registry) defaultLinkPolicy(ctx context.Context, c *Connection) error {
	err := r.authority.MayGive(ctx, c.TenantID, r.scopes)
	var denied *authority.DeniedError
	switch {
	case errors.As(err, &denied):
		c.LinkPolicy = LinkPrompt
	case err != nil:
		return err
	default:
		c.LinkPolicy = LinkVerified
	}
	return nil
}

// mayUpdate fails with [*authority.DeniedError] for rights that the caller lacks.
func (r *Registry) mayUpdate(ctx context.Context, before, after Connection) error {
	trust := !reflect.DeepEqual(before.trusted(), after.trusted())
	if trust {
		linked, err := external.AnyAt(ctx, r.db, after.TenantID, after.ID)
		if err != nil {
			return fmt.Errorf("compare rights: %w", err)
		}
		if linked || after.replacesProof() {
			if err := r.authority.MayGive(ctx, after.TenantID, r.scopes); err != nil {
				return err
			}
		}
	}
	if trust || !reflect.DeepEqual(before.GroupMapping, after.GroupMapping) {
		return r.mayMap(ctx, after)
	}
	return nil
}

// trusted returns the settings that decide which user signs in, and how the user has
// authenticated.
func (c Connection) trusted() Settings {
	s := c.Settings
	s.GroupMapping, s.JITProvisioning, s.Domains, s.Scopes = nil, false, nil, nil
	return s
}

// mayMap fails with [*authority.DeniedError] unless the caller holds the scopes of the groups
// of the group mapping.
func (r *Registry) mayMap(ctx context.Context, c Connection) error {
	var scopes []string
	for _, rule := range c.GroupMapping {
		g, err := r.groups.Group(ctx, c.TenantID, rule.GroupID)
		if errors.Is(err, identity.ErrGroupNotFound) {
			continue // deleted; the rule has no effect
		}
		if err != nil {
			return fmt.Errorf("compare rights: %w", err)
		}
		scopes = append(scopes, g.Scopes...)
	}
	return r.authority.MayGive(ctx, c.TenantID, scopes)
}
