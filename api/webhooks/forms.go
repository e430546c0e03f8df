package webhooks

import (
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/web"
	"stonetown/webhooks"
	"stonetown/webhooks/delivery"
	"stonetown/webhooks/subscription"
)

// Errors is the error format of the operations.
var Errors = web.ErrorFormat{Translate: translate}

func translate(err error) *web.Error {
	for _, known := range []struct {
		err    error
		status int
		code   string
	}{
		{subscription.ErrNotFound, http.StatusNotFound, "subscription_not_found"},
		{delivery.ErrNotFound, http.StatusNotFound, "delivery_not_found"},
		{delivery.ErrDeadLetterNotFound, http.StatusNotFound, "dlq_entry_not_found"},
		{delivery.ErrDisabled, http.StatusConflict, "subscription_disabled"},
		{delivery.ErrEventGone, http.StatusConflict, "event_expired"},
	} {
		if errors.Is(err, known.err) {
			return &web.Error{Status: known.status, Code: known.code, Message: known.err.Error()}
		}
	}
	if errors.Is(err, subscription.ErrTooMany) {
		return &web.Error{
			Status: http.StatusConflict, Code: "subscription_limit_reached", Message: subscription.ErrTooMany.Error(),
			Details: web.Details{"limit": subscription.MaxSubscriptions},
		}
	}
	var notQueued *delivery.NotQueuedError
	var unknown *subscription.UnknownEventError
	var url *subscription.URLError
	var field *subscription.FieldError
	var widening *webhooks.WideningError
	switch {
	case errors.As(err, &notQueued):
		return &web.Error{Status: http.StatusConflict, Code: "dlq_entry_not_queued", Message: notQueued.Error(), Details: web.Details{"state": notQueued.State}}
	case errors.As(err, &unknown):
		return unknownEvent(unknown)
	case errors.As(err, &url):
		return &web.Error{Status: http.StatusBadRequest, Code: "webhook_url_invalid", Message: url.Error(), Details: web.Details{"reason": url.Reason}}
	case errors.As(err, &field):
		return web.ValidationFailed(web.FieldError{Field: field.Field, Code: field.Code, Message: field.Field + " " + field.Message})
	case errors.As(err, &widening):
		return &web.Error{Status: http.StatusForbidden, Code: "permission_denied", Message: widening.Error(), Details: web.Details{"required_scope": webhooks.WriteScope}}
	}
	return nil
}

func unknownEvent(e *subscription.UnknownEventError) *web.Error {
	return &web.Error{Status: http.StatusBadRequest, Code: "event_type_unknown", Message: e.Error(), Details: web.Details{"pattern": e.Pattern}}
}

// form has the members of a request, so that absent ones are told from null and empty ones.
type form map[string]jsontext.Value

// withoutNull returns the form of an operation for which null means absent.
func (f form) withoutNull() form {
	given := maps.Clone(f)
	maps.DeleteFunc(given, func(_ string, value jsontext.Value) bool { return value.Kind() == 'n' })
	return given
}

// readNew reads the members of a new subscription.
func readNew(members form) (change func(*subscription.Subscription), err error) {
	var v web.Validation
	members = members.withoutNull()
	for _, name := range []string{"name", "url", "events"} {
		if members[name] == nil {
			v.Add(name, "required", "is required")
		}
	}
	change = members.read(&v)
	return change, v.Err()
}

// readPatch reads the changes of a subscription.
func readPatch(members form) (change func(*subscription.Subscription), err error) {
	if err := web.RefuseImmutable(
		web.Member{Name: "id", Value: members["id"]}, web.Member{Name: "state", Value: members["state"]},
		web.Member{Name: "created_at", Value: members["created_at"]},
	); err != nil {
		return nil, err
	}
	var v web.Validation
	change = members.read(&v)
	return change, v.Err()
}

// read returns what the members of a form change.
func (f form) read(v *web.Validation) (change func(*subscription.Subscription)) {
	const subjects = "must be a list of objects with type, id and, where it applies, relation"
	var set []func(*subscription.Subscription)
	add := func(change func(*subscription.Subscription)) { set = append(set, change) }
	if name := member[string](f, v, "name", "must be a string"); name != nil {
		add(func(s *subscription.Subscription) { s.Name = *name })
	}
	if url := member[string](f, v, "url", "must be a string"); url != nil {
		add(func(s *subscription.Subscription) { s.URL = *url })
	}
	if events := member[[]string](f, v, "events", "must be a list of strings"); events != nil {
		add(func(s *subscription.Subscription) { s.Events = *events })
	}
	if f["description"].Kind() == 'n' {
		add(func(s *subscription.Subscription) { s.Description = "" })
	} else if text := member[string](f, v, "description", "must be a string or null"); text != nil {
		add(func(s *subscription.Subscription) { s.Description = *text })
	}
	if f["visible_to"].Kind() == 'n' {
		add(func(s *subscription.Subscription) { s.VisibleTo = nil })
	} else if visible := member[subscription.Visibility](f, v, "visible_to", "must be an object with subject and action, or null"); visible != nil {
		add(func(s *subscription.Subscription) { s.VisibleTo = visible })
	}
	if owners := member[[]subscription.Subject](f, v, "owners", subjects); owners != nil {
		add(func(s *subscription.Subscription) { s.Owners = *owners })
	}
	if viewers := member[[]subscription.Subject](f, v, "viewers", subjects); viewers != nil {
		add(func(s *subscription.Subscription) { s.Viewers = *viewers })
	}
	return func(s *subscription.Subscription) {
		for _, change := range set {
			change(s)
		}
	}
}

// member reads a member that cannot be null; nil if it is absent.
func member[T any](f form, v *web.Validation, name, must string) *T {
	return web.ReadMember[T](v, f, name, must, false)
}

// maxEntries is how many dead letters a request can name.
const maxEntries = 1000

// readSelection reads which dead letters are to be replayed.
func readSelection(members form) (delivery.Selection, error) {
	var v web.Validation
	var sel delivery.Selection
	members = members.withoutNull()
	ids := member[[]string](members, &v, "entry_ids", "must be a list of strings")
	since := member[string](members, &v, "since", "must be a string")
	until := member[string](members, &v, "until", "must be a string")
	switch {
	case ids == nil:
	case len(*ids) == 0 || len(*ids) > maxEntries: // an empty list must not mean all
		v.Add("entry_ids", "out_of_range", fmt.Sprintf("must have 1 to %d ids", maxEntries))
	case since != nil || until != nil:
		v.Add("entry_ids", "conflict", "must not be given together with since or until")
	default:
		sel.IDs = *ids
	}
	if since != nil {
		sel.Since = instant(&v, "since", *since)
	}
	if until != nil {
		sel.Until = instant(&v, "until", *until)
	}
	return sel, v.Err()
}
