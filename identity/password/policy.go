package password

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/ccojocar/zxcvbn-go/data"
	"github.com/go-json-experiment/json"
	"golang.org/x/text/unicode/norm"

	"stonetown/internal/text"
)

// Policy is the password policy of a tenant. As OWASP ASVS 5.0 §6.2 recommends, it refuses
// short and easily guessed passwords and has no composition rules.
type Policy struct {
	MinLength int `json:"min_length"` // in characters, after NFC
	MaxLength int `json:"max_length"`
}

// The bounds of the lengths that a tenant can choose.
const (
	LeastMinLength, MostMinLength = 8, 64
	LeastMaxLength, MostMaxLength = 64, 256
)

// Rule is a rule of a policy.
type Rule string

// The rules.
const (
	RuleMinLength          Rule = "min_length"
	RuleMaxLength          Rule = "max_length"
	RuleCommon             Rule = "common"              // the password is a common one
	RuleContainsIdentifier Rule = "contains_identifier" // it consists of the address or the names of the user
	RuleBreached           Rule = "breached"            // it was part of a data breach
)

// PolicyError names the rules that a password violates.
type PolicyError struct {
	Policy     Policy
	Violations []Rule
}

func (e *PolicyError) Error() string {
	var parts []string
	for _, rule := range e.Violations {
		parts = append(parts, map[Rule]string{
			RuleMinLength:          fmt.Sprintf("has fewer than %d characters", e.Policy.MinLength),
			RuleMaxLength:          fmt.Sprintf("has more than %d characters", e.Policy.MaxLength),
			RuleCommon:             "is one of the most common passwords",
			RuleContainsIdentifier: "contains the user's name or e-mail address",
			RuleBreached:           "appears in a list of stolen passwords",
		}[rule])
	}
	return "the password " + strings.Join(parts, " and ")
}

// Check fails with [*PolicyError] if the policy does not allow a password. identifiers are the
// address and the names of the user. Check does not look the password up among breached ones.
func (p Policy) Check(password string, identifiers []string) error {
	if violations := p.violations(password, identifiers); violations != nil {
		return &PolicyError{p, violations}
	}
	return nil
}

func (p Policy) violations(password string, identifiers []string) (broken []Rule) {
	length := utf8.RuneCountInString(norm.NFC.String(password))
	if length < p.MinLength {
		broken = append(broken, RuleMinLength)
	}
	if length > p.MaxLength || len(password) > maxLength {
		broken = append(broken, RuleMaxLength)
	}
	folded := text.Fold(password)
	if commonPasswords()[folded] {
		broken = append(broken, RuleCommon)
	}
	if containsIdentifier(folded, identifiers) {
		broken = append(broken, RuleContainsIdentifier)
	}
	return broken
}

// commonPasswords are the most frequent passwords of published data breaches. They are read on
// first use: the package of the library that has them ready reads five lists at every start, which
// takes longer than all other preparations together.
var commonPasswords = sync.OnceValue(func() map[string]bool {
	var file struct {
		List []string `json:"List"`
	}
	if err := json.Unmarshal(data.MustAsset("data/Passwords.json"), &file); err != nil {
		panic("the list of common passwords cannot be read: " + err.Error())
	}
	common := make(map[string]bool, len(file.List))
	for _, password := range file.List {
		common[text.Fold(password)] = true
	}
	return common
})

// minIdentifier is the length from which a word counts as an identifier, in characters.
const minIdentifier = 4

// containsIdentifier reports whether at least half of a folded password consists of the
// identifiers of the user or of words of them, with any separators.
func containsIdentifier(folded string, identifiers []string) bool {
	var known []string
	for _, identifier := range identifiers {
		words := strings.FieldsFunc(text.Fold(identifier), separates)
		known = append(append(known, words...), strings.Join(words, ""))
	}
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) }) // the longest first
	rest := strings.Join(strings.FieldsFunc(folded, separates), "")
	covered := 0
	for _, word := range known {
		n := utf8.RuneCountInString(word)
		if found := strings.Count(rest, word); n >= minIdentifier && found > 0 {
			covered += n * found
			rest = strings.ReplaceAll(rest, word, " ")
		}
	}
	return covered > 0 && 2*covered >= utf8.RuneCountInString(folded)
}

// separates reports whether a character separates words.
func separates(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
