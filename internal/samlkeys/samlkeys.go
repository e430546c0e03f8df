// Package samlkeys has the keys of a tenant for SAML 2.0: RSA keys of 2048 bits, each with a
// self-signed certificate, because that is the form in which SAML publishes keys (SAML Metadata
// §2.4.1.1). A tenant has keys of its own for each side on which it stands: as service provider
// in front of the identity providers of its connections, and as identity provider of its
// applications. The first key of a use is made when it is first needed; processes that do so at
// the same time agree on one.
//
// # Rotation
//
//	next      published for a week, so that peers have it before it signs
//	active    signs, until 60 days before its certificate ends, three years after it was made
//	retired   published and decrypting for a week: for messages on their way, and for peers
//	          that encrypt to it until they read the metadata again
//
// Then the key is deleted. Many peers read metadata only when an administrator imports it, so a
// certificate lasts long and the next one is announced by an event. The steps that keys have to
// take are a function of the keys and the time (plan). Every process takes the steps that are
// due, if the keys have not changed since it planned, so no process leads. A process may work with
// keys that are a minute old.
package samlkeys

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the table of the package.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("samlkeys", migrations) }

// Use is the side of SAML on which a key is used.
type Use string

const (
	ServiceProvider  Use = "service_provider"  // signs requests, and decrypts assertions
	IdentityProvider Use = "identity_provider" // signs assertions, responses and metadata
)

// Uses lists all uses.
var Uses = []Use{IdentityProvider, ServiceProvider}

// Valid reports whether u is one of [Uses].
func (u Use) Valid() bool { return u == ServiceProvider || u == IdentityProvider }

// Config configures a [Store]. All fields are required.
type Config struct {
	DB     *sqldb.DB
	Seal   *seal.Key // encrypts private keys at rest
	Clock  func() time.Time
	Logger *slog.Logger // receives the errors of Run
}

// Store has the keys of all tenants, and keeps those in use open. It is safe for concurrent use.
type Store struct {
	Config
	cache  *lru.Cache[owner, opened]
	flight singleflight.Group
}

// owner identifies the keys that rotate together.
type owner struct {
	tenantID string
	use      Use
}

// opened is a list of keys as it was read.
type opened struct {
	keys    []Key
	staleAt time.Time
}

const (
	cacheSize   = 4096
	cacheFor    = time.Minute      // the greatest age of keys in the cache
	loadTimeout = 30 * time.Second // to make an RSA key and commit it on a busy machine
	upkeepEvery = time.Minute      // the interval of Run
)

// NewStore returns the store in a database whose tables are [Migrations].
func NewStore(c Config) *Store {
	cache, err := lru.New[owner, opened](cacheSize)
	if err != nil {
		panic(err) // the size is positive
	}
	return &Store{Config: c, cache: cache}
}

// Keys returns the keys of a tenant for a use, with their private keys. The first one is active and
// signs; all are to be published, and all decrypt. If there are none, Keys makes the first. The
// result is shared, and must not be changed.
func (s *Store) Keys(ctx context.Context, tenantID string, use Use) ([]Key, error) {
	of := owner{tenantID, use}
	if found, ok := s.cache.Get(of); ok && s.Clock().Before(found.staleAt) {
		return found.keys, nil
	}
	// Callers that wait for the same keys share the read, so it does not end with the caller
	// that began it.
	result := s.flight.DoChan(tenantID+" "+string(use), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		return s.load(ctx, of)
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return nil, fmt.Errorf("SAML keys of tenant %s: %w", tenantID, r.Err)
		}
		return r.Val.([]Key), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Store) load(ctx context.Context, of owner) ([]Key, error) {
	keys, err := selectKeys(ctx, s.DB, of)
	if err == nil && len(keys) == 0 {
		keys, err = s.advance(eventlog.AsProduct(ctx), of, due, false)
	}
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if keys[i].Private, err = keys[i].open(s.Seal, of.tenantID); err != nil {
			return nil, fmt.Errorf("key %s: %w", keys[i].ID, err)
		}
	}
	s.cache.Add(of, opened{keys, s.Clock().Add(cacheFor)})
	return keys, nil
}

// open unseals the private key, which must be the one of the certificate.
func (k Key) open(sealer *seal.Key, tenantID string) (*rsa.PrivateKey, error) {
	pkcs8, err := sealer.Open(tenantID, k.ID, k.sealed)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(pkcs8)
	if err != nil {
		return nil, errors.New("not a PKCS #8 key") // the error of the parser may quote the key
	}
	private, ok := parsed.(*rsa.PrivateKey)
	if !ok || !private.PublicKey.Equal(k.Certificate.PublicKey) {
		return nil, errors.New("not the key of its certificate")
	}
	return private, nil
}

// List returns the keys of a tenant by use, the active one of each first, without their private
// keys. It makes none.
func (s *Store) List(ctx context.Context, tenantID string) (all []Key, err error) {
	for _, use := range Uses {
		keys, err := selectKeys(ctx, s.DB, owner{tenantID, use})
		if err != nil {
			return nil, fmt.Errorf("list SAML keys: %w", err)
		}
		all = append(all, keys...)
	}
	return all, nil
}

// Run takes the steps of the rotation that are due, for all tenants, until ctx ends. Any number of
// processes may run it.
func (s *Store) Run(ctx context.Context) {
	jobs.Loop{Name: "rotate SAML keys", Every: upkeepEvery, Logger: s.Logger}.Run(ctx, jobs.Once(s.RotateDue))
}
