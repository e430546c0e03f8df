// Package keys has the signing keys of a tenant. Every token of a tenant is signed with a key
// of its own, so a token of one tenant means nothing to another.
//
// A tenant has an ES256 key, the default, and a key of each other algorithm that one of its
// applications needs: RS256 and PS256 with RSA keys of 2048 bits, and EdDSA with Ed25519. No two
// algorithms share a key (RFC 8725 §3.1). The id of a key is its RFC 7638 thumbprint. Private keys are sealed under the
// master key of the deployment.
//
// # The first keys
//
// The ES256 key is made when the first token is issued or the key set is first read. An RSA key
// takes up to half a second, so it is made by a job, when an application is stored whose tokens
// are signed with it ([Service.Require]). A signature that is requested earlier waits for it. From
// then on the key rotates as the other one does. Processes that make the first key of an
// algorithm at once agree on one. The others read it at once: what they have in memory ends by an
// item of the feed of revocations that has the name of the algorithm.
//
// # Rotation
//
//	next      published for a day, so that every client has it before it signs
//	active    signs, for 90 days
//	retired   published until the last token that it signed has expired, and an hour longer
//	removed   refused; the private key is deleted
//
// The steps that the keys of a tenant have to take are a function of the keys and the time
// (plan). Any process takes the steps that are due, if the keys have not changed since it
// planned, so no process leads. A process may work with keys that are a minute old: no key
// signs that was published for less than a day, and none is removed that was retired for less.
// The exception is an emergency ([Service.Rotate]): old keys are removed and new ones sign at
// once. Removals go through the feed of revocations, and a process that has a removed key
// reads the keys again.
package keys

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"golang.org/x/sync/singleflight"

	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth/protocol"
	"stonetown/oauth/revocation"
)

// Alg is a signature algorithm of RFC 7518 §3.1 or RFC 8037 §3.1.
type Alg string

// The algorithms of tokens. All others, such as none and the HMAC family, are refused.
const (
	ES256 Alg = "ES256"
	RS256 Alg = "RS256"
	PS256 Alg = "PS256"
	EdDSA Alg = "EdDSA" // with Ed25519
)

// Algs are all algorithms.
var Algs = []Alg{ES256, RS256, PS256, EdDSA}

// Valid reports whether a is one of [Algs].
func (a Alg) Valid() bool { return slices.Contains(Algs, a) }

// JWA returns the algorithm for package jws.
func (a Alg) JWA() jwa.SignatureAlgorithm {
	switch a {
	case RS256:
		return jwa.RS256()
	case PS256:
		return jwa.PS256()
	case EdDSA:
		return jwa.EdDSA()
	}
	return jwa.ES256()
}

// HalfHash returns the left half of the hash of a text by the hash function of the algorithm, in
// base64url: the at_hash of an access token (OIDC Core §3.1.3.6). That of Ed25519 is SHA-512 (RFC
// 8032 §5.1).
func (a Alg) HalfHash(text string) string {
	if a == EdDSA {
		sum := sha512.Sum512([]byte(text))
		return base64.RawURLEncoding.EncodeToString(sum[:sha512.Size/2])
	}
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:sha256.Size/2])
}

