package authorization

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// logoutKind is the kind of the jobs that send logout tokens.
const logoutKind = "backchannel_logout"

// logoutJob is the payload of a job of [logoutKind].
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
	maxLogoutAnswer = 4 << 10 // bytes; the content is ignored
)

// logoutRetries are the pauses before a logout token is sent again.
var logoutRetries = []time.Duration{30 * time.Second, 5 * time.Minute}

// SessionEnded queues, within the transaction, a logout token for each application that got
// tokens during the session and has a backchannel_logout_uri.
func (s *Service) SessionEnded(ctx context.Context, tx *sqldb.Tx, tenantID, sessionID, userID string) error {
	clients, err := access.ClientsOfSession(ctx, tx, tenantID, sessionID)
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
			s.jobs.Enqueue(&b, tenantID, logoutKind, logoutJob{clientID, sessionID, userID})
		}
	}
	return tx.Send(ctx, &b)
}

// registerLogout registers the jobs that send logout tokens. Each is tried three times; an
// event records that all attempts have failed.
func (s *Service) registerLogout(q *jobs.Queue) {
	q.Register(jobs.Kind{
		Name: logoutKind, Handle: s.sendLogout,
		Attempts: len(logoutRetries) + 1, Backoff: func(n int) time.Duration { return logoutRetries[n-1] },
		Dead: s.recordLogoutFailed,
	})
}

// sendLogout sends an application a logout token for a session that has ended.
func (s *Service) sendLogout(ctx context.Context, job jobs.Job) error {
	var j logoutJob
	if err := job.Read(&j); err != nil {
		return errors.Join(err, jobs.ErrDrop)
	}
	tenant, err := s.tenants(ctx, job.TenantID)
	if err != nil {
		return err
	}
	app, err := client.Select(ctx, s.db, tenant.ID, j.ClientID)
	if client.IsNotFound(err) || err == nil && app.BackchannelLogoutURI == "" {
		return nil // the application no longer takes logout tokens
	}
	if err != nil {
		return err
	}
	return s.postLogout(ctx, tenant, app, j)
}

// recordLogoutFailed records that no attempt to send a logout token succeeded.
func (s *Service) recordLogoutFailed(ctx context.Context, tx *sqldb.Tx, job jobs.Job, last error) error {
	var j logoutJob
	if err := job.Read(&j); err != nil {
		return nil // the payload cannot be read in a later attempt either
	}
	app, err := client.Select(ctx, tx, job.TenantID, j.ClientID)
	if client.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var b sqldb.Batch
	eventlog.Append(&b, job.TenantID, logoutFailed(ctx, app, j, last))
	return tx.Send(ctx, &b)
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
