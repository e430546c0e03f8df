package token

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/lestrrat-go/jwx/v3/jws"

	"stonetown/internal/eventlog"
	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
	"stonetown/oauth/revocation"
	"stonetown/oauth/scope"
	"stonetown/schema"
)

// Principal is the user or application for which an access token speaks. It is shared and must
// not be changed.
type Principal struct {
	Subject   string
	ClientID  string
	Scopes    scope.Set
	TokenID   string
	KeyID     string // kid of the signing key
	ExpiresAt time.Time

	// For users who have signed in. SessionID is empty for others.
	SessionID string
	GrantID   string // of the application's access to the user; empty: none
	AuthTime  time.Time
	// SecondFactor is the time at which a second factor was proved; zero: never.
	SecondFactor time.Time
	// Actor acts for the subject (RFC 8693); zero: there is none.
	Actor eventlog.Actor
	// Thumbprint is that of the key to which the token is bound (RFC 9449); empty: none.
	Thumbprint string
	// Certificate is the thumbprint of the certificate to which the token is bound (RFC 8705); empty:
	// none.
	Certificate string
	// DPoPNonce demands a nonce in proofs of the key (RFC 9449 §9).
	DPoPNonce bool
	// MustEnrol restricts the user to adding a second factor.
	MustEnrol bool
	// Opened restricts the user to the console: the session was opened from the control plane.
	Opened bool

	// Ancestors are the tokens from which the token descends; the end of each one ends it.
	Ancestors []Ancestor
}

const (
	// maxBearer bounds the size of a token in bytes: 16 KiB of scopes,
	// authorization details and configured claims in base64url, and the rest.
	maxBearer = 48 << 10

	// clockSkew is the tolerance for the clock of the process that issued a token. It applies to
	// nbf only.
	clockSkew = 10 * time.Second
)

// Verify verifies an access token for the product's own API on the tenant's host (RFC 9068
// §4). Refusals are [*Error], also of a token that is bound, see
// [Service.VerifyBound] and [Service.VerifyCertified]; any other error is the server's.
func (s *Service) Verify(ctx context.Context, tenant protocol.Tenant, bearer string) (*Principal, error) {
	p, err := s.verify(ctx, tenant, bearer)
	switch {
	case err != nil:
		return nil, err
	case p.Thumbprint != "":
		return nil, &Error{Bound}
	case p.Certificate != "":
		return nil, &Error{WrongCertificate}
	}
	return p, nil
}

// verify verifies a token whether or not it is bound to a key.
func (s *Service) verify(ctx context.Context, tenant protocol.Tenant, bearer string) (*Principal, error) {
	if len(bearer) > maxBearer { // not hashed, because that takes time
		return nil, &Error{Malformed}
	}
	key := verifiedKey{tenant, sha256.Sum256([]byte(bearer))}
	now := s.clock()
	p, ok := s.verified.get(key)
	if !ok {
		c, err := s.Read(ctx, tenant, bearer, now)
		if err == nil && !slices.Contains(c.Audience, tenant.BaseURL) {
			err = &Error{WrongAudience}
		}
		if err != nil {
			return nil, err
		}
		p = c.principal()
		s.verified.add(key, p)
	}
	if !now.Before(p.ExpiresAt) {
		return nil, &Error{Expired}
	}
	if err := s.live(ctx, tenant, p); err != nil {
		return nil, err
	}
	return p, nil
}

// live refuses a token that was revoked since it was issued: alone, with its application, its
// signing key, its grant or an ancestor. It does not check the session of the token itself,
// see [Service.Alive].
func (s *Service) live(ctx context.Context, tenant protocol.Tenant, p *Principal) error {
	var most [8]revocation.Item
	ends := append(most[:0],
		revocation.Item{TenantID: tenant.ID, Kind: revocation.Token, ID: p.TokenID}, revocation.Item{TenantID: tenant.ID, Kind: revocation.Client, ID: p.ClientID}, revocation.Item{TenantID: tenant.ID, Kind: revocation.Key, ID: p.KeyID})
	for _, a := range p.Ancestors {
		ends = append(ends, revocation.Item{TenantID: tenant.ID, Kind: revocation.Token, ID: a.TokenID}, revocation.Item{TenantID: tenant.ID, Kind: revocation.Client, ID: a.ClientID})
	}
	revoked, err := s.revoked.Has(ctx, ends...)
	if err == nil && revoked {
		err = &Error{Revoked}
	}
	if err == nil && p.GrantID != "" {
		err = s.checkGrant(ctx, tenant, p.GrantID, p.SessionID, p.Subject)
	}
	if err == nil {
		err = s.checkAncestors(ctx, tenant, p.Ancestors)
	}
	return err
}

// Alive is live, and refuses a token whose session has ended.
func (s *Service) Alive(ctx context.Context, tenant protocol.Tenant, c Claims) error {
	if err := s.live(ctx, tenant, c.principal()); err != nil || c.SessionID == "" {
		return err
	}
	return s.checkSession(ctx, tenant, c.SessionID)
}

// Read returns the claims of an access token of the tenant, for any audience. It fails with
// [*Error].
func (s *Service) Read(ctx context.Context, tenant protocol.Tenant, bearer string, now time.Time) (c Claims, err error) {
	payload, kid, err := s.openToken(ctx, tenant, bearer, accessTokenType, "application/"+accessTokenType)
	if err == nil {
		c.keyID, err = kid, c.read(tenant, payload, now)
	}
	return c, err
}

