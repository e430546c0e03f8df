package federation

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"stonetown/identity/federation/relyingparty"
	"stonetown/internal/outbound"
	"stonetown/internal/text"
)

// The limits of connections.
const (
	MaxConnections  = 200 // of a tenant
	MaxDomains      = 50  // of a connection
	MaxGroupRules   = 200
	maxName         = 200  // bytes, as the others
	maxClientID     = 500  //
	maxClientSecret = 4096 // a JWT is one, too
	maxPrivateKey   = 4096
	maxScopes       = 50
	maxScope        = 200
	maxValue        = 256 // of a group at the provider
	maxDomain       = 253
)

var (
	// ErrNotFound is returned for an unknown connection.
	ErrNotFound = errors.New("connection not found")
	// ErrSlugInvalid is returned for an invalid or reserved slug.
	ErrSlugInvalid = errors.New("slug is not 1 to 63 lower-case letters, digits and single hyphens, or is reserved")
	// ErrSlugTaken is returned for the slug of another connection.
	ErrSlugTaken = errors.New("another connection has this slug")
	// ErrTooMany is returned if a tenant has [MaxConnections].
	ErrTooMany = fmt.Errorf("a tenant has at most %d connections", MaxConnections)
)

// KindError is returned for an unknown kind.
type KindError struct{ Kind Kind }

func (e *KindError) Error() string { return fmt.Sprintf("kind must be one of %q", Kinds) }

// FieldError is returned for a field with a value that is not accepted.
type FieldError struct{ Field, Code, Message string }

func (e *FieldError) Error() string { return e.Field + " " + e.Message }

// DomainError is returned for a domain of another connection.
type DomainError struct{ Domain string }

func (e *DomainError) Error() string {
	return fmt.Sprintf("another connection has the domain %q", e.Domain)
}

