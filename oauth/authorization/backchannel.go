package authorization

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stonetown/internal/id"
	"stonetown/internal/outbox"
	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// LogoutJob is the kind of the jobs that tell an application that a session has ended;
// [Service.SendLogout] does them.
const LogoutJob = "backchannel_logout"

// logoutJob is what such a job says.
type logoutJob struct {
	ClientID  string `json:"client_id"`
	SessionID string `json:"session_id"`
	UserID    string `json:"user_id"`
}

const (
	// logoutTokenType is the typ header of logout tokens (OIDC Back-Channel Logout §2.4).
	logoutTokenType = "logout+jwt"
	logoutTokenFor  = 2 * time.Minute
	logoutEvent     = "http://schemas.openid.net/event/backchannel-logout"
	maxLogoutAnswer = 4 << 10 // bytes, of which none is looked at
)

// logoutRetries is when an application is told again that could not be told.
var logoutRetries = []time.Duration{30 * time.Second, 5 * time.Minute}

// SessionEnded queues, within the transaction, that those applications are told which a
// user has let in during a session that has ended, and which want to know.
func (s *Service) SessionEnded(ctx context.Context, tx *sqldb.Tx, tenantID, sessionID, userID string) error {
	clients, err := selectClientsOfSession(ctx, tx, tenantID, sessionID)
	if err != nil {
		return fmt.Errorf("list clients of session: %w", err)
	}
	var b sqldb.Batch
	for _, clientID := range clients {
		app, err := client.Select(ctx, tx, tenantID, clientID)
		if err != nil && !client.IsNotFound(err) {
			return err
		}
		if err == nil && app.BackchannelLogoutURI != "" {
			s.outbox.Queue(&b, tenantID, LogoutJob, logoutJob{clientID, sessionID, userID})
		}
	}
	return tx.Send(ctx, &b)
}

func selectClientsOfSession(ctx context.Context, tx *sqldb.Tx, tenantID, sessionID string) ([]string, error) {
	return sqldb.Texts(tx.Query(ctx, `SELECT DISTINCT client_id FROM grants WHERE tenant_id = $1 AND session_id = $2`, tenantID, sessionID))
}

// SendLogout tells an application that a session has ended. It is tried three times; that
// it could not be told is then on record.
func (s *Service) SendLogout(ctx context.Context, job outbox.Job) error {
	var j logoutJob
	if err := job.Read(&j); err != nil {
		return errors.Join(err, outbox.ErrDrop)
	}
	tenant, err := s.tenants(ctx, job.TenantID)
	if err != nil {
		return err
	}
	app, err := client.Select(ctx, s.db, tenant.ID, j.ClientID)
	if client.IsNotFound(err) || err == nil && app.BackchannelLogoutURI == "" { // it wants to know no more
		return nil
	}
	if err == nil {
		err = s.postLogout(ctx, tenant, app, j)
	}
	switch {
	case err == nil:
		return nil
	case job.Attempt <= len(logoutRetries):
		return &outbox.RetryError{After: logoutRetries[job.Attempt-1], Err: err}
	}
	if err := s.record.Record(ctx, tenant.ID, logoutFailed(ctx, app, j, err)); err != nil {
		return err
	}
	return errors.Join(err, outbox.ErrDrop)
}

func (s *Service) postLogout(ctx context.Context, tenant protocol.Tenant, app client.Application, j logoutJob) error {
	now := s.clock()
	token, err := s.keys.Sign(ctx, tenant, app.IDTokenAlg, logoutTokenType, map[string]any{
		"iss": tenant.BaseURL, "aud": app.ClientID, "sub": j.UserID, "sid": j.SessionID, "jti": id.New(id.Token),
		"iat": now.Unix(), "exp": now.Add(logoutTokenFor).Unix(), "events": map[string]any{logoutEvent: struct{}{}},
	})
	if err != nil {
		return err
	}
	form := strings.NewReader(url.Values{"logout_token": {token}}.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, app.BackchannelLogoutURI, form)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_, err = s.outbound.Do(req, maxLogoutAnswer)
	return err
}
