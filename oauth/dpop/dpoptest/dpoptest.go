// Package dpoptest makes proofs of possession for tests, as clients do.
package dpoptest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

// Key is the key of a client.
type Key struct {
	Thumbprint string // as in cnf.jkt and dpop_jkt
	private    *ecdsa.PrivateKey
	public     jwk.Key
}

// NewKey returns a new key.
func NewKey(t testing.TB) *Key {
	t.Helper()
	k := new(Key)
	var sum []byte
	var err error
	if k.private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err == nil {
		k.public, err = jwk.Import(&k.private.PublicKey)
	}
	if err == nil {
		sum, err = k.public.Thumbprint(crypto.SHA256)
	}
	if err != nil {
		t.Fatal(err)
	}
	k.Thumbprint = base64.RawURLEncoding.EncodeToString(sum)
	return k
}

// Proof returns a new proof for a request; token is its access token, empty if there is none.
// changes are claims to set, or to delete if nil.
func (k *Key) Proof(t testing.TB, method, url, token string, changes map[string]any) string {
	t.Helper()
	claims := map[string]any{"jti": rand.Text(), "htm": method, "htu": url, "iat": time.Now().Unix()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	header := jws.NewHeaders()
	body, err := json.Marshal(claims)
	if err == nil {
		err = header.Set(jws.TypeKey, "dpop+jwt")
	}
	if err == nil {
		err = header.Set(jws.JWKKey, k.public)
	}
	var proof []byte
	if err == nil {
		proof, err = jws.Sign(body, jws.WithKey(jwa.ES256(), k.private, jws.WithProtectedHeaders(header)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(proof)
}
