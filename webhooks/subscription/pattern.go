package subscription

import (
	"fmt"
	"slices"
	"strings"

	"stonetown/internal/eventlog"
)

// all is the pattern that matches every type of event.
const all = "*"

// matches reports whether a pattern matches a type of event: *, category.*, or the type.
func matches(pattern, eventType string) bool {
	if category, ok := strings.CutSuffix(pattern, ".*"); ok {
		found, _, _ := strings.Cut(eventType, ".")
		return found == category
	}
	return pattern == all || pattern == eventType
}

// UnknownEventError is returned for a pattern that matches no type of event.
type UnknownEventError struct{ Pattern string }

func (e *UnknownEventError) Error() string {
	return fmt.Sprintf("the pattern %q matches no event type; use *, a type, or category.*", e.Pattern)
}

// checkPattern fails with [*UnknownEventError].
func checkPattern(pattern string) error {
	known := slices.ContainsFunc(eventlog.Types(), func(t eventlog.Type) bool { return matches(pattern, string(t)) })
	if !known {
		return &UnknownEventError{pattern}
	}
	return nil
}
