package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Claim is a claim that tokens of an application have beside those of the protocols. Its value
// is found when a token is issued (package claim).
type Claim struct {
	Name   string       `json:"name"`
	Where  []ClaimPlace `json:"where"`
	Scope  string       `json:"scope,omitempty"` // that the token must have; empty: none
	Source ClaimSource  `json:"source"`
}

// ClaimPlace is where an application finds a claim.
type ClaimPlace string

// The places of claims.
const (
	InIDToken     ClaimPlace = "id_token"
	InAccessToken ClaimPlace = "access_token"
	InUserInfo    ClaimPlace = "userinfo"
)

// ClaimPlaces are all places.
var ClaimPlaces = []ClaimPlace{InIDToken, InAccessToken, InUserInfo}

// ClaimSource is where the value of a claim is from. One of the members is set.
type ClaimSource struct {
	// Attribute is a member of the profile, or attributes.<name>, where dots lead into objects.
	Attribute string `json:"attribute,omitempty"`
	// Groups are those of the user, by one of [GroupNames].
	Groups string `json:"groups,omitempty"`
	// Relations are those that the subject has to one object.
	Relations *ObjectRelations `json:"relations,omitempty"`
	// Resources are those of a type on which the subject may perform an action.
	Resources *TypeAction `json:"resources,omitempty"`
}

// ObjectRelations are relations of one object of the engine.
type ObjectRelations struct {
	Type string `json:"type"`
	// ID may contain [ClientIDInClaim].
	ID string `json:"id"`
	// Names are relations or actions; none: all relations of the type.
	Names []string `json:"names,omitempty"`
}

// TypeAction is an action on the resources of a type.
type TypeAction struct {
	Type   string `json:"type"`
	Action string `json:"action"`
}

// ClientIDInClaim stands for the client id of the application.
const ClientIDInClaim = "{client_id}"

// GroupNames are the members of groups that can be values of claims.
var GroupNames = []string{"slug", "id", "name"}

// ClaimAttributes are the members of the profile that can be values of claims.
var ClaimAttributes = []string{"id", "email", "name", "given_name", "family_name", "locale", "picture"}

// AttributePrefix begins the names of attributes that are not members of the profile.
const AttributePrefix = "attributes."

// The bounds of claims. [MaxClaimValues] and [MaxClaimBytes] are those of values.
const (
	maxClaims        = 20
	maxClaimName     = 128 // bytes
	maxRelationNames = 50

	// MaxClaimValues bounds the entries of a claim that is a list.
	MaxClaimValues = 200
	// MaxClaimBytes bounds the configured claims of one token, or of one answer of the UserInfo
	// endpoint, in bytes of JSON.
	MaxClaimBytes = 4 << 10
)

// reservedClaims have a meaning in the protocols, or state what the service has verified (RFC
// 7519 §4.1, RFC 7800, RFC 8693, RFC 9068, RFC 9396, RFC 9470, OIDC Core §2, §3.3.2.11 and §5.1,
// OIDC Back-Channel Logout §2.4), so no configuration can set them.
var reservedClaims = map[string]bool{
	"iss": true, "sub": true, "aud": true, "exp": true, "nbf": true, "iat": true, "jti": true,
	"azp": true, "nonce": true, "auth_time": true, "acr": true, "amr": true, "at_hash": true, "c_hash": true, "s_hash": true, "sid": true,
	"client_id": true, "scope": true, "cnf": true, "dpop_nonce": true, "act": true, "may_act": true, "authorization_details": true,
	"events": true, "sub_jwk": true, "sub_id": true, "_claim_names": true, "_claim_sources": true, "active": true, "token_type": true,
	"tid": true, "gid": true, "ptok": true, "anc": true,
	"email": true, "email_verified": true, "phone_number": true, "phone_number_verified": true, "updated_at": true,
}

// ReservedClaim reports whether no configuration can set a claim.
func ReservedClaim(name string) bool { return reservedClaims[name] }

func isClaimName(name string) bool { return name != "" && len(name) <= maxClaimName && visible(name) }

// CanAddClaim reports whether a configured claim, or one that a sign-in flow adds, can have a name.
func CanAddClaim(name string) bool { return isClaimName(name) && !ReservedClaim(name) }

// WithClaims returns the application with other claims. Refusals wrap [ErrInvalid].
func (a Application) WithClaims(claims []Claim) (Application, error) {
	a.Claims = claims
	return a, a.validateClaims()
}

