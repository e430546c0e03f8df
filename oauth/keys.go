package oauth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"golang.org/x/sync/singleflight"

	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

// Alg is a signature algorithm of RFC 7518 §3.1.
type Alg string

// The algorithms that tokens are signed with. There are no others: what is not
// listed here, none and the HMAC family among it, verifies nowhere.
const (
	ES256 Alg = "ES256"
	RS256 Alg = "RS256"
)

var algs = []Alg{ES256, RS256}

func (a Alg) valid() bool { return a == ES256 || a == RS256 }

func (a Alg) jwa() jwa.SignatureAlgorithm {
	if a == RS256 {
		return jwa.RS256()
	}
	return jwa.ES256()
}

// generate makes a private key for the algorithm.
func (a Alg) generate() (crypto.Signer, error) {
	if a == RS256 {
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// storedKey is a signing key as its row holds it. The public half is derived
// from the sealed one, so that whoever can only write to the database cannot
// plant a key.
type storedKey struct {
	kid       string
	alg       Alg
	sealed    []byte // PKCS #8, sealed for (tenant, kid)
	createdAt time.Time
}

// newStoredKey generates and seals a key of a tenant.
func newStoredKey(sealer *seal.Key, tenantID string, alg Alg, now time.Time) (storedKey, error) {
	private, err := alg.generate()
	if err != nil {
		return storedKey{}, err
	}
	public, err := publicJWK(alg, private)
	if err != nil {
		return storedKey{}, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return storedKey{}, err
	}
	kid, _ := public.KeyID()
	return storedKey{kid, alg, sealer.Seal(tenantID, kid, pkcs8), now}, nil
}

// publicJWK is the public half as a JWK (RFC 7517 §4), with its RFC 7638
// thumbprint as its id.
func publicJWK(alg Alg, private crypto.Signer) (jwk.Key, error) {
	public, err := jwk.Import(private.Public())
	if err != nil {
		return nil, err
	}
	return public, errors.Join(
		jwk.AssignKeyID(public), // SHA-256 unless told otherwise
		public.Set(jwk.AlgorithmKey, alg.jwa()),
		public.Set(jwk.KeyUsageKey, jwk.ForSignature),
	)
}

// open unseals the private key.
func (k storedKey) open(sealer *seal.Key, tenantID string) (crypto.Signer, error) {
	pkcs8, err := sealer.Open(tenantID, k.kid, k.sealed)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(pkcs8)
	if err != nil {
		return nil, errors.New("not a PKCS #8 key") // the parser's error may quote it
	}
	private, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", parsed)
	}
	return private, nil
}

// signingKey is a key ready to sign with.
type signingKey struct {
	kid     string
	private crypto.Signer
}

// verifyingKey is a key ready to verify with, for one algorithm.
type verifyingKey struct {
	alg    Alg
	public crypto.PublicKey
}

// keyring is what a tenant's keys are used for. It is not changed after it was
// made.
type keyring struct {
	sign    map[Alg]signingKey
	verify  map[string]verifyingKey // by kid
	jwks    []byte                  // JSON, public members only
	staleAt time.Time
}

func openKeyring(sealer *seal.Key, tenantID string, rows []storedKey) (*keyring, error) {
	ring := &keyring{sign: make(map[Alg]signingKey), verify: make(map[string]verifyingKey)}
	set := jwk.NewSet()
	for _, row := range rows {
		private, err := row.open(sealer, tenantID)
		if err != nil {
			return nil, fmt.Errorf("signing key %s: %w", row.kid, err)
		}
		public, err := publicJWK(row.alg, private)
		if err == nil {
			err = set.AddKey(public)
		}
		if err != nil {
			return nil, fmt.Errorf("signing key %s: %w", row.kid, err)
		}
		ring.sign[row.alg] = signingKey{row.kid, private}
		ring.verify[row.kid] = verifyingKey{row.alg, private.Public()}
	}
	var err error
	ring.jwks, err = json.Marshal(set)
	return ring, err
}

// keyrings opens tenants' keys and keeps those of the tenants in use.
type keyrings struct {
	db     *sqldb.DB
	sealer *seal.Key
	clock  func() time.Time
	cache  *lru.Cache[string, *keyring]
	flight singleflight.Group
}

const (
	keyringCacheSize = 4096
	keyringFor       = time.Minute // how old a cached ring may get
	keyringTimeout   = 10 * time.Second
)

func newKeyrings(db *sqldb.DB, sealer *seal.Key, clock func() time.Time) *keyrings {
	cache, err := lru.New[string, *keyring](keyringCacheSize)
	if err != nil {
		panic(err) // only of a size that is not positive
	}
	return &keyrings{db: db, sealer: sealer, clock: clock, cache: cache}
}

// ring returns the keys of a tenant; with create, it makes them first if the
// tenant has none. Callers that wait for one tenant's keys share the work, which
// is why it outlives the caller that began it.
func (k *keyrings) ring(ctx context.Context, tenantID string, create bool) (*keyring, error) {
	if ring, ok := k.cache.Get(tenantID); ok && k.clock().Before(ring.staleAt) {
		return ring, nil
	}
	flight := tenantID
	if create {
		flight = "create " + tenantID
	}
	result := k.flight.DoChan(flight, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyringTimeout)
		defer cancel()
		return k.load(ctx, tenantID, create)
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

func (k *keyrings) load(ctx context.Context, tenantID string, create bool) (*keyring, error) {
	rows, err := selectKeys(ctx, k.db, tenantID)
	if err == nil && len(rows) == 0 && create {
		if err = k.create(ctx, tenantID); err == nil {
			rows, err = selectKeys(ctx, k.db, tenantID)
		}
	}
	if err != nil {
		return nil, err
	}
	ring, err := openKeyring(k.sealer, tenantID, rows)
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 { // keys may appear at any moment where there are none
		ring.staleAt = k.clock().Add(keyringFor)
		k.cache.Add(tenantID, ring)
	}
	return ring, nil
}

// create stores one key of each algorithm. When another process was faster, its
// keys are the tenant's.
func (k *keyrings) create(ctx context.Context, tenantID string) error {
	var rows []storedKey
	for _, alg := range algs {
		row, err := newStoredKey(k.sealer, tenantID, alg, k.clock())
		if err != nil {
			return fmt.Errorf("create %s key: %w", alg, err)
		}
		rows = append(rows, row)
	}
	err := k.db.Tx(ctx, func(tx *sqldb.Tx) error {
		for _, row := range rows {
			if err := insertKey(ctx, tx, tenantID, row); err != nil {
				return err
			}
		}
		return nil
	})
	if sqldb.IsUniqueViolation(err) {
		return nil
	}
	return err
}

// JWKS returns the tenant's public keys as a JWK set (RFC 7517 §5). The bytes
// are shared: do not change them.
func (s *Service) JWKS(ctx context.Context, tenant Tenant) ([]byte, error) {
	ring, err := s.keys.ring(ctx, tenant.ID, true)
	if err != nil {
		return nil, err
	}
	return ring.jwks, nil
}
