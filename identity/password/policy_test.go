package password

import (
	"slices"
	"testing"
)

// A password must not consist of the address or the names of its user.
func TestContainsIdentifier(t *testing.T) {
	identifiers := []string{"ann.lee@post.example.com", "ann.lee", "Ann-Marie Lee", "Ann-Marie", "Montgomery"}
	for password, refused := range map[string]bool{
		"ann.lee@post.example.com": true, "ANN.LEE@post.example.com": true, "ann.lee@post.example.com1!": true, "annleepostexamplecom": true, "ann.lee1": true, "ann_lee_2026": true,
		"Ann-Marie Lee": true, "annmarielee": true, "Lee, Ann-Marie": true, "AnnMarieMontgomery1": true, "montgomery1": true, "marie marie": true, "post.example": true,
		"a montgomery among many other words": false, "correct horse battery": false, "lee is a short name": false, "!!!!!!!!!!": false, "example of something else": false,
	} {
		broken := Policy{MinLength: 8, MaxLength: 128}.violations(password, identifiers)
		if slices.Contains(broken, RuleContainsIdentifier) != refused {
			t.Errorf("%q: %v", password, broken)
		}
	}
	if broken := (Policy{MinLength: 8, MaxLength: 128}).violations("correct horse", nil); broken != nil {
		t.Errorf("without identifiers: %v", broken)
	}
}
