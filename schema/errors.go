package schema

import "fmt"

// Error is an error in the definition of a resource type.
type Error struct {
	// Type is the resource type of the path. A change of one type can make a rewrite of
	// another invalid.
	Type string
	// Path locates the error within the type, for example
	// relations[2].rewrites[0].subtract.
	Path string
	// Reason is a stable word. Those of rewrites: unknown_kind,
	// unknown_relation, unknown_value, cycle_without_this, missing_tupleset,
	// missing_field, depth, too_many, recursion_through_exclusion. Those of other fields:
	// name_invalid, name_reserved, duplicate, subject_type_invalid, too_many.
	Reason  string
	Message string

	rewrite bool
}

func (e *Error) Error() string { return e.Message }

// IsRewrite reports whether the error is in a rewrite, not in a name or another field.
func (e *Error) IsRewrite() bool { return e.rewrite }

func fieldError(typ, path, reason, format string, args ...any) *Error {
	return &Error{Type: typ, Path: path, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func rewriteError(typ, path, reason, format string, args ...any) *Error {
	e := fieldError(typ, path, reason, format, args...)
	e.rewrite = true
	return e
}
