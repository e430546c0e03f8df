package applications

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/profile"
	"stonetown/api/web"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/oauth"
)

// Errors answers for the surface.
var Errors = web.Surface{Translate: translate}

func translate(err error) *web.Error {
	bad := func(code, message string, details web.Details) *web.Error {
		return &web.Error{Status: http.StatusBadRequest, Code: code, Message: message, Details: details}
	}
	var field *oauth.SetupError
	var uri *oauth.RedirectURIError
	var unknown *oauth.UnknownScopesError
	switch {
	case errors.Is(err, oauth.ErrApplicationNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "application_not_found", Message: "there is no such application"}
	case errors.Is(err, oauth.ErrNotApplicable):
		return bad("not_applicable", oauth.ErrNotApplicable.Error(), nil)
	case errors.As(err, &uri):
		code := "redirect_uri_invalid"
		if uri.Forbidden {
			code = "redirect_uri_forbidden"
		}
		return bad(code, uri.Error(), web.Details{"uri": uri.URI, "reason": uri.Reason})
	case errors.As(err, &unknown):
		return bad("scope_unknown", unknown.Error(), web.Details{"scopes": unknown.Scopes})
	case errors.As(err, &field):
		return web.ValidationFailed(web.FieldError{Field: field.Field, Code: field.Code, Message: field.Error()})
	}
	return nil
}

// setup is what both forms say about an application, as it was sent.
type setup struct {
	description, redirectURIs, allowedOrigins, allowedScopes, audience, accessTokenTTL, refreshTokenTTL, signingAlg, tags, tokenExchange jsontext.Value
}

// read reads a setup. What is absent changes nothing, and null is the default again.
func (s setup) read() (change func(*oauth.Application), err error) {
	var v web.Validation
	var changes []func(*oauth.Application)
	text := func(name string, value jsontext.Value, set func(*oauth.Application, string)) {
		member(&v, name, value, "must be a string or null", func(a *oauth.Application, text string, _ bool) { set(a, text) }, &changes)
	}
	list := func(name string, value jsontext.Value, set func(*oauth.Application, []string)) {
		member(&v, name, value, "must be a list of strings, or null", func(a *oauth.Application, list []string, _ bool) { set(a, list) }, &changes)
	}
	seconds := func(name string, value jsontext.Value, otherwise time.Duration, set func(*oauth.Application, time.Duration)) {
		member(&v, name, value, "must be a whole number of seconds, or null", func(a *oauth.Application, n int32, given bool) {
			if !given {
				set(a, otherwise)
				return
			}
			set(a, max(time.Second, time.Duration(n)*time.Second)) // below that is out of range, too, but not absent
		}, &changes)
	}
	text("description", s.description, func(a *oauth.Application, text string) { a.Description = text })
	text("audience", s.audience, func(a *oauth.Application, text string) { a.Audience = text })
	list("redirect_uris", s.redirectURIs, func(a *oauth.Application, list []string) { a.RedirectURIs = list })
	list("allowed_origins", s.allowedOrigins, func(a *oauth.Application, list []string) { a.AllowedOrigins = list })
	list("tags", s.tags, func(a *oauth.Application, list []string) { a.Tags = list })
	member(&v, "allowed_scopes", s.allowedScopes, "must be a list of strings, or null", func(a *oauth.Application, list []string, given bool) {
		if a.AllowedScopes = list; !given {
			a.AllowedScopes = a.Type.DefaultScopes()
		}
	}, &changes)
	member(&v, "access_token_signing_alg", s.signingAlg, "must be a string or null", func(a *oauth.Application, alg oauth.Alg, given bool) {
		if a.SigningAlg = alg; !given {
			a.SigningAlg = oauth.ES256
		}
	}, &changes)
	s.readTokenExchange(&v, &changes)
	seconds("access_token_ttl_s", s.accessTokenTTL, oauth.DefaultAccessTokenTTL, func(a *oauth.Application, ttl time.Duration) { a.AccessTokenTTL = ttl })
	seconds("refresh_token_ttl_s", s.refreshTokenTTL, oauth.DefaultRefreshTokenTTL, func(a *oauth.Application, ttl time.Duration) { a.RefreshTokenTTL = ttl })
	return func(a *oauth.Application) {
		for _, change := range changes {
			change(a)
		}
	}, v.Err()
}

// readTokenExchange reads what an application may exchange tokens for. It is changed whole:
// members that are absent have their defaults.
func (s setup) readTokenExchange(v *web.Validation, changes *[]func(*oauth.Application)) {
	type actAs struct {
		Enabled             bool      `json:"enabled"`
		AllowedSubjectTypes *[]string `json:"allowed_subject_types"`
	}
	type form struct {
		Enabled                     bool     `json:"enabled"`
		AllowedAudiences            []string `json:"allowed_audiences"`
		RequireClientAuthentication *bool    `json:"require_client_authentication"`
		ActAs                       actAs    `json:"act_as"`
	}
	member(v, "token_exchange", s.tokenExchange, "must be null or an object with enabled, allowed_audiences, require_client_authentication and act_as", func(a *oauth.Application, f form, _ bool) {
		t := a.Type.DefaultTokenExchange()
		t.Enabled, t.AllowedAudiences, t.ActAs.Enabled = f.Enabled, orEmpty(f.AllowedAudiences), f.ActAs.Enabled
		if f.RequireClientAuthentication != nil {
			t.RequireClientAuthentication = *f.RequireClientAuthentication
		}
		if f.ActAs.AllowedSubjectTypes != nil {
			t.ActAs.AllowedSubjectTypes = orEmpty(*f.ActAs.AllowedSubjectTypes)
		}
		a.TokenExchange = t
	}, changes)
}

