package client

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"stonetown/internal/outbound"
	"stonetown/internal/sqldb"
	"stonetown/internal/text"
	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// The bounds of the settings of applications.
const (
	minAccessTokenTTL  = time.Minute
	maxAccessTokenTTL  = protocol.MaxAccessTokenTTL
	minRefreshTokenTTL = 5 * time.Minute
	maxRefreshTokenTTL = 365 * 24 * time.Hour
	maxRedirectURIs    = 50
	maxURI             = 2048 // bytes
	maxRequestURIs     = 20
	maxRequestURI      = 512 // characters (RFC 9101 §5.2)
	maxText            = 500 // bytes
	maxTags            = 50
	maxScopes          = 500
)

// ValidationError is a refusal of one field of an application. It wraps [ErrInvalid].
type ValidationError struct{ Field, Code, Message string }

func (e *ValidationError) Error() string { return e.Field + " " + e.Message }

// Unwrap returns [ErrInvalid].
func (e *ValidationError) Unwrap() error { return ErrInvalid }

// UnknownScopesError is returned for scopes that the tenant does not have. It wraps
// [ErrInvalid].
type UnknownScopesError struct{ Scopes []string }

func (e *UnknownScopesError) Error() string {
	return fmt.Sprintf("scope %q is not registered", e.Scopes[0])
}

// Unwrap returns [ErrInvalid].
func (e *UnknownScopesError) Unwrap() error { return ErrInvalid }

// RedirectURIError is returned for a redirect URI that is malformed or not allowed by RFC
// 8252, or whose form is forbidden. It wraps [ErrInvalid].
type RedirectURIError struct {
	URI       string
	Reason    string
	Forbidden bool // its form, which no server should accept
}

func (e *RedirectURIError) Error() string { return "redirect URI refused: " + e.Reason }

// Unwrap returns [ErrInvalid].
func (e *RedirectURIError) Unwrap() error { return ErrInvalid }

// DefaultScopes returns the scopes of a new application of a type.
func (t Type) DefaultScopes() []string {
	if !t.HasUsers() {
		return nil
	}
	return append(scope.Default, "me:read", "me:write")
}

// Defaults returns a new application of a type with all defaults.
func (t Type) Defaults() *Application {
	a := &Application{
		Type: t, AllowedScopes: t.DefaultScopes(),
		SigningAlg: keys.ES256, TokenExchange: t.DefaultTokenExchange(), Options: t.DefaultOptions(),
	}
	if t == SAML {
		a.ServiceProvider = DefaultServiceProvider()
	}
	return a
}

// allowed are the addresses that applications may have.
type allowed struct {
	fetch          *outbound.Client // decides which URLs can be fetched
	localRedirects bool             // see [Config]
	certificates   bool             // see [Config]
}

// validate refuses an application that is not valid.
func (a Application) validate(ctx context.Context, tx *sqldb.Tx, addresses allowed) error {
	if !a.Type.valid() {
		return &ValidationError{"type", "unknown_value", fmt.Sprintf("must be one of %q", Types)}
	}
	if a.Name == "" {
		return &ValidationError{"name", "required", "is required"}
	}
	if err := cmp.Or(validLine("name", a.Name), validText("description", a.Description)); err != nil {
		return err
	}
	if a.Type == SAML {
		if err := a.ServiceProvider.validate(); err != nil {
			return err
		}
		if err := a.validateEntityID(ctx, tx); err != nil {
			return err
		}
	}
	if u, err := url.Parse(a.Audience); a.Audience != "" && (err != nil || !u.IsAbs() || u.Fragment != "" || len(a.Audience) > maxURI || !visible(a.Audience)) {
		return &ValidationError{"audience", "invalid", "must be an absolute URL without fragment"}
	}
	for field, ttl := range map[string][3]time.Duration{
		"access_token_ttl_s":  {a.AccessTokenTTL, minAccessTokenTTL, maxAccessTokenTTL},
		"refresh_token_ttl_s": {a.RefreshTokenTTL, minRefreshTokenTTL, maxRefreshTokenTTL},
	} {
		if ttl[0] < ttl[1] || ttl[0] > ttl[2] || ttl[0]%time.Second != 0 {
			return &ValidationError{field, "out_of_range", fmt.Sprintf("must be between %d and %d whole seconds", int(ttl[1].Seconds()), int(ttl[2].Seconds()))}
		}
	}
	if !a.SigningAlg.Valid() {
		return &ValidationError{"access_token_signing_alg", "unknown_value", fmt.Sprintf("must be one of %q", keys.Algs)}
	}
	if err := ValidateOrigins(a.AllowedOrigins); err != nil {
		return &ValidationError{"allowed_origins", "invalid", err.Error()}
	}
	if err := cmp.Or(a.validateProfile(), a.validateRelations(), a.Options.validate(a.Type, addresses), a.validateFrontchannel(), a.validateClaims()); err != nil {
		return err
	}
	if len(a.Tags) > maxTags {
		return &ValidationError{"tags", "too_many", fmt.Sprintf("must be at most %d", maxTags)}
	}
	for _, tag := range a.Tags {
		if tag == "" || len(tag) > 100 || !text.IsLine(tag) {
			return &ValidationError{"tags", "invalid", "must each have 1 to 100 bytes and one line"}
		}
	}
	if len(a.RedirectURIs) > maxRedirectURIs {
		return &ValidationError{"redirect_uris", "too_many", fmt.Sprintf("must be at most %d", maxRedirectURIs)}
	}
	for _, uri := range a.RedirectURIs {
		if err := addresses.validateRedirectURI(a.Type, uri); err != nil {
			return err
		}
	}
	if err := a.validateIssuers(ctx, tx); err != nil {
		return err
	}
	return a.validateScopes(ctx, tx)
}