// generate returns a new private key for the algorithm.
func (a Alg) generate() (crypto.Signer, error) {
	switch a {
	case RS256, PS256:
		return rsa.GenerateKey(rand.Reader, 2048)
	case EdDSA:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// generate returns a new key of a tenant, sealed.
func generate(sealer *seal.Key, tenantID string, alg Alg, now time.Time) (Key, error) {
	private, err := alg.generate()
	if err != nil {
		return Key{}, err
	}
	public, err := publicJWK(alg, private)
	if err != nil {
		return Key{}, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return Key{}, err
	}
	kid, _ := public.KeyID()
	return Key{KID: kid, Alg: alg, CreatedAt: now, sealed: sealer.Seal(tenantID, kid, pkcs8)}, nil
}

// publicJWK returns the public key as a JWK (RFC 7517 §4), with its RFC 7638 thumbprint as id.
func publicJWK(alg Alg, private crypto.Signer) (jwk.Key, error) {
	public, err := jwk.Import(private.Public())
	if err != nil {
		return nil, err
	}
	return public, errors.Join(
		jwk.AssignKeyID(public), // the default is SHA-256
		public.Set(jwk.AlgorithmKey, alg.JWA()),
		public.Set(jwk.KeyUsageKey, jwk.ForSignature),
	)
}

// open unseals the private key.
func (k Key) open(sealer *seal.Key, tenantID string) (crypto.Signer, error) {
	pkcs8, err := sealer.Open(tenantID, k.KID, k.sealed)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(pkcs8)
	if err != nil {
		return nil, errors.New("not a PKCS #8 key") // the error of the parser may quote the key
	}
	private, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", parsed)
	}
	return private, nil
}

// signingKey is a key that is ready to sign.
type signingKey struct {
	kid     string
	private crypto.Signer
}

// verifyingKey is a key that is ready to verify, for one algorithm.
type verifyingKey struct {
	Alg    Alg
	Public crypto.PublicKey
}

// keyring has the keys of a tenant. It is immutable.
type keyring struct {
	sign    map[Alg]signingKey      // the active keys
	verify  map[string]verifyingKey // the published keys, by kid
	jwks    []byte                  // JSON, public members only
	keys    []revocation.Item       // the revocations that end the validity of this value
	staleAt time.Time
}

func openKeyring(sealer *seal.Key, tenantID string, keys []Key) (*keyring, error) {
	ring := &keyring{sign: make(map[Alg]signingKey), verify: make(map[string]verifyingKey)}
	set := jwk.NewSet()
	for _, key := range keys {
		if key.State == Removed {
			continue
		}
		private, err := key.open(sealer, tenantID)
		if err != nil {
			return nil, fmt.Errorf("signing key %s: %w", key.KID, err)
		}
		public, err := publicJWK(key.Alg, private)
		if err == nil {
			err = set.AddKey(public)
		}
		if err != nil {
			return nil, fmt.Errorf("signing key %s: %w", key.KID, err)
		}
		if key.State == Active {
			ring.sign[key.Alg] = signingKey{key.KID, private}
		}
		// A key that is next here may already be active on another process.
		ring.verify[key.KID] = verifyingKey{key.Alg, private.Public()}
		ring.keys = append(ring.keys, revocation.Item{TenantID: tenantID, Kind: revocation.Key, ID: key.KID})
	}
	for _, alg := range Algs {
		if _, ok := ring.sign[alg]; !ok {
			ring.keys = append(ring.keys, firstOf(tenantID, alg))
		}
	}
	var err error
	ring.jwks, err = json.Marshal(set)
	return ring, err
}

// firstOf is the revocation of keyrings without a key of an algorithm, of which the tenant has one
// now.
func firstOf(tenantID string, alg Alg) revocation.Item {
	return revocation.Item{TenantID: tenantID, Kind: revocation.Key, ID: string(alg)}
}

// Service has the signing keys of all tenants, and keeps those of the tenants in use open. It
// is safe for concurrent use.
type Service struct {
	db      *sqldb.DB
	sealer  *seal.Key
	clock   func() time.Time
	revoked *revocation.Feed
	jobs    *jobs.Queue
	cache   *lru.Cache[string, *keyring]
	flight  singleflight.Group
}

const (
	keyringCacheSize = 4096
	keyringFor       = time.Minute      // the greatest age of a cached keyring
	keyringTimeout   = 30 * time.Second // to make an RSA key and commit it on a busy machine
)

// New returns the keys in a database. revoked is the feed of removals, and jobs makes RSA keys.
func New(db *sqldb.DB, sealer *seal.Key, clock func() time.Time, revoked *revocation.Feed, queue *jobs.Queue) *Service {
	cache, err := lru.New[string, *keyring](keyringCacheSize)
	if err != nil {
		panic(err) // the size is positive
	}
	k := &Service{db: db, sealer: sealer, clock: clock, revoked: revoked, jobs: queue, cache: cache}
	queue.Register(jobs.Kind{Name: firstKind, Handle: k.makeFirst, Concurrency: 1}) // each takes a processor
	return k
}

// ring returns the keys of a tenant. If there are none, it makes the first. The keys may be
// as old as keyringFor, but none of them was removed. It does not depend on the key that the
// caller looks for: an unknown id causes no read, so a token with one is cheap. No key is
// missed, because keys are next for much longer than keyringFor.
func (k *Service) ring(ctx context.Context, tenantID string) (*keyring, error) {
	ring, _ := k.cache.Get(tenantID)
	for range 3 { // the cached keyring, one that was read while a key was removed, one that was read since
		if ring == nil || !k.clock().Before(ring.staleAt) {
			var err error
			if ring, err = k.read(ctx, tenantID, ""); err != nil {
				return nil, err
			}
		}
		revoked, err := k.revoked.Has(ctx, ring.keys...)
		if err != nil {
			return nil, err
		}
		if !revoked {
			return ring, nil
		}
		ring = nil
	}
	return nil, fmt.Errorf("the signing keys of tenant %s change again and again", tenantID)
}

// read reads the keys of a tenant. If first is not empty, it makes the first key of that algorithm
// unless there is one. Callers that wait for the same share the read, so it does not end with the
// caller that began it.
func (k *Service) read(ctx context.Context, tenantID string, first Alg) (*keyring, error) {
	result := k.flight.DoChan(tenantID+" "+string(first), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyringTimeout)
		defer cancel()
		if first != "" {
			if err := k.first(ctx, tenantID, first); err != nil {
				return nil, err
			}
		}
		return k.load(ctx, tenantID)
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return nil, fmt.Errorf("signing keys of tenant %s: %w", tenantID, r.Err)
		}
		return r.Val.(*keyring), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (k *Service) load(ctx context.Context, tenantID string) (*keyring, error) {
	keys, err := selectKeys(ctx, k.db, tenantID)
	if err == nil && len(keys) == 0 {
		keys, err = k.advance(eventlog.AsProduct(ctx), tenantID, due, false)
	}
	if err != nil {
		return nil, err
	}
	ring, err := openKeyring(k.sealer, tenantID, keys)
	if err != nil {
		return nil, err
	}
	ring.staleAt = k.clock().Add(keyringFor)
	k.cache.Add(tenantID, ring)
	return ring, nil
}

// VerificationKey finds a published key of a tenant by its id.
func (s *Service) VerificationKey(ctx context.Context, tenantID, kid string) (key verifyingKey, ok bool, err error) {
	ring, err := s.ring(ctx, tenantID)
	if err != nil {
		return key, false, err
	}
	key, ok = ring.verify[kid]
	return key, ok, nil
}

// JWKS returns the public keys of a tenant as a JWK set (RFC 7517 §5). The bytes are shared
// and must not be changed.
func (s *Service) JWKS(ctx context.Context, tenant protocol.Tenant) ([]byte, error) {
	ring, err := s.ring(ctx, tenant.ID)
	if err != nil {
		return nil, err
	}
	return ring.jwks, nil
}

// Sign returns a JWT that is signed with the active key of an algorithm. If there is none yet, it
// makes one.
func (s *Service) Sign(ctx context.Context, tenant protocol.Tenant, alg Alg, typ string, payload any) (string, error) {
	ring, err := s.ring(ctx, tenant.ID)
	if err != nil {
		return "", err
	}
	key, ok := ring.sign[alg]
	if !ok {
		if ring, err = s.read(ctx, tenant.ID, alg); err != nil {
			return "", err
		}
		if key, ok = ring.sign[alg]; !ok {
			return "", fmt.Errorf("tenant %s has no %s signing key", tenant.ID, alg)
		}
	}
	body, err := json.Marshal(payload)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	header := jws.NewHeaders()
	for name, value := range map[string]string{jws.TypeKey: typ, jws.KeyIDKey: key.kid} {
		if err := header.Set(name, value); err != nil {
			return "", fmt.Errorf("sign token: %w", err)
		}
	}
	token, err := jws.Sign(body, jws.WithKey(alg.JWA(), key.private, jws.WithProtectedHeaders(header)))
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return string(token), nil
}
