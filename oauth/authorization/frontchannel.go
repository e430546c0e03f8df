package authorization

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// maxFrames bounds the applications that the browser visits at the end of a session.
const maxFrames = 20

// LogoutFrames returns the addresses that the browser loads, each in a frame, when a session ends:
// those of the applications that got tokens during the session and have a frontchannel_logout_uri,
// with iss and sid (OIDC Front-Channel Logout §2, §3). At most 20 applications are included, the
// first by client_id. It has to be called before the session ends.
func (s *Service) LogoutFrames(ctx context.Context, tenant protocol.Tenant, sessionID string) (frames []string, err error) {
	clients, err := access.ClientsOfSession(ctx, s.db, tenant.ID, sessionID)
	if err != nil || len(clients) == 0 {
		return nil, err
	}
	slices.Sort(clients)
	var b sqldb.Batch
	var reads []func() (client.Application, error)
	for _, clientID := range clients {
		reads = append(reads, client.QueueSelect(&b, tenant.ID, clientID))
	}
	if err := s.db.Send(ctx, &b); err != nil {
		return nil, fmt.Errorf("read applications of session: %w", err)
	}
	for _, read := range reads {
		app, err := read()
		if err != nil && !client.IsNotFound(err) {
			return nil, err
		}
		if err == nil && app.FrontchannelLogoutURI != "" && len(frames) < maxFrames {
			frames = append(frames, withSession(app.FrontchannelLogoutURI, tenant.BaseURL, sessionID))
		}
	}
	return frames, nil
}

// withSession returns a URL with iss and sid. Its query stays as it is.
func withSession(to, issuer, sessionID string) string {
	separator := "?"
	if strings.Contains(to, "?") {
		separator = "&"
	}
	return to + separator + url.Values{"iss": {issuer}, "sid": {sessionID}}.Encode()
}
