package signin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/identity/federation"
)

// joinGroups makes a user a member of those groups of the connection's mapping whose values the
// provider has sent, and of no others of the mapping. Groups that the mapping does not name are not
// changed.
func (s *Service) joinGroups(ctx context.Context, tenantID string, c federation.Connection, u federation.User, userID string) error {
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
		switch wanted := slices.Contains(u.GroupIDs, rule.GroupID); {
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