func (a Application) validateClaims() error {
	refuse := func(field, code, message string) error {
		return &ValidationError{strings.TrimSuffix("claims/"+field, "/"), code, message}
	}
	switch {
	case len(a.Claims) == 0:
		return nil
	case a.Type == SAML:
		return refuse("", "invalid", "must be empty for the type saml, which has attribute_statements")
	case len(a.Claims) > maxClaims:
		return refuse("", "too_many", fmt.Sprintf("must be at most %d", maxClaims))
	}
	for i, c := range a.Claims {
		at := fmt.Sprint(i, "/")
		switch {
		case !isClaimName(c.Name):
			return refuse(at+"name", "invalid", fmt.Sprintf("must have 1 to %d visible ASCII characters", maxClaimName))
		case ReservedClaim(c.Name):
			return refuse(at+"name", "reserved", fmt.Sprintf("cannot be %s, which the protocols define", c.Name))
		case len(c.Where) == 0 || slices.ContainsFunc(c.Where, func(p ClaimPlace) bool { return !slices.Contains(ClaimPlaces, p) }):
			return refuse(at+"where", "unknown_value", fmt.Sprintf("must be one or more of %q", ClaimPlaces))
		case c.Scope != "" && a.Registration == nil && !slices.Contains(a.AllowedScopes, c.Scope): // a registered client changes its scopes itself
			return refuse(at+"scope", "unknown_value", "must be one of allowed_scopes")
		case c.Scope == "" && !a.FirstParty:
			return refuse(at+"scope", "required", "is required of an application that is not first_party, because users agree to scopes")
		}
		for _, earlier := range a.Claims[:i] {
			if earlier.Name == c.Name && slices.ContainsFunc(c.Where, func(p ClaimPlace) bool { return slices.Contains(earlier.Where, p) }) {
				return refuse(at+"name", "taken", fmt.Sprintf("cannot be %s, which another claim has in the same place", c.Name))
			}
		}
		if field, message := c.Source.fault(); message != "" {
			return refuse(at+"source"+field, "invalid", message)
		}
	}
	return nil
}

// fault returns what is wrong with a source, and in which of its members.
func (s ClaimSource) fault() (field, message string) {
	set := 0
	for _, is := range []bool{s.Attribute != "", s.Groups != "", s.Relations != nil, s.Resources != nil} {
		if is {
			set++
		}
	}
	custom, isCustom := strings.CutPrefix(s.Attribute, AttributePrefix)
	named := func(text string) bool { return text != "" && len(text) <= maxClaimName && visible(text) }
	switch {
	case set != 1:
		return "", "must have one of the members attribute, groups, relations and resources"
	case s.Attribute != "" && len(s.Attribute) > maxText, isCustom && slices.Contains(strings.Split(custom, "."), ""), s.Attribute != "" && !isCustom && !slices.Contains(ClaimAttributes, s.Attribute):
		return "/attribute", fmt.Sprintf("must be attributes.<name>, of at most %d bytes, or one of %q", maxText, ClaimAttributes)
	case s.Groups != "" && !slices.Contains(GroupNames, s.Groups):
		return "/groups", fmt.Sprintf("must be one of %q", GroupNames)
	case s.Resources != nil && (!named(s.Resources.Type) || !named(s.Resources.Action)):
		return "/resources", fmt.Sprintf("must have a type and an action, of 1 to %d visible ASCII characters", maxClaimName)
	case s.Relations == nil:
		return "", ""
	case !named(s.Relations.Type) || s.Relations.ID == "" || len(s.Relations.ID) > engine.MaxID:
		return "/relations", fmt.Sprintf("must have a type, of 1 to %d visible ASCII characters, and an id, of 1 to %d bytes", maxClaimName, engine.MaxID)
	case len(s.Relations.Names) > maxRelationNames || slices.ContainsFunc(s.Relations.Names, func(name string) bool { return !named(name) }):
		return "/relations/names", fmt.Sprintf("must be at most %d, each of 1 to %d visible ASCII characters", maxRelationNames, maxClaimName)
	}
	return "", ""
}

// MayRename fails with [*engine.NameInUseError] if a claim of an application names a type whose
// name would change: it would have no value any more. Relations and actions keep their former
// names.
func (s *Registry) MayRename(ctx context.Context, tenantID string, renames []schema.Rename) error {
	apps, err := selectClaiming(ctx, s.db, tenantID)
	if err != nil {
		return fmt.Errorf("read claims of applications: %w", err)
	}
	for _, a := range apps {
		for _, c := range a.Claims {
			for _, r := range renames {
				if r.Type == "" && (c.Source.Relations != nil && c.Source.Relations.Type == r.From || c.Source.Resources != nil && c.Source.Resources.Type == r.From) {
					return &engine.NameInUseError{Type: r.From, By: tuplestore.Object{Type: schema.ApplicationType, ID: a.ClientID}}
				}
			}
		}
	}
	return nil
}

// claimNames returns the names of the configured claims, which discovery lists, sorted and
// separated by spaces.
func (a Application) claimNames() string {
	var names []string
	for _, c := range a.Claims {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}
