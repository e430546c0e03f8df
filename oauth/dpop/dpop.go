// Package dpop verifies proofs of possession of a private key (RFC 9449).
//
// A proof is a JWT for one request. Its header has the public key; its claims describe the
// request and identify the proof:
//
//	htm  the method
//	htu  the URL, without query and fragment
//	iat  the time at which it was made, at most [Window] ago or ahead
//	jti  identifies it among the proofs of the key
//	ath  SHA-256 of the access token of the request, if there is one
//	nonce  the latest one of the server, if it demands one ([Nonces])
//
// A token that is bound to a key names the key's thumbprint (RFC 7638), and is valid only with
// a proof of the key. A stolen token alone is useless, and a stolen proof is for a request
// that was already made. The package stores nothing: the caller must refuse a proof whose
// [Proof.ReplayKey] was used before, and has to store it until [Proof.Until].
package dpop

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

// Header is the header field of proofs.
const Header = "DPoP"

// Algs are the supported signature algorithms of proofs.
var Algs = []string{"ES256", "RS256", "PS256", "EdDSA"}

const (
	// Window is the tolerance for the clock of the client, in both directions, including the
	// duration of the request.
	Window = time.Minute

	maxProof = 8 << 10 // bytes: an RSA key of maxModulus, its signature, and a long URL
	maxID    = 256     // bytes of jti

	// The bounds of RSA moduli, in bits: shorter keys are weak, longer ones slow.
	minModulus, maxModulus = 2048, 4096
)

// Reason is the reason for which a proof is refused.
type Reason string

const (
	Missing        Reason = "missing"         // the request has none
	Repeated       Reason = "repeated"        // the request has several
	Malformed      Reason = "malformed"       // not a signed JWT, or a claim is missing or invalid
	WrongType      Reason = "wrong_type"      // a JWT for another purpose
	UnsupportedAlg Reason = "unsupported_alg" // not one of [Algs]
	WrongKey       Reason = "wrong_key"       // its key is private, weak, referenced, or for another algorithm
	BadSignature   Reason = "bad_signature"   // not signed by its key
	WrongMethod    Reason = "wrong_method"    // for a request with another method
	WrongURL       Reason = "wrong_url"       // for a request to another URL
	WrongTime      Reason = "wrong_time"      // made too long ago, or in the future
	WrongToken     Reason = "wrong_token"     // for a request with another access token
	UseNonce       Reason = "use_nonce"       // it has not a valid nonce of the server, which demands one
	Replayed       Reason = "replayed"        // it was used before; not returned by [Verify]
)

// Error is the refusal of a proof. It never quotes the proof.
type Error struct{ Reason Reason }

func (e *Error) Error() string { return "DPoP proof refused: " + string(e.Reason) }

// Request is the request that a proof has to match.
type Request struct {
	Proofs []string  // the values of [Header]; there must be one
	Method string    // as sent: methods are case-sensitive
	URL    string    // the server's own URL, not one from the request's headers; query and fragment are ignored
	Token  string    // the access token of the request; empty: none
	Now    time.Time // the time of the request

	// Nonces demands that the proof has one of them. Default: a nonce is neither demanded nor
	// verified.
	Nonces *Nonces
	// OfferNonce gets the nonce for the next proof, if nonces are demanded, for the response. It is
	// not used by [Verify]. Default: none is offered.
	OfferNonce func(nonce string)
}

// Proof is a valid proof.
type Proof struct {
	Thumbprint string    // of the key (RFC 7638), as in cnf.jkt and dpop_jkt
	ReplayKey  string    // of the key and the jti: SHA-256 in base64url
	Until      time.Time // the time after which the proof is too old
	Alg        string    // by which it was signed, one of [Algs]
}

// Verify verifies the proof of a request (RFC 9449 §4.3). It fails with [*Error].
func Verify(r Request) (Proof, error) {
	switch {
	case len(r.Proofs) == 0:
		return Proof{}, &Error{Missing}
	case len(r.Proofs) > 1:
		return Proof{}, &Error{Repeated}
	case len(r.Proofs[0]) > maxProof:
		return Proof{}, &Error{Malformed}
	}
	key, payload, alg, err := open(r.Proofs[0])
	if err != nil {
		return Proof{}, err
	}
	made, id, err := check(r, payload)
	if err != nil {
		return Proof{}, err
	}
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return Proof{}, &Error{WrongKey}
	}
	thumbprint := base64.RawURLEncoding.EncodeToString(sum)
	return Proof{thumbprint, digest(thumbprint + id), made.Add(Window), alg}, nil // all thumbprints have one length
}

