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
)

// Principal is who a bearer token speaks for. It is shared: do not change it.
type Principal struct {
	Subject   string
	ClientID  string
	Scopes    Scopes
	TokenID   string
	ExpiresAt time.Time

	// Of users, who have signed in: SessionID is empty for others.
	SessionID string
	GrantID   string // what the user has let an application do, if it is that
	AuthTime  time.Time
	// SecondFactor is when a second factor was proved; zero: it was not.
	SecondFactor time.Time
	// MustEnrol: the user can do nothing but add a second factor.
	MustEnrol bool
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
// the tenant's host (RFC 9068 §4) and returns whom it speaks for. Refusals are
// [*TokenError]; any other error is the server's.
func (s *Service) Verify(ctx context.Context, tenant Tenant, bearer string) (*Principal, error) {
	if len(bearer) > maxBearer {
		return nil, &TokenError{Malformed}
	}
	key := verifiedKey{tenant, sha256.Sum256([]byte(bearer))}
	now := s.clock()
	p, ok := s.verified.get(key)
	if !ok {
		var err error
		if p, err = s.verify(ctx, tenant, bearer, now); err != nil {
			return nil, err
		}
		s.verified.add(key, p)
	}
	if !now.Before(p.ExpiresAt) {
		return nil, &TokenError{Expired}
	}
	if p.GrantID != "" {
		if err := s.checkGrant(ctx, tenant, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (s *Service) verify(ctx context.Context, tenant Tenant, bearer string, now time.Time) (*Principal, error) {
	message, err := jws.ParseString(bearer, jws.WithCompact())
	if err != nil || len(message.Signatures()) != 1 {
		return nil, &TokenError{Malformed}
	}
	header := message.Signatures()[0].ProtectedHeaders()

	typ, _ := header.Type()
	if typ = strings.ToLower(typ); typ != accessTokenType && typ != "application/"+accessTokenType {
		return nil, &TokenError{WrongType}
	}
	alg, _ := header.Algorithm()
	if !Alg(alg.String()).valid() {
		return nil, &TokenError{UnsupportedAlg}
	}
	if header.Has(jws.CriticalKey) { // nothing critical is understood here (RFC 7515 §4.1.11)
		return nil, &TokenError{Malformed}
	}
	ring, err := s.keys.ring(ctx, tenant.ID, false)
	if err != nil {
		return nil, err
	}
	kid, _ := header.KeyID()
	key, ok := ring.verify[kid]
	if !ok || key.alg != Alg(alg.String()) {
		return nil, &TokenError{BadSignature}
	}
	payload, err := jws.Verify([]byte(bearer), jws.WithKey(key.alg.jwa(), key.public), jws.WithCompact())
	if err != nil {
		return nil, &TokenError{BadSignature}
	}
	return principal(tenant, payload, now)
}

// principal judges the claims of a token whose signature is right.
func principal(tenant Tenant, payload []byte, now time.Time) (*Principal, error) {
	var c claims
	if json.Unmarshal(payload, &c) != nil || c.Subject == "" || c.ClientID == "" || c.TokenID == "" || c.Expires == 0 {
		return nil, &TokenError{Malformed}
	}
	switch {
	case c.Issuer != tenant.BaseURL:
		return nil, &TokenError{WrongIssuer}
	case c.TenantID != tenant.ID:
		return nil, &TokenError{WrongTenant}
	case !slices.Contains(c.Audience, tenant.BaseURL):
		return nil, &TokenError{WrongAudience}
	case now.Add(clockSkew).Before(seconds(c.NotBefore)):
		return nil, &TokenError{NotYetValid}
	case !now.Before(seconds(c.Expires)):
		return nil, &TokenError{Expired}
	}
	p := &Principal{
		Subject: c.Subject, ClientID: c.ClientID, Scopes: ScopeSet(c.Scope),
		TokenID: c.TokenID, ExpiresAt: seconds(c.Expires), SessionID: c.SessionID, GrantID: c.GrantID,
	}
	if c.AuthTime != 0 {
		p.AuthTime = seconds(c.AuthTime)
	}
	if c.ACR == AAL2 {
		p.SecondFactor = p.AuthTime
	}
	return p, nil
}

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
