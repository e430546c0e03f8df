// Package claims maps what an identity provider states about a user to the profile of an
// account.
//
// A provider sends claims: a JSON object (OpenID Connect, OAuth 2.0) or attributes with values
// (SAML 2.0). A [Mapping] has one rule for each target of the profile. The source of a rule is a
// path into the object, or the name of an attribute:
//
//	email           $.email
//	given_name      $.name.first
//	groups          $['https://example.com/groups']
//	attributes.team $.teams[0]
//
// Paths are singular queries of RFC 9535 (JSONPath): the root, names and indexes, and no blanks.
// Targets without a rule have the default of the kind of provider ([Preset]).
//
// Claims are input of another party. [Mapping.Map] never fails: a value that a profile cannot
// have is left out, with a [Warning]. Its results have the limits of profiles, however large the
// claims are.
package claims

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stonetown/internal/text"
)

// The limits of a mapping.
const (
	MaxRules  = 100
	maxSource = 512 // bytes of a path or of the name of an attribute
	maxTarget = 100 // bytes of attributes.x
)

// attributesPrefix begins the targets that are attributes of the account.
const attributesPrefix = "attributes."

// Format is the form of the claims of a provider.
type Format int

// The formats.
const (
	Object     Format = iota // a JSON object; sources are paths
	Attributes               // SAML attributes; sources are their names, compared bytewise
)

// aliases are other names of targets.
var aliases = map[string]string{"first_name": "given_name", "last_name": "family_name"}

// targets are the targets other than attributes.x.
var targets = []string{"email", "email_verified", "name", "given_name", "family_name", "picture", "locale", "groups"}

// The reasons of an [Error].
const (
	Syntax           = "syntax"            // the source is neither a path nor a name
	UnknownTarget    = "unknown_target"    // the key is no target
	DuplicateTarget  = "duplicate_target"  // two keys are names of one target
	UnsupportedClaim = "unsupported_claim" // the provider does not list the claim that the path begins with
	TooMany          = "too_many"          // more than MaxRules
)

// Error is returned for an invalid mapping.
type Error struct {
	Key     string // of the rule; empty if there are too many
	Reason  string
	Message string
}

func (e *Error) Error() string {
	if e.Key == "" {
		return e.Message
	}
	return fmt.Sprintf("%q %s", e.Key, e.Message)
}

// rule is the sources of one target; the first that has a value counts.
type rule struct {
	key     string // as it was set; the target for a default
	target  string
	sources []source
	set     bool // by the mapping, not a default
}

// source is a place in claims.
type source struct {
	path []step // of an object
	name string // of an attribute
}

// Mapping is a valid mapping. The zero value maps nothing. It is safe for concurrent use.
type Mapping struct {
	format Format
	rules  []rule // ordered by target
}

// New returns the mapping of rules, by their targets, over the defaults of a preset. It fails
// with [*Error].
func New(preset Preset, rules map[string]string) (Mapping, error) {
	m := Mapping{format: preset.format}
	if len(rules) > MaxRules {
		return m, &Error{Reason: TooMany, Message: fmt.Sprintf("a mapping has at most %d rules", MaxRules)}
	}
	keys := map[string]string{} // by target
	for _, key := range slices.Sorted(maps.Keys(rules)) {
		target, err := targetOf(key)
		if err != nil {
			return m, err
		}
		if other, ok := keys[target]; ok {
			return m, &Error{key, DuplicateTarget, fmt.Sprintf("and %q are names of one target", other)}
		}
		keys[target] = key
		from, err := sourceOf(preset.format, rules[key])
		if err != nil {
			return m, &Error{key, Syntax, err.Error()}
		}
		m.rules = append(m.rules, rule{key, target, []source{from}, true})
	}
	for _, r := range preset.rules {
		_, set := keys[r.target]
		// The default email_verified is about the default address, not about another claim.
		if set || r.target == "email_verified" && rules[keys["email"]] != "" && !preset.has("email", rules[keys["email"]]) {
			continue
		}
		m.rules = append(m.rules, r)
	}
	slices.SortFunc(m.rules, func(a, b rule) int { return strings.Compare(a.target, b.target) })
	return m, nil
}

// Supports fails with [*Error] if a rule of the mapping itself, other than a default, begins
// with a claim that is not in a list, such as claims_supported of a provider (OpenID Connect
// Discovery 1.0 §3).
func (m Mapping) Supports(list []string) error {
	for _, r := range m.rules {
		if root := r.sources[0].root(); r.set && !slices.Contains(list, root) {
			return &Error{r.key, UnsupportedClaim, fmt.Sprintf("begins with the claim %q, which is not in claims_supported of the provider", root)}
		}
	}
	return nil
}

// root returns the claim that a source begins with.
func (s source) root() string {
	if s.path == nil {
		return s.name
	}
	return s.path[0].name
}

// targetOf returns the target that a key names.
func targetOf(key string) (string, error) {
	target := key
	if alias, ok := aliases[key]; ok {
		target = alias
	}
	if slices.Contains(targets, target) {
		return target, nil
	}
	name, ok := strings.CutPrefix(target, attributesPrefix)
	if !ok || name == "" || len(target) > maxTarget || !text.IsLine(name) {
		return "", &Error{key, UnknownTarget, fmt.Sprintf("is not one of %q, and not attributes.x of one line and at most %d bytes", targets, maxTarget)}
	}
	return target, nil
}

// sourceOf parses the source of a rule.
func sourceOf(format Format, from string) (source, error) {
	if from == "" || len(from) > maxSource {
		return source{}, fmt.Errorf("must have a source of 1 to %d bytes", maxSource)
	}
	if format == Attributes {
		if !text.IsLine(from) {
			return source{}, fmt.Errorf("must name an attribute, in one line")
		}
		return source{name: from}, nil
	}
	path, err := parsePath(from)
	if err != nil {
		return source{}, fmt.Errorf("must be a path such as $.a.b, $['x'] or $.x[0]: %w", err)
	}
	return source{path: path}, nil
}
