package management

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"stonetown/internal/eventlog"
)

// The types of the events of members. Those of organisations and tenants are in package
// controlplane.
const (
	MemberJoinedEvent      eventlog.Type = "member.joined"
	MemberRoleChangedEvent eventlog.Type = "member.role_changed"
	MemberRemovedEvent     eventlog.Type = "member.removed"

	ServiceAccountCreatedEvent       eventlog.Type = "service_account.created"
	ServiceAccountUpdatedEvent       eventlog.Type = "service_account.updated"
	ServiceAccountSecretRotatedEvent eventlog.Type = "service_account.secret_rotated"
	ServiceAccountDeletedEvent       eventlog.Type = "service_account.deleted"

	InvitationCreatedEvent  eventlog.Type = "invitation.created"
	InvitationResentEvent   eventlog.Type = "invitation.resent"
	InvitationRevokedEvent  eventlog.Type = "invitation.revoked"
	InvitationAcceptedEvent eventlog.Type = "invitation.accepted"
	InvitationExpiredEvent  eventlog.Type = "invitation.expired"
)

// changedRole is the data of [MemberRoleChangedEvent].
type changedRole struct {
	MemberDocument
	PreviousRole Role `json:"previous_role"`
}

// Events lists the events of an organisation that a filter selects, newest first, before a position
// of the log (0: from the newest), at most limit. It fails with [ErrOrganizationNotFound].
func (s *Service) Events(ctx context.Context, by Caller, orgID string, f EventFilter, before int64, limit int) ([]Event, error) {
	if err := s.may(ctx, by, orgID); err != nil {
		return nil, err
	}
	var list []Event
	actors := map[string]bool{}
	for len(list) < limit {
		page, err := s.log.Newest(ctx, orgID, before, eventlog.Filter{Type: eventlog.Type(f.Type), Since: f.Since, Until: f.Until}, eventlog.MaxPage)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			one := Event{Event: e, TenantID: tenantOf(e)}
			if len(list) < limit && (f.TenantID == "" || f.TenantID == one.TenantID) && (f.Actor == "" || f.Actor == e.Origin.Actor.ID) {
				list = append(list, one)
				actors[e.Origin.Actor.ID] = true
			}
			before = e.Position
		}
		if len(page) < eventlog.MaxPage {
			break
		}
	}
	ids := make([]string, 0, len(actors))
	for id := range actors {
		ids = append(ids, id)
	}
	people, err := s.users.People(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	for i, e := range list {
		list[i].ActorEmail = people[e.Origin.Actor.ID].Email
	}
	return list, nil
}

// tenantOf returns the id of the tenant that an event is about.
func tenantOf(e eventlog.Event) string {
	if !strings.HasPrefix(string(e.Type), "tenant.") {
		return ""
	}
	var data struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return "" // every event of a tenant has one
	}
	return data.ID
}
