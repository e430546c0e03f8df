package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

// The grants of users.
const (
	GrantAuthorizationCode = "authorization_code" // RFC 6749 §4.1
	GrantRefreshToken      = "refresh_token"      // RFC 6749 §6
)

// codeFor is how long an authorization code is good.
const codeFor = time.Minute

// grant is what a user has let an application do. All tokens that follow from one
// authorization belong to one grant, and end with it.
type grant struct {
	id, tenantID, clientID string
	auth                   Authentication
	scopes                 []string // without those of groups
	audience               string
	nonce                  string
	createdAt, expiresAt   time.Time
	revokedAt              time.Time // zero: it is not
}

// offline grants outlive their session (OIDC Core §11).
func (g grant) offline() bool { return slices.Contains(g.scopes, offlineAccess) }

// offlineAccess is the scope of grants that outlive their session.
const offlineAccess = "offline_access"

// IssueCode answers an authorization request for a user who has signed in: with a code that
// is good for a minute and once.
func (s *Service) IssueCode(ctx context.Context, tenant Tenant, r AuthorizationRequest, by Authentication) (code string, err error) {
	now := moment(s.clock)
	code = newToken("ac_")
	grantID := id.New(id.Grant)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		settings, err := selectSettings(ctx, tx, tenant.ID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		s.begin(&b, tenant, settings, grant{id: grantID, clientID: r.ClientID, auth: by, scopes: r.Scopes, audience: r.Audience, nonce: r.Nonce})
		b.Queue(`
			INSERT INTO codes (tenant_id, hash, grant_id, client_id, redirect_uri, challenge, dpop_jkt, expires_at, used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)`,
			[]any{tenant.ID, tokenHash(code), grantID, r.ClientID, r.RedirectURI, r.Challenge, r.Thumbprint, now.Add(codeFor).UnixMicro()}, nil)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return "", fmt.Errorf("issue code: %w", err)
	}
	return code, nil
}

// begin queues that a user lets an application do something, as of now.
func (s *Service) begin(b *sqldb.Batch, tenant Tenant, settings Settings, g grant) {
	now := moment(s.clock)
	b.Queue(`
		INSERT INTO grants (tenant_id, id, client_id, user_id, session_id, scope, audience, nonce, methods, auth_time, second_factor_at, created_at, expires_at, revoked_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0)`,
		[]any{
			tenant.ID, g.id, g.clientID, g.auth.UserID, g.auth.SessionID, strings.Join(g.scopes, " "), g.audience, g.nonce, strings.Join(g.auth.Methods, " "),
			g.auth.AuthTime.UnixMicro(), micros(g.auth.SecondFactor), now.UnixMicro(), now.Add(time.Duration(settings.RefreshFamilyMaxS) * time.Second).UnixMicro(),
		}, nil)
	b.Queue(`
		INSERT INTO authorizations (tenant_id, user_id, client_id, scopes, created_at, used_at) VALUES ($1, $2, $3, '', $4, $4)
		ON CONFLICT (tenant_id, user_id, client_id) DO UPDATE SET used_at = $4`,
		[]any{tenant.ID, g.auth.UserID, g.clientID, now.UnixMicro()}, nil)
}

// invalidGrant is the one refusal of a code or token, whatever is wrong with it.
var invalidGrant = &Error{InvalidGrant, "the code or token is not valid for this client"}

// exchangeCode answers the authorization_code grant. A wrong client, redirect URI, verifier
// or key leaves the code as it is; who comes with the right ones a second time ends all
// that followed from the first.
func (s *Service) exchangeCode(ctx context.Context, tenant Tenant, app Application, req TokenRequest) (TokenResponse, error) {
	c, err := s.selectCode(ctx, tenant, req.Code)
	now := moment(s.clock)
	g, hash := c.grant, tokenHash(req.Code)
	switch {
	case err != nil:
		return TokenResponse{}, err
	case c.clientID != app.ClientID || c.redirectURI != req.RedirectURI || !verifies(c.challenge, req.CodeVerifier) || c.key != "" && c.key != req.key:
		return TokenResponse{}, invalidGrant
	case c.used:
		return TokenResponse{}, s.reused(ctx, tenant, g.id, authorizationCodeReused)
	case !now.Before(c.expiresAt):
		return TokenResponse{}, invalidGrant
	}
	issued, err := s.issue(ctx, tenant, app, g, issuance{req: req, first: true, uses: func(b *sqldb.Batch) {
		useOnce(b, `UPDATE codes SET used_at = $3 WHERE tenant_id = $1 AND hash = $2 AND used_at = 0`, tenant.ID, hash, now.UnixMicro())
	}})
	if errors.Is(err, errReused) {
		err = s.reused(ctx, tenant, g.id, authorizationCodeReused)
	}
	return issued, err
}