var slugPattern = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9]){0,62}$`)

// reservedSlugs are names of operations, and of pages beside those of connections.
var reservedSlugs = []string{"new", "test", "link", "start", "callback", "metadata", "bulk", "me", "system"}

// normalize brings domains and empty settings to their stored form.
func (c *Connection) normalize() {
	c.MicrosoftTenant = strings.ToLower(c.MicrosoftTenant)
	for i, domain := range c.Domains {
		c.Domains[i] = NormalDomain(domain)
	}
	// Empty is stored as absent, so that states can be compared.
	if len(c.AttributeMapping) == 0 {
		c.AttributeMapping = nil
	}
	if len(c.GroupMapping) == 0 {
		c.GroupMapping = nil
	}
	if len(c.Domains) == 0 {
		c.Domains = nil
	}
	if len(c.Scopes) == 0 {
		c.Scopes = nil
	}
}

// NormalDomain returns a domain in lower-case ASCII, internationalized labels in their ASCII
// form (RFC 5890); empty if it is not the domain of an address.
func NormalDomain(domain string) string {
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(domain, "."))
	if err != nil || len(ascii) > maxDomain || !strings.Contains(ascii, ".") || strings.Contains(ascii, "..") || strings.HasPrefix(ascii, ".") {
		return ""
	}
	return strings.ToLower(ascii)
}

// validate fails with [*FieldError], [*KindError], [ErrSlugInvalid] or [*claims.Error].
func (c *Connection) validate(client *outbound.Client) error {
	if !slices.Contains(Kinds, c.Kind) {
		return &KindError{c.Kind}
	}
	if len(c.Slug) > 63 || !slugPattern.MatchString(c.Slug) || slices.Contains(reservedSlugs, c.Slug) {
		return ErrSlugInvalid
	}
	if c.Name == "" || len(c.Name) > maxName || !text.IsLine(c.Name) {
		return &FieldError{"name", "invalid", fmt.Sprintf("must be one line of 1 to %d bytes, without control characters", maxName)}
	}
	if err := c.checkApplicable(); err != nil {
		return err
	}
	for _, check := range []func() error{c.checkPolicies, c.checkGroupMapping, c.checkDomains} {
		if err := check(); err != nil {
			return err
		}
	}
	if _, err := c.Mapping(); err != nil {
		return err
	}
	if c.Kind == SAML {
		return c.checkSAML(client)
	}
	return c.checkClient(client)
}

// checkApplicable refuses settings of other kinds.
func (c *Connection) checkApplicable() error {
	discovery := c.Kind == OIDC && c.UseDiscovery
	for _, one := range []struct {
		field      string
		given      bool
		applicable bool
	}{
		{"client_id", c.ClientID != "", c.Kind != SAML},
		{"client_secret", c.ClientSecret.IsSet(), c.Kind != SAML},
		{"scopes", len(c.Scopes) > 0, c.Kind != SAML},
		{"tenant", c.MicrosoftTenant != "", c.Kind == Microsoft},
		{"team_id", c.TeamID != "", c.Kind == Apple},
		{"key_id", c.KeyID != "", c.Kind == Apple},
		{"private_key", c.PrivateKey.IsSet(), c.Kind == Apple},
		{"issuer", c.Issuer != "", c.Kind == OIDC},
		{"use_discovery", c.UseDiscovery, c.Kind == OIDC},
		{"authorization_endpoint", c.Endpoints.Authorization != "", c.Kind == OIDC && !discovery},
		{"token_endpoint", c.Endpoints.Token != "", c.Kind == OIDC && !discovery},
		{"jwks_uri", c.Endpoints.JWKS != "", c.Kind == OIDC && !discovery},
		{"userinfo_endpoint", c.Endpoints.UserInfo != "", c.Kind == OIDC && !discovery},
		{"end_session_endpoint", c.Endpoints.EndSession != "", c.Kind == OIDC && !discovery},
		{"idp_metadata_url", c.MetadataURL != "", c.Kind == SAML},
		{"idp_metadata_xml", c.MetadataXML != "", c.Kind == SAML},
		{"allow_idp_initiated", c.AllowIDPInitiated, c.Kind == SAML},
	} {
		if one.given && !one.applicable {
			return &FieldError{one.field, "not_applicable", fmt.Sprintf("does not apply to connections of the kind %s", c.Kind)}
		}
	}
	return nil
}

func (c *Connection) checkPolicies() error {
	links := []LinkPolicy{LinkVerified, LinkPrompt, LinkNever}
	factors := []SecondFactor{AskSecondFactor, AcceptSecondFactor}
	switch {
	case c.LinkPolicy != "" && !slices.Contains(links, c.LinkPolicy):
		return &FieldError{"link_policy", "unknown_value", fmt.Sprintf("must be one of %q", links)}
	case !slices.Contains(factors, c.SecondFactor):
		return &FieldError{"second_factor", "unknown_value", fmt.Sprintf("must be one of %q", factors)}
	}
	return nil
}

func (c *Connection) checkGroupMapping() error {
	if len(c.GroupMapping) > MaxGroupRules {
		return &FieldError{"group_mapping", "too_many", fmt.Sprintf("must have at most %d rules", MaxGroupRules)}
	}
	for i, rule := range c.GroupMapping {
		if rule.Value == "" || len(rule.Value) > maxValue || !text.IsLine(rule.Value) {
			return &FieldError{fmt.Sprintf("group_mapping/%d/value", i), "invalid", fmt.Sprintf("must be one line of 1 to %d bytes", maxValue)}
		}
		if slices.Contains(c.GroupMapping[:i], rule) {
			return &FieldError{fmt.Sprintf("group_mapping/%d", i), "duplicate", "is there twice"}
		}
	}
	return nil
}

func (c *Connection) checkDomains() error {
	if len(c.Domains) > MaxDomains {
		return &FieldError{"domains", "too_many", fmt.Sprintf("must be at most %d", MaxDomains)}
	}
	for i, domain := range c.Domains {
		switch {
		case domain == "":
			return &FieldError{fmt.Sprintf("domains/%d", i), "invalid", "must be the domain of e-mail addresses, such as example.com"}
		case slices.Contains(c.Domains[:i], domain):
			return &FieldError{fmt.Sprintf("domains/%d", i), "duplicate", "is there twice"}
		}
	}
	return nil
}

func (c *Connection) checkSAML(client *outbound.Client) error {
	if (c.MetadataURL == "") == (c.MetadataXML == "") {
		return &FieldError{"idp_metadata_url", "required", "or idp_metadata_xml must be given, and not both"}
	}
	return checkSourceURL(client, "idp_metadata_url", c.MetadataURL)
}

// checkSourceURL validates the form of a URL that is fetched. That its address can be fetched is
// found when it is.
func checkSourceURL(client *outbound.Client, field, url string) error {
	if url == "" {
		return nil
	}
	if err := checkBrowserURL(client, url); err != nil {
		return &FieldError{field, "invalid", "must be an https URL without user information and fragment: " + err.Error()}
	}
	return nil
}

// checkClient validates the client at an OAuth 2.0 provider.
func (c *Connection) checkClient(client *outbound.Client) error {
	if c.ClientID == "" || len(c.ClientID) > maxClientID || !text.IsLine(c.ClientID) {
		return &FieldError{"client_id", "invalid", fmt.Sprintf("must be one line of 1 to %d bytes", maxClientID)}
	}
	if s := c.ClientSecret.fresh; len(s) > maxClientSecret || !text.IsLine(s) {
		return &FieldError{"client_secret", "invalid", fmt.Sprintf("must be one line of at most %d bytes", maxClientSecret)}
	}
	if len(c.Scopes) > maxScopes {
		return &FieldError{"scopes", "too_many", fmt.Sprintf("must be at most %d", maxScopes)}
	}
	for i, scope := range c.Scopes {
		if !isScope(scope) || slices.Contains(c.Scopes[:i], scope) {
			return &FieldError{fmt.Sprintf("scopes/%d", i), "invalid", fmt.Sprintf("must be a scope (RFC 6749 §3.3) of at most %d bytes that is not there twice", maxScope)}
		}
	}
	switch c.Kind {
	case Apple:
		return c.checkApple()
	case Microsoft:
		if relyingparty.Presets()[relyingparty.Microsoft].CheckDirectory(c.MicrosoftTenant) != nil {
			return &FieldError{"tenant", "invalid", "must be common, organizations, consumers, or the id or a domain of a directory"}
		}
	case OIDC:
		return c.checkOpenID(client)
	}
	if c.Kind != OIDC && !c.ClientSecret.IsSet() {
		return &FieldError{"client_secret", "required", "is required"}
	}
	return nil
}

var appleID = regexp.MustCompile(`^[A-Z0-9]{10}$`)

// checkApple requires a client secret, or what one is signed with.
func (c *Connection) checkApple() error {
	if !c.PrivateKey.IsSet() && c.TeamID == "" && c.KeyID == "" {
		if !c.ClientSecret.IsSet() {
			return &FieldError{"private_key", "required", "is required with team_id and key_id, unless there is a client_secret"}
		}
		return nil
	}
	switch {
	case !appleID.MatchString(c.TeamID):
		return &FieldError{"team_id", "invalid", "must be 10 capital letters and digits"}
	case !appleID.MatchString(c.KeyID):
		return &FieldError{"key_id", "invalid", "must be 10 capital letters and digits"}
	case !c.PrivateKey.IsSet():
		return &FieldError{"private_key", "required", "is required with team_id and key_id"}
	case c.PrivateKey.fresh != "":
		if _, err := relyingparty.ParseAppleKey(c.TeamID, c.KeyID, c.PrivateKey.fresh); err != nil || len(c.PrivateKey.fresh) > maxPrivateKey {
			return &FieldError{"private_key", "invalid", "must be a private key of the curve P-256, as PKCS #8 in PEM"}
		}
	}
	return nil
}

func (c *Connection) checkOpenID(client *outbound.Client) error {
	switch {
	case c.Issuer == "":
		return &FieldError{"issuer", "required", "is required"}
	case strings.Contains(c.Issuer, "?"): // OpenID Connect Core 1.0 §2
		return &FieldError{"issuer", "invalid", "must have no query"}
	}
	if err := checkSourceURL(client, "issuer", c.Issuer); err != nil {
		return err
	}
	if c.UseDiscovery {
		return nil
	}
	if err := c.Endpoints.validate(client); err != nil {
		return err
	}
	return nil
}

// isScope reports whether a text is a scope-token (RFC 6749 §3.3).
func isScope(scope string) bool {
	for i := range len(scope) {
		if c := scope[i]; c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return scope != "" && len(scope) <= maxScope
}
