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

// Principal is who an access token speaks for. It is shared: do not change it.
type Principal struct {
	Subject   string
	ClientID  string
	Scopes    scope.Set
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
func (s *Service) Verify(ctx context.Context, tenant protocol.Tenant, bearer string) (*Principal, error) {
	p, err := s.verify(ctx, tenant, bearer)
	if err == nil && p.Thumbprint != "" {
		return nil, &Error{Bound}
	}
	return p, err
}

// verify does so whether or not the token is bound to a key.
func (s *Service) verify(ctx context.Context, tenant protocol.Tenant, bearer string) (*Principal, error) {
	if len(bearer) > maxBearer { // which would cost to hash
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

// live refuses a token that was revoked since it was issued: alone, with its application,
// with the key that has signed it, with the grant of its user, or with an ancestor. The
// token's own session is not looked at ([Service.alive]).
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

// Alive refuses, besides what live refuses, a token whose session has ended.
func (s *Service) Alive(ctx context.Context, tenant protocol.Tenant, c Claims) error {
	if err := s.live(ctx, tenant, c.principal()); err != nil || c.SessionID == "" {
		return err
	}
	return s.checkSession(ctx, tenant, c.SessionID)
}

// Read returns the claims of an access token of the tenant, whatever it is for. It
// fails with [*TokenError].
func (s *Service) Read(ctx context.Context, tenant protocol.Tenant, bearer string, now time.Time) (c Claims, err error) {
	payload, kid, err := s.openToken(ctx, tenant, bearer, accessTokenType, "application/"+accessTokenType)
	if err == nil {
		c.keyID, err = kid, c.read(tenant, payload, now)
	}
	return c, err
}

// openToken returns what a JWT of one of some types says that the tenant has signed, and
// with which key. It fails with [*TokenError].
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
	if header.Has(jws.CriticalKey) { // nothing critical is understood here (RFC 7515 §4.1.11)
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

// read takes over the claims of a token whose signature is right, and judges them.
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
		// Nobody issues such tokens but who has got at a key. What was accepted is remembered
		// until it expires, which must not be after the key's removal is forgotten.
		return &Error{Malformed}
	}
	return nil
}

// principal is whom a token speaks for.
func (c Claims) principal() *Principal {
	p := &Principal{
		Subject: c.Subject, ClientID: c.ClientID, Scopes: scope.SetOf(c.Scope),
		TokenID: c.TokenID, KeyID: c.keyID, ExpiresAt: Seconds(c.Expires), SessionID: c.SessionID, GrantID: c.GrantID, Ancestors: c.Ancestors,
		Thumbprint: c.Confirmation.Thumbprint,
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

// IsApplication reports whether the token speaks for an application, and not for a user.
func (p *Principal) IsApplication() bool { return SubjectOf(p.Subject).Type == schema.ApplicationType }

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
