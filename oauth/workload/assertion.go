package workload

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/jwks"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

const (
	// skew is the tolerance for a clock of an issuer that is ahead.
	skew = 10 * time.Second

	maxSize    = 16 << 10 // of an assertion, in bytes
	maxSubject = 1024     // bytes
)

// types are the values of typ that are accepted, in lower case. JWT-SVIDs have JWT or JOSE.
var types = []string{"", "jwt", "jose"}

// Refusal is the refusal of an assertion, with the reason, which never quotes the assertion.
type Refusal struct {
	Reason string
	// Signed reports that the issuer has signed the assertion, so that the reason reveals nothing
	// to others.
	Signed bool
}

func refused(reason string) error { return &Refusal{Reason: reason} }

func (r *Refusal) Error() string { return "assertion refused: " + r.Reason }

// Workload is the subject of a valid assertion.
type Workload struct {
	Issuer  Issuer
	Subject string
	Expires time.Time
	// TokenID is the jti of the assertion; empty: it has none.
	TokenID string

	payload jsontext.Value
}

// Is reports whether the workload is one of a workload identity.
func (w Workload) Is(identity client.WorkloadIdentity) bool {
	return identity.Matches(w.Issuer.ID, w.Subject, w.claim)
}

// claim returns the claim at a JSON pointer, through objects only; empty: there is none.
func (w Workload) claim(at jsontext.Pointer) jsontext.Value {
	value := w.payload
	for name := range at.Tokens() {
		var members map[string]jsontext.Value
		if value.Kind() != '{' || json.Unmarshal(value, &members) != nil {
			return nil
		}
		if value = members[name]; value == nil {
			return nil
		}
	}
	return value
}

// claims are the claims of an assertion that all issuers have in common.
type claims struct {
	Issuer    string         `json:"iss"`
	Subject   string         `json:"sub"`
	Audience  jsontext.Value `json:"aud"`
	TokenID   string         `json:"jti"`
	Expires   *float64       `json:"exp"` // NumericDate may have a fraction (RFC 7519 §2)
	NotBefore *float64       `json:"nbf"`
	IssuedAt  *float64       `json:"iat"`
	Events    jsontext.Value `json:"events"` // of logout tokens and other security event tokens (RFC 8417 §2.2)
}

// read reads claims strictly: no name twice, and every name as it is written.
func read(payload []byte) (c claims, err error) {
	if json.Unmarshal(payload, &c) != nil {
		return c, refused("the claims are not valid JSON")
	}
	return c, nil
}

// Verify verifies an assertion for a tenant. It fails with [*Refusal]. A jti that must be accepted
// once is not used up.
func (r *Registry) Verify(ctx context.Context, tenant protocol.Tenant, assertion string) (Workload, error) {
	parts := strings.Split(assertion, ".")
	if len(assertion) > maxSize || len(parts) != 3 {
		return Workload{}, refused("not a signed JWT, or too large")
	}
	payload, err := base64.RawURLEncoding.Strict().DecodeString(parts[1])
	if err != nil {
		return Workload{}, refused("not a signed JWT, or too large")
	}
	c, err := read(payload)
	if err != nil {
		return Workload{}, err
	}
	if c.Issuer == tenant.BaseURL { // whatever the address of the tenant was when the issuer was created
		return Workload{}, refused("iss is the tenant itself")
	}
	w := Workload{}
	w.Issuer, err = selectIssuer(ctx, r.db, tenant.ID, `issuer`, c.Issuer)
	switch {
	case errors.Is(err, ErrNotFound):
		return Workload{}, refused("iss is not a trusted issuer")
	case err != nil:
		return Workload{}, err
	case !w.Issuer.Enabled:
		return Workload{}, refused("the issuer is disabled")
	}
	err = r.withKeys(ctx, w.Issuer, func(keys jwks.Set) (err error) {
		w.payload, _, err = keys.Open(assertion, maxSize, w.Issuer.Algs, types)
		return err
	})
	for _, known := range []error{
		jwks.ErrUnknown, jwks.ErrAlgorithm, jwks.ErrSeveral, jwks.ErrTooLarge, jwks.ErrNotSigned, jwks.ErrCritical, jwks.ErrType, jwks.ErrUnsigned, jwks.ErrAlg, jwks.ErrSignature,
	} {
		if errors.Is(err, known) {
			return w, refused(known.Error())
		}
	}
	if err != nil {
		return w, err
	}
	if reason := w.fault(tenant, r.clock()); reason != "" {
		return w, &Refusal{reason, true}
	}
	return w, nil
}

// fault reads the claims of an assertion whose signature is right, and returns what is wrong with
// them; empty: nothing.
func (w *Workload) fault(tenant protocol.Tenant, now time.Time) string {
	c, err := read(w.payload)
	if err != nil {
		return err.Error()
	}
	w.Subject, w.TokenID = c.Subject, c.TokenID
	audience := w.Issuer.Audience
	if audience == "" {
		audience = tenant.BaseURL
	}
	longest := time.Duration(w.Issuer.MaxLifetimeS)*time.Second + skew
	at := func(instant time.Time) float64 { return float64(instant.UnixMicro()) / 1e6 }
	tooLong := fmt.Sprintf("its lifetime is longer than %d seconds", w.Issuer.MaxLifetimeS)
	switch {
	case c.Issuer != w.Issuer.Issuer:
		return "iss is another issuer"
	case c.Subject == "" || len(c.Subject) > maxSubject:
		return "sub is missing or too long"
	case len(c.TokenID) > maxSubject:
		return "jti is too long"
	case w.Issuer.SingleUse && c.TokenID == "":
		return "jti is missing"
	case c.Events != nil:
		return "it has events, as tokens for another purpose have"
	case !isOnly(c.Audience, audience):
		// Another recipient could use an assertion here that is for both.
		return "aud must be the audience of the trusted issuer, alone"
	case c.Expires == nil:
		return "exp is missing"
	case *c.Expires <= at(now):
		return "exp is in the past"
	case *c.Expires > at(now.Add(longest)):
		return tooLong
	case c.NotBefore != nil && *c.NotBefore > at(now.Add(skew)):
		return "nbf is in the future"
	case c.IssuedAt != nil && *c.IssuedAt > at(now.Add(skew)):
		return "iat is in the future"
	case c.IssuedAt != nil && *c.Expires-*c.IssuedAt > longest.Seconds():
		return tooLong
	}
	w.Expires = time.Unix(int64(math.Floor(*c.Expires)), 0).UTC()
	return ""
}

// isOnly reports whether an aud, which is one string or a list (RFC 7519 §4.1.3), is one audience.
func isOnly(aud jsontext.Value, audience string) bool {
	var names []string
	if aud.Kind() == '"' {
		names = make([]string, 1)
		return json.Unmarshal(aud, &names[0]) == nil && names[0] == audience
	}
	return aud != nil && json.Unmarshal(aud, &names) == nil && len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return name != audience })
}