// member reads one member of a setup, if it is there; set gets false for null.
func member[T any](v *web.Validation, name string, value jsontext.Value, must string, set func(a *oauth.Application, value T, given bool), changes *[]func(*oauth.Application)) {
	var read T
	switch value.Kind() {
	case 0:
		return
	case 'n':
	default:
		if json.Unmarshal(value, &read) != nil {
			v.Add(name, "type_invalid", must)
			return
		}
	}
	given := value.Kind() != 'n'
	*changes = append(*changes, func(a *oauth.Application) { set(a, read, given) })
}

// maxWords is the longest text that is looked for, in bytes.
const maxWords = 200

// filterOf reads what a list is asked for.
func filterOf(p ListApplicationsParams) (oauth.ApplicationFilter, error) {
	var v web.Validation
	f := oauth.ApplicationFilter{Type: oauth.ApplicationType(p.Type), State: oauth.ApplicationState(p.State), Query: p.Q}
	if f.Type != "" && !slices.Contains(oauth.ApplicationTypes, f.Type) {
		v.Add("type", "unknown_value", fmt.Sprintf("must be one of %q", oauth.ApplicationTypes))
	}
	if f.State != "" && f.State != oauth.Enabled && f.State != oauth.Disabled {
		v.Add("state", "unknown_value", "must be enabled or disabled")
	}
	if p.Q != "" && v.Text("", "q", p.Q) && len(p.Q) > maxWords {
		v.Add("q", "too_long", fmt.Sprintf("must have at most %d bytes", maxWords))
	}
	return f, v.Err()
}

func meta(call *web.Call) Meta { return Meta{RequestID: call.RequestID} }

func read(call *web.Call, a oauth.Application) ApplicationRead {
	return ApplicationRead{Data: wire(call, a), Meta: meta(call)}
}

// wire is an application as clients get it, with what the caller may do with it.
func wire(call *web.Call, a oauth.Application) Application {
	w := public(a)
	write := call.Principal.Scopes.Has("applications:write")
	w.CanRotateSecret, w.CanDisable, w.CanDelete = write && a.Type.Confidential(), write && a.State == oauth.Enabled, write
	return w
}

// public is an application as events have it.
func public(a oauth.Application) Application {
	w := Application{
		ID: a.ID, ClientID: a.ClientID, Name: a.Name, Type: string(a.Type), State: string(a.State), Description: a.Description,
		RedirectUris: orEmpty(a.RedirectURIs), AllowedOrigins: orEmpty(a.AllowedOrigins), AllowedScopes: orEmpty(a.AllowedScopes), Tags: orEmpty(a.Tags),
		Audience: profile.OrNull(a.Audience), AccessTokenTTLS: int(a.AccessTokenTTL.Seconds()), RefreshTokenTTLS: int(a.RefreshTokenTTL.Seconds()),
		AccessTokenSigningAlg: string(a.SigningAlg), GrantTypes: orEmpty(a.GrantTypes()),
		CreatedAt: web.Timestamp(a.CreatedAt), UpdatedAt: web.Timestamp(a.UpdatedAt), SecretLastRotatedAt: profile.TimeOrNull(a.SecretRotatedAt),
	}
	w.TokenExchange.Enabled, w.TokenExchange.AllowedAudiences = a.TokenExchange.Enabled, orEmpty(a.TokenExchange.AllowedAudiences)
	w.TokenExchange.RequireClientAuthentication = a.TokenExchange.RequireClientAuthentication
	w.TokenExchange.ActAs.Enabled, w.TokenExchange.ActAs.AllowedSubjectTypes = a.TokenExchange.ActAs.Enabled, orEmpty(a.TokenExchange.ActAs.AllowedSubjectTypes)
	w.AuditSummary.LastChangeAt, w.AuditSummary.LastChangeBy, w.AuditSummary.LastUsedAt = web.Timestamp(a.UpdatedAt), profile.OrNull(a.ChangedBy), profile.TimeOrNull(a.LastUsedAt)
	return w
}

func orEmpty(list []string) []string { return append([]string{}, list...) }

// event is the data of an event about an application.
type event struct {
	Application any               `json:"application"`
	Changes     map[string][2]any `json:"changes,omitzero"` // from, to
}

// changed lets the events of a change commit with it: one for a new state, and one for
// the rest.
func changed(call *web.Call) func(before, after oauth.Application, b *sqldb.Batch) {
	return func(before, after oauth.Application, b *sqldb.Batch) {
		changes := web.Difference(public(before), public(after))
		delete(changes, "updated_at")
		delete(changes, "audit_summary")
		var events []eventlog.Event
		if before.State != after.State {
			t := eventlog.ApplicationEnabled
			if after.State == oauth.Disabled {
				t = eventlog.ApplicationDisabled
			}
			events = append(events, call.Event(t, event{public(after), map[string][2]any{"state": changes["state"]}}))
			delete(changes, "state")
		}
		if len(changes) > 0 {
			events = append(events, call.Event(eventlog.ApplicationUpdated, event{public(after), changes}))
		}
		eventlog.Append(b, call.Tenant.ID, events...)
	}
}
