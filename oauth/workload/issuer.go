package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"stonetown/internal/jwks"
	"stonetown/internal/outbound"
	"stonetown/internal/text"
	"stonetown/oauth/assertion"
)

// Issuer is a trusted issuer: a platform that gives its workloads tokens.
type Issuer struct {
	ID       string
	TenantID string
	Issuer   string // iss of its tokens; immutable
	Enabled  bool
	Settings

	CreatedAt time.Time // UTC, as UpdatedAt
	UpdatedAt time.Time
	ChangedBy string // actor of the last change; empty: the product
}

// Settings are the settings of an issuer.
type Settings struct {
	Description string `json:"description,omitempty"`

	// JWKS and JWKSURI have the keys of the issuer: the set itself (RFC 7517) or its address. At
	// most one is set. Without both, the discovery document of the issuer has the address.
	JWKS    json.RawMessage `json:"jwks,omitempty"`
	JWKSURI string          `json:"jwks_uri,omitempty"`

	// Audience is the aud that its tokens need; empty: the issuer of the tenant (RFC 7523 §3).
	Audience string `json:"audience,omitempty"`
	// Algs are the algorithms that are accepted, among [Algs].
	Algs []string `json:"signing_algs"`
	// MaxLifetimeS bounds the lifetime of its tokens, in seconds.
	MaxLifetimeS int `json:"max_lifetime_s"`
	// SingleUse requires a jti, and accepts each once. Without it a token can be presented until it
	// expires, as Kubernetes lets a pod do.
	SingleUse bool `json:"single_use"`
}

// Algs are the supported signature algorithms (RFC 7518 §3.1, RFC 8037 §3.1). All are asymmetric.
var Algs = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// Defaults returns a new issuer with all defaults.
func Defaults() Issuer {
	return Issuer{Enabled: true, Settings: Settings{Algs: slices.Clone(assertion.Algs), MaxLifetimeS: 3600, SingleUse: true}}
}

// The bounds of issuers.
const (
	MaxIssuers     = 100 // of a tenant
	minLifetimeS   = 60
	maxLifetimeS   = 24 * 60 * 60
	maxIssuer      = 500 // bytes
	maxDescription = 500 // bytes
	maxKeys        = 100
)

var (
	// ErrNotFound is returned for an issuer that does not exist.
	ErrNotFound = errors.New("trusted issuer not found")
	// ErrExists is returned for an issuer that the tenant trusts already.
	ErrExists = errors.New("the tenant trusts this issuer already")
	// ErrInUse is returned for the deletion of an issuer that a workload identity names.
	ErrInUse = errors.New("workload identities of applications name the trusted issuer")
	// ErrTooMany is returned for an issuer beyond [MaxIssuers].
	ErrTooMany = fmt.Errorf("a tenant has at most %d trusted issuers", MaxIssuers)
)

// ValidationError is a refusal of one field of an issuer.
type ValidationError struct{ Field, Code, Message string }

func (e *ValidationError) Error() string { return e.Field + " " + e.Message }

// validate refuses an issuer that is not valid. own is the issuer of the tenant itself.
func (i Issuer) validate(own string, fetch *outbound.Client) error {
	u, err := url.Parse(i.Issuer)
	switch {
	case err != nil || !u.IsAbs() || len(i.Issuer) > maxIssuer || !isVisible(i.Issuer) || strings.ContainsAny(i.Issuer, "?#"):
		return &ValidationError{"issuer", "invalid", fmt.Sprintf("must be an absolute URL without query and fragment, of at most %d characters", maxIssuer)}
	case strings.TrimSuffix(i.Issuer, "/") == strings.TrimSuffix(own, "/"):
		return &ValidationError{"issuer", "invalid", "cannot be the tenant itself"}
	case !text.IsParagraphs(i.Description):
		return &ValidationError{"description", "invalid", "must be UTF-8 without control characters except line breaks and tabs"}
	case len(i.Description) > maxDescription:
		return &ValidationError{"description", "too_long", fmt.Sprintf("must have at most %d bytes", maxDescription)}
	case len(i.Audience) > maxIssuer || !text.IsLine(i.Audience):
		return &ValidationError{"audience", "invalid", fmt.Sprintf("must be one line of at most %d bytes", maxIssuer)}
	case len(i.Algs) == 0 || slices.ContainsFunc(i.Algs, func(alg string) bool { return !slices.Contains(Algs, alg) }):
		return &ValidationError{"signing_algs", "unknown_value", fmt.Sprintf("must be one or more of %q", Algs)}
	case i.MaxLifetimeS < minLifetimeS || i.MaxLifetimeS > maxLifetimeS:
		return &ValidationError{"max_lifetime_s", "out_of_range", fmt.Sprintf("must be between %d and %d", minLifetimeS, maxLifetimeS)}
	}
	return i.validateKeys(fetch)
}

// validateKeys refuses keys that cannot verify tokens, and addresses that cannot be fetched.
func (i Issuer) validateKeys(fetch *outbound.Client) error {
	const must = "must be an https URL on the public Internet, without user information and fragment, of at most 2048 characters"
	switch {
	case i.JWKS != nil && i.JWKSURI != "":
		return &ValidationError{"jwks_uri", "invalid", "cannot be combined with jwks"}
	case i.JWKSURI != "" && fetch.CheckURL(i.JWKSURI) != nil:
		return &ValidationError{"jwks_uri", "invalid", must}
	case i.JWKS != nil && len(jwks.Usable(i.JWKS, i.Algs, maxKeys)) == 0:
		return &ValidationError{"jwks", "invalid", "must be a JWK set with a public key for one of signing_algs"}
	case i.JWKS == nil && i.JWKSURI == "" && fetch.CheckURL(i.Issuer) != nil:
		return &ValidationError{"issuer", "invalid", must + ", unless jwks or jwks_uri has the keys"}
	}
	return nil
}

// isVisible reports whether a text is visible ASCII.
func isVisible(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// trusts reports whether a change of an issuer accepts tokens that were refused before.
func (i Issuer) trusts(before Issuer) bool {
	a, b := before.Settings, i.Settings
	a.Description, b.Description = "", ""
	return i.Enabled && (!before.Enabled || !equal(a, b))
}