// openToken returns the payload of a JWT that the tenant signed, and the id of the key. The
// JWT must have one of some types. It fails with [*Error].
func (s *Service) openToken(ctx context.Context, tenant protocol.Tenant, bearer string, types ...string) (payload []byte, kid string, err error) {
	if len(bearer) > maxBearer {
		return nil, "", &Error{Malformed}
	}
	message, err := jws.ParseString(bearer, jws.WithCompact())
	if err != nil || len(message.Signatures()) != 1 {
		return nil, "", &Error{Malformed}
	}
	header := message.Signatures()[0].ProtectedHeaders()

	typ, _ := header.Type()
	if !slices.Contains(types, strings.ToLower(typ)) {
		return nil, "", &Error{WrongType}
	}
	alg, _ := header.Algorithm()
	if !keys.Alg(alg.String()).Valid() {
		return nil, "", &Error{UnsupportedAlg}
	}
	if header.Has(jws.CriticalKey) { // no extension is supported (RFC 7515 §4.1.11)
		return nil, "", &Error{Malformed}
	}
	kid, _ = header.KeyID()
	key, ok, err := s.keys.VerificationKey(ctx, tenant.ID, kid)
	if err != nil {
		return nil, "", err
	}
	if !ok || key.Alg != keys.Alg(alg.String()) {
		return nil, "", &Error{BadSignature}
	}
	payload, err = jws.Verify([]byte(bearer), jws.WithKey(key.Alg.JWA(), key.Public), jws.WithCompact())
	if err != nil {
		return nil, "", &Error{BadSignature}
	}
	return payload, kid, nil
}

// read reads the claims of a token whose signature is valid, and validates them.
func (c *Claims) read(tenant protocol.Tenant, payload []byte, now time.Time) error {
	if json.Unmarshal(payload, c) != nil || c.Subject == "" || c.ClientID == "" || c.TokenID == "" || c.Expires == 0 {
		return &Error{Malformed}
	}
	switch {
	case c.Issuer != tenant.BaseURL:
		return &Error{WrongIssuer}
	case c.TenantID != tenant.ID:
		return &Error{WrongTenant}
	case now.Add(clockSkew).Before(Seconds(c.NotBefore)):
		return &Error{NotYetValid}
	case !now.Before(Seconds(c.Expires)):
		return &Error{Expired}
	case Seconds(c.Expires).After(now.Add(protocol.MaxAccessTokenTTL + clockSkew)):
		// Only a stolen key issues such a token. It must not be cached for longer than the
		// removal of the key is stored.
		return &Error{Malformed}
	}
	return nil
}

// principal returns the principal of a token.
func (c Claims) principal() *Principal {
	p := &Principal{
		Subject: c.Subject, ClientID: c.ClientID, Scopes: scope.SetOf(c.Scope),
		TokenID: c.TokenID, KeyID: c.keyID, ExpiresAt: Seconds(c.Expires), SessionID: c.SessionID, GrantID: c.GrantID, Ancestors: c.Ancestors,
		Thumbprint: c.Confirmation.Thumbprint, Certificate: c.Confirmation.Certificate, DPoPNonce: c.DPoPNonce,
	}
	if c.Act != nil {
		who := SubjectOf(c.Act.Subject)
		p.Actor = eventlog.Actor{Type: who.Type, ID: who.ID}
	}
	if c.AuthTime != 0 {
		p.AuthTime = Seconds(c.AuthTime)
	}
	if c.ACR == protocol.AAL2 {
		p.SecondFactor = p.AuthTime
	}
	return p
}

// IsApplication reports whether the token speaks for an application.
func (p *Principal) IsApplication() bool { return SubjectOf(p.Subject).Type == schema.ApplicationType }

// Acting reports whether an actor acts for the subject.
func (p *Principal) Acting() bool { return p.Actor.ID != "" }

// verifiedTokens caches verified tokens, in shards so that cores do not wait for one lock.
type verifiedTokens struct {
	shards [verifiedShards]*lru.Cache[verifiedKey, *Principal]
}

// verifiedKey has everything on which the result depends except time: the tenant, because a
// token is valid for one only, and the whole hash, because an attacker could find two tokens
// with the same part of it.
type verifiedKey struct {
	tenant protocol.Tenant
	token  [sha256.Size]byte
}

const (
	verifiedShards    = 16
	verifiedShardSize = 2048
)

func newVerifiedTokens() *verifiedTokens {
	v := new(verifiedTokens)
	for i := range v.shards {
		shard, err := lru.New[verifiedKey, *Principal](verifiedShardSize)
		if err != nil {
			panic(err) // the size is positive
		}
		v.shards[i] = shard
	}
	return v
}

func (v *verifiedTokens) shard(k verifiedKey) *lru.Cache[verifiedKey, *Principal] {
	return v.shards[k.token[0]%verifiedShards]
}

func (v *verifiedTokens) get(k verifiedKey) (*Principal, bool) { return v.shard(k).Get(k) }

func (v *verifiedTokens) add(k verifiedKey, p *Principal) { v.shard(k).Add(k, p) }