// open returns the payload of a proof, the key that signed it, and the name of the algorithm.
func open(proof string) (key jwk.Key, payload []byte, name string, err error) {
	encoded, _, _ := strings.Cut(proof, ".")
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, nil, "", &Error{Malformed}
	}
	var header map[string]jsontext.Value
	if json.Unmarshal(text, &header) != nil {
		return nil, nil, "", &Error{Malformed}
	}
	var typ string
	switch {
	case json.Unmarshal(header["typ"], &typ) != nil || typ != "dpop+jwt":
		return nil, nil, "", &Error{WrongType}
	case json.Unmarshal(header["alg"], &name) != nil || !slices.Contains(Algs, name):
		return nil, nil, "", &Error{UnsupportedAlg}
	case hasAny(header, "crit", "b64"): // no extension is supported (RFC 7515 §4.1.11)
		return nil, nil, "", &Error{Malformed}
	case hasAny(header, "jku", "x5u", "x5c", "x5t", "x5t#S256"):
		return nil, nil, "", &Error{WrongKey}
	}
	key, public := readKey(header["jwk"], name)
	if public == nil {
		return nil, nil, "", &Error{WrongKey}
	}
	alg, _ := jwa.LookupSignatureAlgorithm(name)
	payload, err = jws.Verify([]byte(proof), jws.WithKey(alg, public), jws.WithCompact())
	if err != nil {
		return nil, nil, "", &Error{BadSignature}
	}
	return key, payload, name, nil
}

// readKey returns a key that is public, strong enough and for an algorithm; otherwise public
// is nil.
func readKey(text jsontext.Value, alg string) (key jwk.Key, public crypto.PublicKey) {
	var members map[string]jsontext.Value
	if json.Unmarshal(text, &members) != nil || hasAny(members, "d", "p", "q", "dp", "dq", "qi", "oth", "k") {
		return nil, nil
	}
	key, err := jwk.ParseKey(text)
	var raw any
	if err == nil {
		err = jwk.Export(key, &raw)
	}
	if err != nil {
		return nil, nil
	}
	switch of := raw.(type) {
	case *ecdsa.PublicKey:
		if alg == "ES256" && of.Curve == elliptic.P256() {
			return key, of
		}
	case *rsa.PublicKey:
		if bits := of.N.BitLen(); (alg == "RS256" || alg == "PS256") && bits >= minModulus && bits <= maxModulus {
			return key, of
		}
	case ed25519.PublicKey:
		if alg == "EdDSA" {
			return key, of
		}
	}
	return nil, nil
}

func hasAny(members map[string]jsontext.Value, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, has := members[name]; return has })
}

// check compares the claims of a proof with its request.
func check(r Request, payload []byte) (made time.Time, id string, err error) {
	var claims struct {
		ID     string   `json:"jti"`
		Method string   `json:"htm"`
		URL    string   `json:"htu"`
		Made   *float64 `json:"iat"` // seconds since 1970, with or without a fraction (RFC 7519 §2)
		Token  string   `json:"ath"`
		Nonce  string   `json:"nonce"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.ID == "" || len(claims.ID) > maxID || claims.Made == nil {
		return made, "", &Error{Malformed}
	}
	theirs, ok := normalize(claims.URL)
	ours, _ := normalize(r.URL)
	switch {
	case claims.Method != r.Method:
		return made, "", &Error{WrongMethod}
	case !ok || theirs != ours:
		return made, "", &Error{WrongURL}
	case r.Token != "" && claims.Token != digest(r.Token):
		return made, "", &Error{WrongToken}
	}
	age := float64(r.Now.UnixMicro())/1e6 - *claims.Made
	if age > Window.Seconds() || age < -Window.Seconds() {
		return made, "", &Error{WrongTime}
	}
	if r.Nonces != nil && !r.Nonces.Valid(claims.Nonce, r.Now) {
		return made, "", &Error{UseNonce}
	}
	return r.Now.Add(-time.Duration(age * float64(time.Second))), claims.ID, nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