// code is a stored authorization code.
type code struct {
	grant                  grant
	clientID               string
	redirectURI, challenge string
	key                    string // thumbprint of the key that the request named; empty: none
	used                   bool
	expiresAt              time.Time
}

// selectCode finds an authorization code, valid or not, and its grant. It fails with
// invalidGrant.
func (s *Service) selectCode(ctx context.Context, tenant Tenant, presented string) (c code, err error) {
	var expires, used int64
	c.grant, err = grantRow(s.db.QueryRow(ctx, `
		SELECT c.client_id, c.redirect_uri, c.challenge, c.dpop_jkt, c.expires_at, c.used_at, `+grantColumns+`
		FROM codes c JOIN grants g ON g.tenant_id = c.tenant_id AND g.id = c.grant_id WHERE c.tenant_id = $1 AND c.hash = $2`, tenant.ID, tokenHash(presented)),
		tenant, &c.clientID, &c.redirectURI, &c.challenge, &c.key, &expires, &used)
	c.expiresAt, c.used = instant(expires), used != 0
	return c, err
}

// verifies reports whether a verifier is the one that a challenge was made of (RFC 7636
// §4.6). Without a challenge there must be none: else whoever can take the challenge out of
// a request could redeem the code (RFC 9700 §4.8).
func verifies(challenge, verifier string) bool {
	if challenge == "" {
		return verifier == ""
	}
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

// refresh answers the refresh_token grant. The token is replaced; who comes with one that
// was replaced before ends its whole family (RFC 9700 §4.14.2), unless the tenant grants
// some leeway ([Settings.RefreshReuseLeewayS]). A client without a secret needs the key that
// it had when it got the token (RFC 9449 §5); without that, the token is left as it is.
func (s *Service) refresh(ctx context.Context, tenant Tenant, app Application, req TokenRequest) (TokenResponse, error) {
	r, err := s.selectRefreshToken(ctx, tenant, req.RefreshToken)
	switch {
	case err != nil:
		return TokenResponse{}, err
	case r.clientID != app.ClientID || r.key != "" && r.key != req.key && !app.Type.Confidential():
		return TokenResponse{}, invalidGrant
	}
	hash := tokenHash(req.RefreshToken)
	if r.rotated {
		if err := s.repeated(ctx, tenant, r.grant.id, hash); err != nil {
			return TokenResponse{}, err
		}
	}
	if !moment(s.clock).Before(r.expiresAt) {
		return TokenResponse{}, invalidGrant
	}
	g := r.grant
	narrower, err := parseScopes(req.Scope)
	if err != nil {
		return TokenResponse{}, err
	}
	as := issuance{req: req, scopes: narrower, predecessor: hash}
	if !r.rotated {
		as.uses = func(b *sqldb.Batch) {
			now := moment(s.clock).UnixMicro()
			useOnce(b, `UPDATE refresh_tokens SET rotated_at = $3 WHERE tenant_id = $1 AND hash = $2 AND rotated_at = 0`, tenant.ID, hash, now)
			if r.predecessor != "" { // of tokens that were issued for the same one only the first used goes on
				b.Queue(`UPDATE refresh_tokens SET rotated_at = $3 WHERE tenant_id = $1 AND predecessor = $2 AND rotated_at = 0`, []any{tenant.ID, r.predecessor, now}, nil)
			}
		}
	}
	issued, err := s.issue(ctx, tenant, app, g, as)
	if errors.Is(err, errReused) { // while this request was on its way
		if err := s.repeated(ctx, tenant, g.id, hash); err != nil {
			return TokenResponse{}, err
		}
		as.uses = nil
		issued, err = s.issue(ctx, tenant, app, g, as)
	}
	return issued, err
}

// issuance is how the tokens of a grant are issued.
type issuance struct {
	req    TokenRequest
	scopes []string // asked for; empty: all that was granted
	first  bool     // the user has just signed in
	// uses queues, by [useOnce], that what the tokens are issued for is used up; nil: it was.
	uses        func(*sqldb.Batch)
	predecessor string // hash of the refresh token that they are issued for; empty: for none
}

// errReused: somebody else has just used up the same.
var errReused = errors.New("the code or token was used concurrently")

// useOnce queues an update of one row that nobody else may have made before: else the
// transaction fails with errReused.
func useOnce(b *sqldb.Batch, update string, args ...any) {
	b.Queue(update+` RETURNING 1`, args, func(rows *sqldb.Rows) error {
		if rows.Next() || rows.Err() != nil {
			return rows.Err()
		}
		return errReused
	})
}

// issue issues the tokens of a grant, in the transaction in which what they are issued for
// is used up. It fails with errReused if it was before.
func (s *Service) issue(ctx context.Context, tenant Tenant, app Application, g grant, as issuance) (r TokenResponse, err error) {
	now := moment(s.clock)
	person, err := s.holder(ctx, tenant, g, as.first)
	if err != nil {
		return r, err
	}
	carries, err := s.entitled(ctx, tenant, entitling{app: app, person: &person, scopes: g.scopes, brings: true})
	if err != nil {
		return r, err
	}
	if len(as.scopes) > 0 {
		for _, scope := range as.scopes {
			if !slices.Contains(g.scopes, scope) && !slices.Contains(carries.scopes, scope) {
				return r, &Error{InvalidScope, "scope exceeds what was granted"}
			}
		}
		carries = carries.narrowed(as.scopes)
	}
	scopes := carries.scopes
	asked := as.req.Audience
	switch {
	case g.audience == "":
	case len(asked) == 0:
		asked = []string{g.audience}
	case !slices.Equal(asked, []string{g.audience}): // RFC 8707 §2.2
		return r, &Error{InvalidTarget, "the authorization was for another audience"}
	}
	aud, err := tokenAudience(tenant, app, asked, scopes)
	if err != nil {
		return r, err
	}
	if err := s.admit(ctx, as.req.Credentials, person.ID); err != nil {
		return r, err
	}
	if slices.Contains(scopes, "openid") && !slices.Contains(aud, tenant.BaseURL) {
		aud = append(aud, tenant.BaseURL) // for /oauth2/userinfo
	}
	c := claims{
		Subject: person.ID, Audience: aud, SessionID: g.auth.SessionID, GrantID: g.id,
		AuthTime: g.auth.AuthTime.Unix(), ACR: g.auth.acr(), AMR: g.auth.Methods,
		Confirmation: confirmation{as.req.key},
	}
	if g.offline() {
		c.SessionID = "" // it does not end with the session
	}
	r = TokenResponse{TokenType: c.Confirmation.tokenType(), ExpiresIn: app.AccessTokenTTL, Scope: carries.String(), RefreshToken: newToken(refreshTokenPrefix)}
	if r.AccessToken, err = s.mint(ctx, tenant, app, carries, &c); err != nil {
		return r, err
	}
	if slices.Contains(scopes, "openid") {
		if r.IDToken, err = s.idToken(ctx, tenant, app, g, person, ScopeSet(c.Scope), r.AccessToken, as.first, as.req.key); err != nil {
			return r, err
		}
	}
	until := now.Add(app.RefreshTokenTTL)
	if g.expiresAt.Before(until) {
		until = g.expiresAt
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		if as.uses != nil {
			as.uses(&b)
		}
		b.Queue(`
			INSERT INTO refresh_tokens (tenant_id, hash, grant_id, client_id, dpop_jkt, predecessor, created_at, expires_at, rotated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)`,
			[]any{tenant.ID, tokenHash(r.RefreshToken), g.id, app.ClientID, as.req.key, as.predecessor, now.UnixMicro(), until.UnixMicro()}, nil)
		return tx.Send(ctx, &b)
	})
	if err == nil {
		err = s.used(ctx, app)
	}
	if err != nil {
		return TokenResponse{}, fmt.Errorf("issue tokens: %w", err)
	}
	return r, nil
}

