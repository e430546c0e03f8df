package signin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/identity/federation"
	"stonetown/internal/sqldb"
)

// Usable implements [authn.Connections].
func (s *Service) Usable(ctx context.Context, tx *sqldb.Tx, tenantID, connectionID string) (bool, error) {
	return federation.IsEnabled(ctx, tx, tenantID, connectionID)
}

// SessionBegan implements [authn.Connections]. A user whose sign-in does not end with a session joins
// no group.
func (s *Service) SessionBegan(ctx context.Context, tenantID, connectionID, userID string, groups []string) error {
	c, err := s.Connections.Get(ctx, tenantID, connectionID)
	if errors.Is(err, federation.ErrNotFound) { // deleted meanwhile
		return nil
	}
	if err == nil {
		err = s.joinGroups(ctx, tenantID, c, userID, groups)
	}
	return err
}

// joinGroups makes a user a member of those groups of the connection's mapping whose values the
// provider has sent at the sign-in, groupIDs, and of no others of the mapping. Groups that the mapping does not name are not
// changed.
func (s *Service) joinGroups(ctx context.Context, tenantID string, c federation.Connection, userID string, groupIDs []string) error {
	ctx = authority.Without(ctx) // an administrator with the rights has decided on the mapping
	var done []string
	for _, rule := range c.GroupMapping {
		if slices.Contains(done, rule.GroupID) {
			continue
		}
		done = append(done, rule.GroupID)
		_, err := s.Groups.Member(ctx, tenantID, rule.GroupID, userID)
		member := err == nil
		if err != nil && !errors.Is(err, identity.ErrMemberNotFound) && !errors.Is(err, identity.ErrGroupNotFound) {
			return fmt.Errorf("groups of a federated user: %w", err)
		}
		switch wanted := slices.Contains(groupIDs, rule.GroupID); {
		case wanted && !member:
			_, err = s.Groups.AddMembers(ctx, tenantID, rule.GroupID, []string{userID}, "")
		case !wanted && member:
			_, err = s.Groups.RemoveMembers(ctx, tenantID, rule.GroupID, []string{userID}, "")
		default:
			continue
		}
		switch {
		case errors.Is(err, identity.ErrGroupNotFound): // deleted; the rule has no effect
		case errors.Is(err, identity.ErrLastAdministrator):
			s.Logger.WarnContext(ctx, "the last administrator stays a member", "tenant", tenantID, "group", rule.GroupID, "user", userID)
		case err != nil:
			return fmt.Errorf("groups of a federated user: %w", err)
		}
	}
	return nil
}
