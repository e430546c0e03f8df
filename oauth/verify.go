package oauth

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
	"stonetown/schema"
)

// Principal is who an access token speaks for. It is shared: do not change it.
type Principal struct {
	Subject   string
	ClientID  string
	Scopes    Scopes
	TokenID   string
	KeyID     string // kid of the tenant's key that has signed it
	ExpiresAt time.Time

	// Of users, who have signed in: SessionID is empty for others.
	SessionID string
	GrantID   string // what the user has let an application do, if it is that
	AuthTime  time.Time
	// SecondFactor is when a second factor was proved; zero: it was not.
	SecondFactor time.Time
	// Actor is who acts in the subject's place (RFC 8693); zero: nobody does.
	Actor eventlog.Actor
	// Thumbprint is of the key that the token is bound to (RFC 9449); empty: to none.
	Thumbprint string
	// MustEnrol: the user can do nothing but add a second factor.
	MustEnrol bool

	// Ancestors are the tokens that it was exchanged from; each of them ends it.
	Ancestors []Ancestor
}

const (
	// maxBearer bounds what is parsed, in bytes: 16 KiB of scopes in base64url,
	// and the rest.
	maxBearer = 32 << 10

	// clockSkew is how far ahead of ours the clock of the node that issued a
	// token may be. It is granted to nbf only: at the other end, late is late.
	clockSkew = 10 * time.Second
)

// Verify checks an access token that was presented to the product's own API on
// the tenant's host (RFC 9068 §4) by whoever has it, and returns whom it speaks for.
// Refusals, one that is bound to a key among them ([Service.VerifyBound]), are
// [*TokenError]; any other error is the server's.
func (s *Service) Verify(ctx context.Context, tenant Tenant, bearer string) (*Principal, error) {
	p, err := s.verify(ctx, tenant, bearer)
	if err == nil && p.Thumbprint != "" {
		return nil, &TokenError{Bound}
	}
	return p, err
}

// verify does so whether or not the token is bound to a key.
func (s *Service) verify(ctx context.Context, tenant Tenant, bearer string) (*Principal, error) {
	if len(bearer) > maxBearer { // which would cost to hash
		return nil, &TokenError{Malformed}
	}
	key := verifiedKey{tenant, sha256.Sum256([]byte(bearer))}
	now := s.clock()
	p, ok := s.verified.get(key)
	if !ok {
		c, err := s.readToken(ctx, tenant, bearer, now)
		if err == nil && !slices.Contains(c.Audience, tenant.BaseURL) {
			err = &TokenError{WrongAudience}
		}
		if err != nil {
			return nil, err
		}
		p = c.principal()
		s.verified.add(key, p)
	}
	if !now.Before(p.ExpiresAt) {
		return nil, &TokenError{Expired}
	}
	if err := s.live(ctx, tenant, p); err != nil {
		return nil, err
	}
	return p, nil
}

// live refuses a token that was revoked since it was issued: alone, with its application,
// with the key that has signed it, with the grant of its user, or with an ancestor. The
// token's own session is not looked at ([Service.alive]).
func (s *Service) live(ctx context.Context, tenant Tenant, p *Principal) error {
	var most [8]revocation
	ends := append(most[:0],
		revocation{tenant.ID, revokedToken, p.TokenID}, revocation{tenant.ID, revokedClient, p.ClientID}, revocation{tenant.ID, revokedKey, p.KeyID})
	for _, a := range p.Ancestors {
		ends = append(ends, revocation{tenant.ID, revokedToken, a.TokenID}, revocation{tenant.ID, revokedClient, a.ClientID})
	}
	revoked, err := s.revoked.has(ctx, ends...)
	if err == nil && revoked {
		err = &TokenError{Revoked}
	}
	if err == nil && p.GrantID != "" {
		err = s.checkGrant(ctx, tenant, p.GrantID, p.SessionID, p.Subject)
	}
	if err == nil {
		err = s.checkAncestors(ctx, tenant, p.Ancestors)
	}
	return err
}

// alive refuses, besides what live refuses, a token whose session has ended.
func (s *Service) alive(ctx context.Context, tenant Tenant, c claims) error {
	if err := s.live(ctx, tenant, c.principal()); err != nil || c.SessionID == "" {
		return err
	}
	return s.checkSession(ctx, tenant, c.SessionID)
}

