package subscription

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"stonetown/internal/eventlog"
)

func TestPatterns(t *testing.T) {
	for pattern, want := range map[string][]string{
		"*":                               {"user.created", "user.deleted", "resource.created", "resource_type.created", "test.ping"},
		"user.*":                          {"user.created", "user.deleted"},
		"resource.*":                      {"resource.created"}, // and not resource_type
		"user.created":                    {"user.created"},
		"security.breach_incident_opened": nil,
	} {
		if err := checkPattern(pattern); err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		var got []string
		for _, typ := range []string{"user.created", "user.deleted", "resource.created", "resource_type.created", "test.ping"} {
			if matches(pattern, typ) {
				got = append(got, typ)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s matches %v, want %v", pattern, got, want)
		}
	}
	for _, pattern := range []string{"", "user", "user.", "*.*", "*.created", "user.*.x", "User.created", "user.created ", "user.unknown", "usr.*", "user.**", ".*", "us*"} {
		var unknown *UnknownEventError
		if err := checkPattern(pattern); !errors.As(err, &unknown) || unknown.Pattern != pattern {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// A pattern that is accepted is *, a type, or the category of one.
func FuzzPattern(f *testing.F) {
	for _, pattern := range []string{"*", "user.*", "user.created", "*.*", "user.", "a.*.*", "\x00", "user.*\n", strings.Repeat("user.", 100)} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		if checkPattern(pattern) != nil {
			return
		}
		known := pattern == "*"
		for _, typ := range eventlog.Types() {
			known = known || pattern == string(typ) || pattern == typ.Category()+".*"
		}
		if !known {
			t.Errorf("%q is accepted", pattern)
		}
	})
}
