package applications

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/web"
	"stonetown/internal/document"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
)

// Errors is the error format of the operations.
var Errors = web.ErrorFormat{Translate: translate}

func translate(err error) *web.Error {
	bad := func(code, message string, details web.Details) *web.Error {
		return &web.Error{Status: http.StatusBadRequest, Code: code, Message: message, Details: details}
	}
	var field *client.ValidationError
	var uri *client.RedirectURIError
	var unknown *client.UnknownScopesError
	var used *client.InUseError
	switch {
	case errors.Is(err, access.ErrUserGone):
		return &web.Error{Status: http.StatusNotFound, Code: "user_not_found", Message: "user not found, or disabled"}
	case errors.Is(err, client.ErrNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "application_not_found", Message: "application not found"}
	case errors.Is(err, client.ErrNotApplicable):
		return bad("not_applicable", client.ErrNotApplicable.Error(), nil)
	case errors.As(err, &uri):
		code := "redirect_uri_invalid"
		if uri.Forbidden {
			code = "redirect_uri_forbidden"
		}
		return bad(code, uri.Error(), web.Details{"uri": uri.URI, "reason": uri.Reason})
	case errors.As(err, &unknown):
		return bad("scope_unknown", unknown.Error(), web.Details{"scopes": unknown.Scopes})
	case errors.As(err, &used):
		return &web.Error{
			Status: http.StatusConflict, Code: "application_has_active_sessions", Message: used.Error() + "; disable it, and delete it after they have ended",
			Details: web.Details{"active_sessions": used.Sessions, "latest_expires_at": document.Timestamp(used.Latest)},
		}
	case errors.As(err, &field):
		return web.ValidationFailed(web.FieldError{Field: field.Field, Code: field.Code, Message: field.Error()})
	}
	return nil
}

// form has the members of a request about an application. An absent member changes nothing,
// and null is the default.
type form map[string]jsontext.Value

// reader turns the members of a form into changes.
type reader struct {
	form
	path    string // of the object with the members
	faults  *web.Validation
	changes *[]func(*client.Application)
}

func (r *reader) add(change func(*client.Application)) { *r.changes = append(*r.changes, change) }

// read returns what a form changes.
func (f form) read() (change func(*client.Application), err error) {
	var changes []func(*client.Application)
	r := &reader{form: f, faults: new(web.Validation), changes: &changes}
	read(r, "profile", text, func(a *client.Application, p client.Profile, given bool) { // first, as it sets others
		if !given {
			p = client.DefaultProfile
		}
		a.UseProfile(p)
	})
	member(r, "name", "must be a string", func(a *client.Application) *string { return &a.Name })
	member(r, "description", text, func(a *client.Application) *string { return &a.Description })
	member(r, "audience", text, func(a *client.Application) *string { return &a.Audience })
	member(r, "redirect_uris", list, func(a *client.Application) *[]string { return &a.RedirectURIs })
	member(r, "allowed_origins", list, func(a *client.Application) *[]string { return &a.AllowedOrigins })
	member(r, "allowed_scopes", list, func(a *client.Application) *[]string { return &a.AllowedScopes })
	member(r, "tags", list, func(a *client.Application) *[]string { return &a.Tags })
	member(r, "access_token_signing_alg", text, func(a *client.Application) *keys.Alg { return &a.SigningAlg })
	seconds(r, "access_token_ttl_s", func(a *client.Application) *time.Duration { return &a.AccessTokenTTL })
	seconds(r, "refresh_token_ttl_s", func(a *client.Application) *time.Duration { return &a.RefreshTokenTTL })
	r.options()
	r.tokenExchange()
	r.serviceProvider()
	return func(a *client.Application) {
		for _, change := range changes {
			change(a)
		}
	}, r.faults.Err()
}

