package identity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/ccojocar/zxcvbn-go/frequency"
	"golang.org/x/text/unicode/norm"

	"stonetown/identity/breached"
)

// Policy says which passwords are refused. Its shape follows OWASP ASVS 5.0 §6.2: a
// length, and nothing that is easily guessed, but no rules of composition.
type Policy struct {
	MinLength int `json:"min_length"` // in characters, after NFC
	MaxLength int `json:"max_length"`
}

// How far a tenant's policy may go.
const (
	LeastMinLength, MostMinLength = 8, 64
	LeastMaxLength, MostMaxLength = 64, 256
)

// Rule is a rule of a policy.
type Rule string

const (
	MinLength          Rule = "min_length"
	MaxLength          Rule = "max_length"
	Common             Rule = "common"              // among the passwords that most people choose
	ContainsIdentifier Rule = "contains_identifier" // or names, of the user
	Breached           Rule = "breached"            // among those that were stolen somewhere
)

// PolicyError says which rules a password breaks.
type PolicyError struct {
	Policy     Policy
	Violations []Rule
}

func (e *PolicyError) Error() string {
	var parts []string
	for _, rule := range e.Violations {
		parts = append(parts, map[Rule]string{
			MinLength:          fmt.Sprintf("has fewer than %d characters", e.Policy.MinLength),
			MaxLength:          fmt.Sprintf("has more than %d characters", e.Policy.MaxLength),
			Common:             "is one of the most common passwords",
			ContainsIdentifier: "contains the user's name or e-mail address",
			Breached:           "appears in a list of stolen passwords",
		}[rule])
	}
	return "the password " + strings.Join(parts, " and ")
}

// NewPassword hashes a password that somebody chose for a user, if the tenant's policy
// allows it and it is not known to be breached. It fails with [*PolicyError], or as
// [HashPassword] does.
func (d *Directory) NewPassword(ctx context.Context, tenantID, password string, u User) (PasswordHash, error) {
	p, err := d.obeys(ctx, tenantID, password, u)
	if err != nil {
		return "", err
	}
	found, err := d.breached.Contains(ctx, breached.DigestOf(password))
	if err != nil { // a password must not depend on somebody else's service
		d.log.WarnContext(ctx, "password accepted without a breach check", "tenant", tenantID, "error", err)
	}
	if found {
		return "", &PolicyError{p, []Rule{Breached}}
	}
	return HashPassword(ctx, password)
}

// obeys fails with [*PolicyError] if a tenant's policy does not allow a password.
func (d *Directory) obeys(ctx context.Context, tenantID, password string, u User) (Policy, error) {
	settings, err := d.Settings(ctx, tenantID)
	if err != nil {
		return Policy{}, err
	}
	p := settings.PasswordPolicy
	if violations := p.violations(password, u); violations != nil {
		return p, &PolicyError{p, violations}
	}
	return p, nil
}

func (p Policy) violations(password string, u User) (broken []Rule) {
	length := utf8.RuneCountInString(norm.NFC.String(password))
	if length < p.MinLength {
		broken = append(broken, MinLength)
	}
	if length > p.MaxLength || len(password) > maxPassword {
		broken = append(broken, MaxLength)
	}
	folded := fold(password)
	if commonPasswords()[folded] {
		broken = append(broken, Common)
	}
	if containsIdentifier(folded, u) {
		broken = append(broken, ContainsIdentifier)
	}
	return broken
}

// commonPasswords are those that are chosen most often.
var commonPasswords = sync.OnceValue(func() map[string]bool {
	list := frequency.Lists["Passwords"].List
	common := make(map[string]bool, len(list))
	for _, password := range list {
		common[fold(password)] = true
	}
	return common
})

// shortIdentifier is how many characters a word must have to count as an identifier.
const shortIdentifier = 4

// containsIdentifier reports whether a folded password is little more than what others know of
// the user: half of it or more is the address, a name, or words of these, however they are
// separated.
func containsIdentifier(folded string, u User) bool {
	var known []string
	local, _, _ := strings.Cut(u.Email, "@")
	for _, text := range []string{u.Email, local, u.Name, u.GivenName, u.FamilyName} {
		words := strings.FieldsFunc(fold(text), separates)
		known = append(append(known, words...), strings.Join(words, ""))
	}
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) }) // the longest first
	rest := strings.Join(strings.FieldsFunc(folded, separates), "")
	covered := 0
	for _, word := range known {
		n := utf8.RuneCountInString(word)
		if found := strings.Count(rest, word); n >= shortIdentifier && found > 0 {
			covered += n * found
			rest = strings.ReplaceAll(rest, word, " ")
		}
	}
	return covered > 0 && 2*covered >= utf8.RuneCountInString(folded)
}

// separates reports whether a character stands between words.
func separates(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