// holder is the user of a grant that is still good: for tokens that a new code is
// exchanged for, only while the user is signed in.
func (s *Service) holder(ctx context.Context, tenant Tenant, g grant, first bool) (Person, error) {
	if !g.revokedAt.IsZero() || !moment(s.clock).Before(g.expiresAt) {
		return Person{}, invalidGrant
	}
	if first || !g.offline() {
		live, err := s.people.SessionLive(ctx, tenant.ID, g.auth.SessionID)
		if err != nil {
			return Person{}, err
		}
		if !live {
			return Person{}, invalidGrant
		}
	}
	person, err := s.people.Person(ctx, tenant.ID, g.auth.UserID)
	if errors.Is(err, ErrPersonGone) || err == nil && g.offline() && g.createdAt.Before(person.ValidFrom) {
		return Person{}, invalidGrant
	}
	return person, err
}

// refreshTokenPrefix tells a refresh token from an access token.
const refreshTokenPrefix = "rt_"

// refreshToken is what is kept of one.
type refreshToken struct {
	grant                grant
	clientID             string
	key                  string // thumbprint of the one that was proved when it was issued; empty: none
	predecessor          string // hash of the token that it was issued for; empty: none
	rotated              bool
	createdAt, expiresAt time.Time
}

// selectRefreshToken finds a refresh token, good or not, and what it is of. It fails with invalidGrant.
func (s *Service) selectRefreshToken(ctx context.Context, tenant Tenant, token string) (r refreshToken, err error) {
	var created, expires, rotated int64
	r.grant, err = grantRow(s.db.QueryRow(ctx, `
		SELECT r.client_id, r.dpop_jkt, r.predecessor, r.created_at, r.expires_at, r.rotated_at, `+grantColumns+`
		FROM refresh_tokens r JOIN grants g ON g.tenant_id = r.tenant_id AND g.id = r.grant_id WHERE r.tenant_id = $1 AND r.hash = $2`, tenant.ID, tokenHash(token)),
		tenant, &r.clientID, &r.key, &r.predecessor, &created, &expires, &rotated)
	if err != nil {
		return r, err
	}
	r.createdAt, r.expiresAt, r.rotated = instant(created), instant(expires), rotated != 0
	return r, nil
}

