package subscription

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"stonetown/engine"
	"stonetown/internal/outbound"
	"stonetown/internal/text"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// The limits of a subscription.
const (
	MaxSubscriptions = 100 // of a tenant
	MaxEvents        = 50  // patterns
	MaxSubjects      = 20  // owners, and viewers
	MaxName          = 200 // bytes
	MaxDescription   = 1000
	maxAction        = 64
)

// ErrTooMany is returned if a tenant has [MaxSubscriptions].
var ErrTooMany = fmt.Errorf("a tenant has at most %d webhook subscriptions", MaxSubscriptions)

// FieldError is returned for a field with a value that is not accepted.
type FieldError struct{ Field, Code, Message string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// URLError is returned for a URL to which nothing is delivered.
type URLError struct {
	Reason  string // scheme, host, port, blocked_address or url
	Message string
}

func (e *URLError) Error() string { return "url: " + e.Message }

// validate fails with [*FieldError], [*URLError] or [*UnknownEventError].
func (s *Subscription) validate(client *outbound.Client) error {
	if s.Name == "" || len(s.Name) > MaxName || !text.IsLine(s.Name) {
		return &FieldError{"name", "invalid", fmt.Sprintf("must be one line of 1 to %d bytes, without control characters", MaxName)}
	}
	if len(s.Description) > MaxDescription || !text.IsParagraphs(s.Description) {
		return &FieldError{"description", "invalid", fmt.Sprintf("must be text of at most %d bytes, without control characters", MaxDescription)}
	}
	if err := checkURL(client, s.URL); err != nil {
		return err
	}
	if len(s.Events) == 0 || len(s.Events) > MaxEvents {
		return &FieldError{"events", "out_of_range", fmt.Sprintf("must have 1 to %d patterns", MaxEvents)}
	}
	for i, pattern := range s.Events {
		if err := checkPattern(pattern); err != nil {
			return err
		}
		if slices.Contains(s.Events[:i], pattern) {
			return &FieldError{"events", "duplicate", fmt.Sprintf("has the pattern %q twice", pattern)}
		}
	}
	if v := s.VisibleTo; v != nil {
		if v.Action == "" || len(v.Action) > maxAction || !text.IsLine(v.Action) {
			return &FieldError{"visible_to/action", "invalid", fmt.Sprintf("must be one line of 1 to %d bytes", maxAction)}
		}
		if err := checkSubject("visible_to/subject", v.Subject); err != nil {
			return err
		}
	}
	for field, subjects := range map[string][]Subject{"owners": s.Owners, "viewers": s.Viewers} {
		if len(subjects) > MaxSubjects {
			return &FieldError{field, "too_many", fmt.Sprintf("must be at most %d", MaxSubjects)}
		}
		for i, subject := range subjects {
			if err := checkManager(field, subject); err != nil {
				return err
			}
			if slices.Contains(subjects[:i], subject) {
				return &FieldError{field, "duplicate", fmt.Sprintf("names %s twice", subject.Tuple())}
			}
		}
	}
	return nil
}

// checkURL fails with [*URLError].
func checkURL(client *outbound.Client, url string) error {
	err := client.CheckURL(url)
	if err == nil {
		return nil
	}
	refused := &URLError{Reason: "host", Message: "cannot be delivered to"}
	var invalid *outbound.Error
	if errors.As(err, &invalid) {
		refused.Reason = cmp.Or(invalid.Part, string(invalid.Class))
		refused.Message = errors.Unwrap(invalid).Error()
	}
	return refused
}

// checkSubject validates the form of a subject: its type need not be defined yet.
func checkSubject(field string, s Subject) error {
	for _, part := range []struct {
		text, name string
		required   bool
	}{{s.Type, "type", true}, {s.ID, "id", true}, {s.Relation, "relation", false}} {
		if part.text == "" && part.required || len(part.text) > engine.MaxID || !text.IsLine(part.text) {
			return &FieldError{field + "/" + part.name, "invalid", fmt.Sprintf("must be one line of at most %d bytes", engine.MaxID)}
		}
	}
	if s.ID == tuplestore.Wildcard {
		return &FieldError{field + "/id", "invalid", "must not be *"}
	}
	return nil
}

// checkManager validates an owner or viewer: a user, an application, or the members of a group.
func checkManager(field string, s Subject) error {
	if err := checkSubject(field, s); err != nil {
		return err
	}
	switch {
	case s.Relation == "" && (s.Type == schema.UserType || s.Type == schema.ApplicationType):
	case s.Type == schema.GroupType && s.Relation == schema.GroupMember:
	default:
		return &FieldError{field, "invalid", "must each be a user, an application, or the members of a group"}
	}
	return nil
}
