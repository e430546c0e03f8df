package identity

import (
	"slices"
	"testing"
)

// Nobody's password is what everybody knows of them.
func TestContainsIdentifier(t *testing.T) {
	u := User{Email: "ann.lee@post.example.com", Profile: Profile{Name: "Ann-Marie Lee", GivenName: "Ann-Marie", FamilyName: "Montgomery"}}
	for password, refused := range map[string]bool{
		"ann.lee@post.example.com": true, "ANN.LEE@post.example.com": true, "ann.lee@post.example.com1!": true, "annleepostexamplecom": true, "ann.lee1": true, "ann_lee_2026": true,
		"Ann-Marie Lee": true, "annmarielee": true, "Lee, Ann-Marie": true, "AnnMarieMontgomery1": true, "montgomery1": true, "marie marie": true, "post.example": true,
		"a montgomery among many other words": false, "correct horse battery": false, "lee is a short name": false, "!!!!!!!!!!": false, "example of something else": false,
	} {
		broken := Policy{MinLength: 8, MaxLength: 128}.violations(password, u)
		if slices.Contains(broken, ContainsIdentifier) != refused {
			t.Errorf("%q: %v", password, broken)
		}
	}
	if broken := (Policy{MinLength: 8, MaxLength: 128}).violations("correct horse", User{}); broken != nil {
		t.Errorf("of nobody: %v", broken)
	}
}