// repeated lets a refresh token that was replaced lead to another one, beside the first: a
// moment later, while no successor was used, it may be that the client did not get the
// answer. Else it ends the family, and fails with invalidGrant.
func (s *Service) repeated(ctx context.Context, tenant Tenant, grantID, hash string) error {
	settings, err := selectSettings(ctx, s.db, tenant.ID)
	if err != nil {
		return err
	}
	var rotated, used int64 // rotated is 0 of one without successors
	if settings.RefreshReuseLeewayS > 0 {
		err = s.db.QueryRow(ctx, `
			SELECT r.rotated_at, MAX(s.rotated_at)
			FROM refresh_tokens r JOIN refresh_tokens s ON s.tenant_id = r.tenant_id AND s.predecessor = r.hash AND s.predecessor <> ''
			WHERE r.tenant_id = $1 AND r.hash = $2 GROUP BY r.rotated_at`, tenant.ID, hash).Scan(&rotated, &used)
		if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
			return fmt.Errorf("look for successors of refresh token: %w", err)
		}
	}
	late := moment(s.clock).Sub(instant(rotated)) > time.Duration(settings.RefreshReuseLeewayS)*time.Second
	if late || used != 0 {
		return s.reused(ctx, tenant, grantID, refreshTokenReused)
	}
	return nil
}

func (a Authentication) acr() string {
	if a.SecondFactor.IsZero() {
		return AAL1
	}
	return AAL2
}

// grantColumns are those of a grant g; grantRow reads them.
const grantColumns = `g.id, g.client_id, g.user_id, g.session_id, g.scope, g.audience, g.nonce, g.methods, g.auth_time, g.second_factor_at,
	g.created_at, g.expires_at, g.revoked_at`

// grantRow reads a grant that was selected with more columns before its own. It fails with
// invalidGrant if there is none.
func grantRow(row *sqldb.Row, tenant Tenant, more ...any) (g grant, err error) {
	g = grant{tenantID: tenant.ID}
	var scope, methods string
	var auth, second, created, expires, revoked int64
	err = row.Scan(append(more, &g.id, &g.clientID, &g.auth.UserID, &g.auth.SessionID, &scope, &g.audience, &g.nonce, &methods, &auth, &second, &created, &expires, &revoked)...)
	if errors.Is(err, sqldb.ErrNoRows) {
		return g, invalidGrant
	}
	if err != nil {
		return g, fmt.Errorf("read grant: %w", err)
	}
	g.scopes, g.auth.Methods = strings.Fields(scope), strings.Fields(methods)
	g.auth.AuthTime, g.auth.SecondFactor, g.createdAt, g.expiresAt, g.revokedAt = instant(auth), instant(second), instant(created), instant(expires), instant(revoked)
	return g, nil
}

// selectGrant finds a grant. It fails with invalidGrant.
func selectGrant(ctx context.Context, from querier, tenant Tenant, grantID string) (grant, error) {
	return grantRow(from.QueryRow(ctx, `SELECT `+grantColumns+` FROM grants g WHERE g.tenant_id = $1 AND g.id = $2`, tenant.ID, grantID), tenant)
}

// reused revokes a grant of which a code or token came back that was used before, by
// whoever has it: one of the two is not who it was meant for.
func (s *Service) reused(ctx context.Context, tenant Tenant, grantID string, reused grantEvent) error {
	if err := s.revokeGrant(ctx, tenant, grantID, reused, tokenFamilyRevoked); err != nil {
		return err
	}
	return invalidGrant
}