// validateRelations refuses settings that cannot become relations.
func (a Application) validateRelations() error {
	return cmp.Or(a.TokenExchange.validate(a.Type), a.validateWorkloads())
}

func (a Application) validateScopes(ctx context.Context, tx *sqldb.Tx) error {
	if len(a.AllowedScopes) > maxScopes {
		return &ValidationError{"allowed_scopes", "too_many", fmt.Sprintf("must be at most %d", maxScopes)}
	}
	rest := slices.DeleteFunc(slices.Clone(a.AllowedScopes), func(name string) bool {
		return scope.IsBuiltin(name) || a.Type.HasUsers() && slices.Contains(scope.OIDC, name)
	})
	if len(rest) == 0 {
		return nil
	}
	// A write instead of a read: a concurrent deletion of the scope then waits, and fails
	// because the scope is in use.
	var unknown []string
	for _, name := range rest {
		if !scope.Valid(name) {
			unknown = append(unknown, name)
			continue
		}
		n, err := tx.Exec(ctx, `UPDATE scopes SET description = description WHERE tenant_id = $1 AND name = $2`, a.TenantID, name)
		if err != nil {
			return err
		}
		if n == 0 {
			unknown = append(unknown, name)
		}
	}
	if unknown != nil {
		return &UnknownScopesError{unknown}
	}
	return nil
}

// validText refuses a text that is too long or has control characters other than line breaks
// and tabs.
func validText(field, value string) error {
	switch {
	case !text.IsParagraphs(value):
		return &ValidationError{field, "invalid", "must be UTF-8 without control characters except line breaks and tabs"}
	case len(value) > maxText:
		return &ValidationError{field, "too_long", fmt.Sprintf("must have at most %d bytes", maxText)}
	}
	return nil
}

// validLine refuses a text that is too long or has several lines.
func validLine(field, value string) error {
	if !text.IsLine(value) {
		return &ValidationError{field, "invalid", "must be one line of UTF-8 without control characters"}
	}
	return validText(field, value)
}

// privateScheme matches a private-use URI scheme. It is a reversed domain name (RFC 8252
// §7.1), and so contains a dot.
var privateScheme = regexp.MustCompile(`^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+$`)

// validateRedirectURI refuses redirect URIs that could lead a code to another receiver (RFC
// 8252, RFC 9700 §4.1).
func (a allowed) validateRedirectURI(t Type, uri string) error {
	forbidden := func(reason string) error { return &RedirectURIError{uri, reason, true} }
	invalid := func(reason string) error { return &RedirectURIError{uri, reason, false} }
	switch {
	case uri == "" || len(uri) > maxURI:
		return invalid("length")
	case !visible(uri) || strings.Contains(uri, `\`):
		return forbidden("control_char")
	case strings.Contains(uri, "*"):
		return forbidden("wildcard")
	case strings.Contains(uri, "#"):
		return forbidden("fragment")
	}
	u, err := url.Parse(uri)
	if err != nil {
		return invalid("malformed")
	}
	path := strings.ToLower(u.EscapedPath())
	switch {
	case !u.IsAbs():
		return forbidden("relative")
	case slices.Contains([]string{"javascript", "data", "file", "vbscript", "blob", "about", "mailto"}, u.Scheme):
		return forbidden("scheme")
	case u.User != nil || strings.Contains(strings.SplitN(uri, "?", 2)[0], "@"):
		return forbidden("userinfo")
	case strings.Contains(u.Host, "%"): // an escape, or the zone of an IPv6 address
		return forbidden("host")
	case strings.Contains("/"+path+"/", "/../"), strings.Contains(path, "%2e%2e"), strings.Contains(path, "..;"), strings.Contains(path, ".%2e"), strings.Contains(path, "%2e."):
		return forbidden("path")
	}
	host := u.Hostname()
	local := host == "127.0.0.1" || host == "::1" || host == "localhost" || a.localRedirects && strings.HasSuffix(host, ".localhost")
	switch {
	case (u.Scheme == "https" || u.Scheme == "http") && u.Opaque != "":
		return invalid("malformed")
	case u.Scheme == "https" && host != "", u.Scheme == "http" && local:
		if host != strings.ToLower(host) {
			return invalid("host")
		}
		return nil
	case u.Scheme == "http", u.Scheme == "https":
		return invalid("scheme")
	case t == Native && privateScheme.MatchString(u.Scheme):
		return nil
	}
	return invalid("scheme")
}

// visible reports whether a text is visible ASCII. Everything else has to be encoded in a URL,
// and in a host with Punycode.
func visible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