func (r *reader) options() {
	member(r, "logo_uri", text, func(a *client.Application) *string { return &a.LogoURI })
	read(r, "first_party", flag, func(a *client.Application, first, given bool) {
		if a.FirstParty = first || !given; !a.FirstParty {
			a.GroupScopes = client.AllowedGroupScopes
		}
	})
	member(r, "token_endpoint_auth_method", text, func(a *client.Application) *client.AuthMethod { return &a.AuthMethod })
	member(r, "jwks_uri", text, func(a *client.Application) *string { return &a.JWKSURI })
	r.jwks()
	member(r, "post_logout_redirect_uris", list, func(a *client.Application) *[]string { return &a.PostLogoutRedirectURIs })
	member(r, "backchannel_logout_uri", text, func(a *client.Application) *string { return &a.BackchannelLogoutURI })
	member(r, "backchannel_logout_session_required", flag, func(a *client.Application) *bool { return &a.BackchannelLogoutSessionRequired })
	member(r, "frontchannel_logout_uri", text, func(a *client.Application) *string { return &a.FrontchannelLogoutURI })
	member(r, "frontchannel_logout_session_required", flag, func(a *client.Application) *bool { return &a.FrontchannelLogoutSessionRequired })
	member(r, "require_pushed_authorization_requests", flag, func(a *client.Application) *bool { return &a.RequirePAR })
	member(r, "require_pkce", flag, func(a *client.Application) *bool { return &a.RequirePKCE })
	member(r, "require_dpop_nonce", flag, func(a *client.Application) *bool { return &a.RequireDPoPNonce })
	member(r, "dpop_bound_access_tokens", flag, func(a *client.Application) *bool { return &a.DPoPBound })
	member(r, "tls_client_certificate_bound_access_tokens", flag, func(a *client.Application) *bool { return &a.CertificateBound })
	member(r, "tls_client_auth_subject_dn", text, func(a *client.Application) *string { return &a.Certificate.SubjectDN })
	member(r, "tls_client_auth_san_dns", text, func(a *client.Application) *string { return &a.Certificate.DNS })
	member(r, "tls_client_auth_san_uri", text, func(a *client.Application) *string { return &a.Certificate.URI })
	member(r, "tls_client_auth_san_ip", text, func(a *client.Application) *string { return &a.Certificate.IP })
	member(r, "tls_client_auth_san_email", text, func(a *client.Application) *string { return &a.Certificate.Email })
	member(r, "id_token_signed_response_alg", text, func(a *client.Application) *keys.Alg { return &a.IDTokenAlg })
	member(r, "authorization_signed_response_alg", text, func(a *client.Application) *keys.Alg { return &a.AuthorizationAlg })
	member(r, "introspection_signed_response_alg", text, func(a *client.Application) *keys.Alg { return &a.IntrospectionAlg })
	member(r, "userinfo_signed_response_alg", text, func(a *client.Application) *keys.Alg { return &a.UserInfoAlg })
	member(r, "token_endpoint_auth_signing_alg", text, func(a *client.Application) *string { return &a.AuthAlg })
	member(r, "request_uris", list, func(a *client.Application) *[]string { return &a.RequestURIs })
	member(r, "request_object_signing_alg", text, func(a *client.Application) *string { return &a.RequestObjectAlg })
	member(r, "require_signed_request_object", flag, func(a *client.Application) *bool { return &a.RequireRequestObject })
	read(r, "group_scopes", text, func(a *client.Application, which client.GroupScopes, given bool) {
		switch {
		case given:
			a.GroupScopes = which
		case a.FirstParty:
			a.GroupScopes = client.AllGroupScopes
		default:
			a.GroupScopes = client.AllowedGroupScopes
		}
	})
	member(r, "introspect_all", flag, func(a *client.Application) *bool { return &a.IntrospectAll })
	member(r, "workload_identities", "must be a list of objects with issuer_id, subject and claims, or null", func(a *client.Application) *[]client.WorkloadIdentity { return &a.WorkloadIdentities })
	member(r, "claims", "must be a list of claims, or null", func(a *client.Application) *[]client.Claim { return &a.Claims })
}

func (r *reader) serviceProvider() {
	member(r, "entity_id", text, func(a *client.Application) *string { return &a.ServiceProvider.EntityID })
	member(r, "acs_url", text, func(a *client.Application) *string { return &a.ServiceProvider.ACSURL })
	member(r, "acs_urls", list, func(a *client.Application) *[]string { return &a.ServiceProvider.ACSURLs })
	member(r, "slo_url", text, func(a *client.Application) *string { return &a.ServiceProvider.SLOURL })
	member(r, "certificate", text, func(a *client.Application) *string { return &a.ServiceProvider.Certificate })
	member(r, "name_id_format", text, func(a *client.Application) *string { return &a.ServiceProvider.NameIDFormat })
	member(r, "sign_response", flag, func(a *client.Application) *bool { return &a.ServiceProvider.SignResponse })
	member(r, "sign_assertion", flag, func(a *client.Application) *bool { return &a.ServiceProvider.SignAssertion })
	member(r, "encrypt_assertion", flag, func(a *client.Application) *bool { return &a.ServiceProvider.EncryptAssertion })
	member(r, "want_authn_requests_signed", flag, func(a *client.Application) *bool { return &a.ServiceProvider.SignedRequests })
	member(r, "allow_idp_initiated", flag, func(a *client.Application) *bool { return &a.ServiceProvider.AllowIDPInitiated })
	read(r, "attribute_statements", "must be null or a list of objects with name, name_format and value", func(a *client.Application, statements []client.AttributeStatement, _ bool) {
		a.ServiceProvider.AttributeStatements = nil
		for _, s := range statements {
			s.NameFormat = cmp.Or(s.NameFormat, "unspecified")
			a.ServiceProvider.AttributeStatements = append(a.ServiceProvider.AttributeStatements, s)
		}
	})
}

// The types of members, in error messages.
const (
	text = "must be a string or null"
	list = "must be a list of strings, or null"
	flag = "must be true, false or null"
)

// member reads a member that is a field of an application; null is its default.
func member[T any](r *reader, name, must string, field func(*client.Application) *T) {
	read(r, name, must, func(a *client.Application, value T, given bool) {
		if !given {
			value = *field(a.Type.Defaults())
		}
		*field(a) = value
	})
}