// readToken returns the claims of an access token of the tenant, whatever it is for. It
// fails with [*TokenError].
func (s *Service) readToken(ctx context.Context, tenant Tenant, bearer string, now time.Time) (c claims, err error) {
	payload, kid, err := s.openToken(ctx, tenant, bearer, accessTokenType, "application/"+accessTokenType)
	if err == nil {
		c.keyID, err = kid, c.read(tenant, payload, now)
	}
	return c, err
}

// openToken returns what a JWT of one of some types says that the tenant has signed, and
// with which key. It fails with [*TokenError].
func (s *Service) openToken(ctx context.Context, tenant Tenant, bearer string, types ...string) (payload []byte, kid string, err error) {
	if len(bearer) > maxBearer {
		return nil, "", &TokenError{Malformed}
	}
	message, err := jws.ParseString(bearer, jws.WithCompact())
	if err != nil || len(message.Signatures()) != 1 {
		return nil, "", &TokenError{Malformed}
	}
	header := message.Signatures()[0].ProtectedHeaders()

	typ, _ := header.Type()
	if !slices.Contains(types, strings.ToLower(typ)) {
		return nil, "", &TokenError{WrongType}
	}
	alg, _ := header.Algorithm()
	if !Alg(alg.String()).valid() {
		return nil, "", &TokenError{UnsupportedAlg}
	}
	if header.Has(jws.CriticalKey) { // nothing critical is understood here (RFC 7515 §4.1.11)
		return nil, "", &TokenError{Malformed}
	}
	kid, _ = header.KeyID()
	key, ok, err := s.verificationKey(ctx, tenant.ID, kid)
	if err != nil {
		return nil, "", err
	}
	if !ok || key.alg != Alg(alg.String()) {
		return nil, "", &TokenError{BadSignature}
	}
	payload, err = jws.Verify([]byte(bearer), jws.WithKey(key.alg.jwa(), key.public), jws.WithCompact())
	if err != nil {
		return nil, "", &TokenError{BadSignature}
	}
	return payload, kid, nil
}

// read takes over the claims of a token whose signature is right, and judges them.
func (c *claims) read(tenant Tenant, payload []byte, now time.Time) error {
	if json.Unmarshal(payload, c) != nil || c.Subject == "" || c.ClientID == "" || c.TokenID == "" || c.Expires == 0 {
		return &TokenError{Malformed}
	}
	switch {
	case c.Issuer != tenant.BaseURL:
		return &TokenError{WrongIssuer}
	case c.TenantID != tenant.ID:
		return &TokenError{WrongTenant}
	case now.Add(clockSkew).Before(seconds(c.NotBefore)):
		return &TokenError{NotYetValid}
	case !now.Before(seconds(c.Expires)):
		return &TokenError{Expired}
	case seconds(c.Expires).After(now.Add(maxAccessTokenTTL + clockSkew)):
		// Nobody issues such tokens but who has got at a key. What was accepted is remembered
		// until it expires, which must not be after the key's removal is forgotten.
		return &TokenError{Malformed}
	}
	return nil
}

// principal is whom a token speaks for.
func (c claims) principal() *Principal {
	p := &Principal{
		Subject: c.Subject, ClientID: c.ClientID, Scopes: ScopeSet(c.Scope),
		TokenID: c.TokenID, KeyID: c.keyID, ExpiresAt: seconds(c.Expires), SessionID: c.SessionID, GrantID: c.GrantID, Ancestors: c.Ancestors,
		Thumbprint: c.Confirmation.Thumbprint,
	}
	if c.Act != nil {
		who := subjectOf(c.Act.Subject)
		p.Actor = eventlog.Actor{Type: who.Type, ID: who.ID}
	}
	if c.AuthTime != 0 {
		p.AuthTime = seconds(c.AuthTime)
	}
	if c.ACR == AAL2 {
		p.SecondFactor = p.AuthTime
	}
	return p
}

// IsApplication reports whether the token speaks for an application, and not for a user.
func (p *Principal) IsApplication() bool { return subjectOf(p.Subject).Type == schema.ApplicationType }

// Acting reports whether somebody else acts in the subject's place.
func (p *Principal) Acting() bool { return p.Actor.ID != "" }

// verifiedTokens remembers what has been verified, in shards so that cores do
// not wait for one lock.
type verifiedTokens struct {
	shards [verifiedShards]*lru.Cache[verifiedKey, *Principal]
}

// verifiedKey holds everything that the answer depends on but time: the tenant,
// because a token is good on one only, and the whole hash, because of a part an
// attacker could find two tokens for.
type verifiedKey struct {
	tenant Tenant
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
			panic(err) // only of a size that is not positive
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