// revokeGrant takes back what a user has let an application do, with all its tokens, and
// records the events unless that was done before.
func (s *Service) revokeGrant(ctx context.Context, tenant Tenant, grantID string, happened ...grantEvent) error {
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE grants SET revoked_at = $3 WHERE tenant_id = $1 AND id = $2 AND revoked_at = 0`, tenant.ID, grantID, moment(s.clock).UnixMicro())
		if err != nil || n == 0 {
			return err
		}
		g, err := selectGrant(ctx, tx, tenant, grantID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		for _, event := range happened {
			eventlog.Append(&b, tenant.ID, event(asClient(ctx, g.clientID), g))
		}
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("revoke grant: %w", err)
	}
	return nil
}

// idToken tells an application who has signed in (OIDC Core §2). It names the key that what
// comes with it is bound to, since it can be exchanged for an access token.
func (s *Service) idToken(ctx context.Context, tenant Tenant, app Application, g grant, person Person, scopes Scopes, accessToken string, first bool, key string) (string, error) {
	now := s.clock()
	c := person.claims(scopes)
	c["iss"], c["aud"], c["azp"] = tenant.BaseURL, app.ClientID, app.ClientID
	c["iat"], c["exp"], c["auth_time"] = now.Unix(), now.Add(app.AccessTokenTTL).Unix(), g.auth.AuthTime.Unix()
	c["acr"], c["amr"], c["sid"], c["gid"] = g.auth.acr(), g.auth.Methods, g.auth.SessionID, g.id
	sum := sha256.Sum256([]byte(accessToken)) // the hash of every algorithm
	c["at_hash"] = base64.RawURLEncoding.EncodeToString(sum[:16])
	if first && g.nonce != "" {
		c["nonce"] = g.nonce
	}
	if key != "" {
		c["cnf"] = confirmation{key}
	}
	return s.sign(ctx, tenant, app.IDTokenAlg, idTokenType, c)
}

// idTokenType is the typ header of ID tokens.
const idTokenType = "JWT"

// idTokenClaims are what is read from an ID token.
type idTokenClaims struct {
	Issuer    string `json:"iss"`
	Subject   string `json:"sub"`
	Audience  string `json:"aud"` // the application
	Expires   int64  `json:"exp"`
	GrantID   string `json:"gid"`
	SessionID string `json:"sid"`

	Confirmation confirmation `json:"cnf"`
}

// readIDToken reads an ID token that has not expired. It fails with [*TokenError].
func (s *Service) readIDToken(ctx context.Context, tenant Tenant, token string) (c idTokenClaims, err error) {
	payload, _, err := s.openToken(ctx, tenant, token, strings.ToLower(idTokenType))
	switch {
	case err != nil:
		return c, err
	case json.Unmarshal(payload, &c) != nil || c.Audience == "" || c.GrantID == "":
		return c, &TokenError{Malformed}
	case c.Issuer != tenant.BaseURL:
		return c, &TokenError{WrongIssuer}
	case !s.clock().Before(seconds(c.Expires)):
		return c, &TokenError{Expired}
	}
	return c, nil
}

// tidy deletes what is over: an hour later, so that who comes too late is told so, but for
// proofs and assertions, which are many.
func (s *Service) tidy(ctx context.Context) error {
	for table, later := range map[string]time.Duration{
		"flows": time.Hour, "codes": time.Hour, "device_codes": time.Hour, "refresh_tokens": time.Hour, "grants": time.Hour, "revocations": time.Hour, "dpop_proofs": 0,
		"client_assertions": time.Minute, // for clocks that are behind
	} {
		if _, err := s.db.Exec(ctx, `DELETE FROM `+table+` WHERE expires_at < $1`, moment(s.clock).Add(-later).UnixMicro()); err != nil {
			return fmt.Errorf("delete %s that are over: %w", table, err)
		}
	}
	if _, err := s.db.Exec(ctx, `DELETE FROM signing_keys WHERE state = 'removed' AND removed_at < $1`, moment(s.clock).Add(-recordedFor).UnixMicro()); err != nil {
		return fmt.Errorf("delete signing keys that are over: %w", err)
	}
	return nil
}

// upkeepEvery is how often what time has brought about is looked for.
const upkeepEvery = time.Minute

// Run deletes what is over and rotates signing keys, from time to time, until ctx ends. Any
// number of processes may do so.
func (s *Service) Run(ctx context.Context, log *slog.Logger) {
	jobs.Loop{Name: "look after tokens and keys", Every: upkeepEvery, Logger: log}.Run(ctx, jobs.Once(func(ctx context.Context) error {
		return errors.Join(s.tidy(ctx), s.rotate(ctx))
	}))
}