// seconds reads a duration in seconds.
func seconds(r *reader, name string, field func(*client.Application) *time.Duration) {
	read(r, name, "must be a whole number of seconds, or null", func(a *client.Application, n int32, given bool) {
		// Less than a second is out of range as a second is, and not absent.
		if *field(a) = max(time.Second, time.Duration(n)*time.Second); !given {
			*field(a) = 0 // the tenant's default
		}
	})
}

// read reads one member of a form, if it is there; set gets false for null.
func read[T any](r *reader, name, must string, set func(a *client.Application, value T, given bool)) {
	var said T
	value := r.form[name]
	switch value.Kind() {
	case 0:
		return
	case 'n':
	default:
		if json.Unmarshal(value, &said) != nil {
			r.faults.Add(r.path+name, "type_invalid", must)
			return
		}
	}
	given := value.Kind() != 'n'
	r.add(func(a *client.Application) { set(a, said, given) })
}

// object reads a member whose own members change by themselves; null is the default of all
// of them.
func object[T any](r *reader, name string, whole func(*client.Application) *T) *reader {
	inner := &reader{path: r.path + name + "/", faults: r.faults, changes: r.changes}
	switch value := r.form[name]; value.Kind() {
	case 'n':
		r.add(func(a *client.Application) { *whole(a) = *whole(a.Type.Defaults()) })
	case '{':
		if json.Unmarshal(value, &inner.form) != nil {
			r.faults.Add(r.path+name, "type_invalid", "must be an object or null")
		}
	case 0:
	default:
		r.faults.Add(r.path+name, "type_invalid", "must be an object or null")
	}
	return inner
}

// tokenExchange reads what an application may exchange tokens for.
func (r *reader) tokenExchange() {
	e := object(r, "token_exchange", func(a *client.Application) *client.TokenExchange { return &a.TokenExchange })
	member(e, "enabled", flag, func(a *client.Application) *bool { return &a.TokenExchange.Enabled })
	member(e, "allowed_audiences", list, func(a *client.Application) *[]string { return &a.TokenExchange.AllowedAudiences })
	member(e, "require_client_authentication", flag, func(a *client.Application) *bool { return &a.TokenExchange.RequireClientAuthentication })
	member(e, "subject_tokens", text, func(a *client.Application) *client.SubjectTokens { return &a.TokenExchange.SubjectTokens })
	actAs := object(e, "act_as", func(a *client.Application) *client.ActAs { return &a.TokenExchange.ActAs })
	member(actAs, "enabled", flag, func(a *client.Application) *bool { return &a.TokenExchange.ActAs.Enabled })
	member(actAs, "allowed_subject_types", list, func(a *client.Application) *[]string { return &a.TokenExchange.ActAs.AllowedSubjectTypes })
}

// maxKeys bounds the size of a key set in bytes.
const maxKeys = 64 << 10

// jwks reads the set of an application's keys.
func (r *reader) jwks() {
	set := r.faults.Object("jwks", r.form["jwks"], maxKeys)
	if r.form["jwks"].Kind() != 0 {
		r.add(func(a *client.Application) { a.JWKS = set })
	}
}

// maxWords bounds the length of a query in bytes.
const maxWords = 200

// filterOf reads the filter of a list.
func filterOf(p ListApplicationsParams) (client.Filter, error) {
	var v web.Validation
	f := client.Filter{Type: client.Type(p.Type), State: client.State(p.State), Query: p.Q}
	if f.Type != "" && !slices.Contains(client.Types, f.Type) {
		v.Add("type", "unknown_value", fmt.Sprintf("must be one of %q", client.Types))
	}
	if f.State != "" && f.State != client.Enabled && f.State != client.Disabled {
		v.Add("state", "unknown_value", "must be enabled or disabled")
	}
	if p.Q != "" && v.Text("", "q", p.Q) && len(p.Q) > maxWords {
		v.Add("q", "too_long", fmt.Sprintf("must have at most %d bytes", maxWords))
	}
	return f, v.Err()
}

func meta(info *web.RequestInfo) Meta { return Meta{RequestID: info.RequestID} }

// createdApplication is a new application with its secret, which is only part of this
// response.
type createdApplication struct {
	Application
	ClientSecret string `json:"client_secret,omitzero"`
}

// answer is what is answered about one application.
func (h *Handlers) answer(ctx context.Context, info *web.RequestInfo, a client.Application) (ApplicationRead, error) {
	d, err := h.document(ctx, info, a)
	return ApplicationRead{Data: d, Meta: meta(info)}, err
}

// document is the representation of an application, with what the caller may do with it.
func (h *Handlers) document(ctx context.Context, info *web.RequestInfo, a client.Application) (Application, error) {
	d := a.Document()
	if a.Type == client.SAML {
		d.IdentityProvider = client.IdentityProviderOf(protocol.Tenant{ID: info.Tenant.ID, BaseURL: info.Tenant.BaseURL})
	}
	if !info.Principal.Scopes.Has("applications:write") {
		return d, nil
	}
	used, err := h.Access.InUse(ctx, a)
	d.CanRotateSecret, d.CanDisable, d.CanDelete = a.HasSecret(), a.State == client.Enabled, !used
	return d, err
}
