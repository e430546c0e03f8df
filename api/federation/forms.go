package federation

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/web"
	"stonetown/identity/federation"
	"stonetown/identity/federation/claims"
	"stonetown/identity/federation/signin"
)

// Errors is the error format of the operations.
var Errors = web.ErrorFormat{Translate: translate}

func translate(err error) *web.Error {
	bad := func(code string, err error, details web.Details) *web.Error {
		return &web.Error{Status: http.StatusBadRequest, Code: code, Message: err.Error(), Details: details}
	}
	conflict := func(code string, err error, details web.Details) *web.Error {
		return &web.Error{Status: http.StatusConflict, Code: code, Message: err.Error(), Details: details}
	}
	switch {
	case errors.Is(err, federation.ErrNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "connection_not_found", Message: federation.ErrNotFound.Error()}
	case errors.Is(err, signin.ErrTestNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "test_not_found", Message: signin.ErrTestNotFound.Error()}
	case errors.Is(err, federation.ErrSlugInvalid):
		return bad("slug_invalid", federation.ErrSlugInvalid, nil)
	case errors.Is(err, federation.ErrSlugTaken):
		return conflict("slug_unavailable", federation.ErrSlugTaken, nil)
	case errors.Is(err, federation.ErrTooMany):
		return conflict("connection_limit_reached", federation.ErrTooMany, web.Details{"limit": federation.MaxConnections})
	}
	var kind *federation.KindError
	var field *federation.FieldError
	var mapping *claims.Error
	var metadata *federation.MetadataError
	var domain *federation.DomainError
	switch {
	case errors.As(err, &kind):
		return bad("kind_unsupported", kind, web.Details{"supported": federation.Kinds})
	case errors.As(err, &mapping):
		return bad("attribute_mapping_invalid", mapping, web.Details{"key": mapping.Key, "reason": mapping.Reason})
	case errors.As(err, &metadata):
		return bad("metadata_fetch_failed", metadata, web.Details{"url_host": metadata.URLHost, "reason": metadata.Reason})
	case errors.As(err, &domain):
		return conflict("domain_unavailable", domain, web.Details{"domain": domain.Domain})
	case errors.As(err, &field):
		return web.ValidationFailed(web.FieldError{Field: field.Field, Code: field.Code, Message: field.Error()})
	}
	return nil
}

// maxKinds is how often the filter of a list can be repeated.
const maxKinds = 20

func filterOf(params ListConnectionsParams) (f federation.Filter, err error) {
	var v web.Validation
	if len(params.Kind) > maxKinds {
		v.Add("kind", "too_many", fmt.Sprintf("must be repeated at most %d times", maxKinds))
		return f, v.Err()
	}
	for _, name := range params.Kind {
		kind := federation.Kind(name)
		if !slices.Contains(federation.Kinds, kind) {
			v.Add("kind", "unknown_value", fmt.Sprintf("must be one of %q", federation.Kinds))
			return f, v.Err()
		}
		f.Kinds = append(f.Kinds, kind)
	}
	f.State = federation.State(params.State)
	if states := []federation.State{federation.Enabled, federation.Disabled}; f.State != "" && !slices.Contains(states, f.State) {
		v.Add("state", "unknown_value", fmt.Sprintf("must be one of %q", states))
	}
	return f, v.Err()
}

// form has the members of a request, so that absent ones are told from null.
type form map[string]jsontext.Value

// given reports whether a member is there and is not null.
func (f form) given(name string) bool { return f[name] != nil && f[name].Kind() != 'n' }

// readNew reads a new connection.
func readNew(members form) (federation.Connection, error) {
	var v web.Validation
	for _, name := range []string{"kind", "slug", "name"} {
		if !members.given(name) {
			v.Add(name, "required", "is required")
		}
	}
	var kind federation.Kind
	var slug string
	decode(members, &v, "kind", "must be a string", &kind)
	decode(members, &v, "slug", "must be a string", &slug)
	change := changes(members, &v)
	if err := v.Err(); err != nil {
		return federation.Connection{}, err
	}
	c := kind.Defaults()
	c.Slug = slug
	change(&c)
	return c, nil
}

// readPatch reads the changes of a connection.
func readPatch(members form) (federation.Change, error) {
	var immutable []web.Member
	for _, name := range []string{"id", "slug", "kind", "state", "created_at"} {
		immutable = append(immutable, web.Member{Name: name, Value: members[name]})
	}
	if err := web.RefuseImmutable(immutable...); err != nil {
		return federation.Change{}, err
	}
	var v web.Validation
	apply := changes(members, &v)
	if members["name"].Kind() == 'n' {
		v.Add("name", "required", "must not be null")
	}
	reread := slices.ContainsFunc([]string{"issuer", "use_discovery", "idp_metadata_url", "idp_metadata_xml"}, func(name string) bool { return members[name] != nil })
	return federation.Change{Reread: reread, Apply: func(c *federation.Connection) error {
		apply(c)
		return nil
	}}, v.Err()
}

// The types of members, in error messages.
const (
	text  = "must be a string or null"
	flag  = "must be true, false or null"
	list  = "must be a list of strings, or null"
	rules = "must be a list of objects with value and group_id, or null"
)

// changes returns what the members of a form change.
func changes(f form, v *web.Validation) (change func(*federation.Connection)) {
	r := &reader{form: f, faults: v}
	if f.given("name") {
		member(r, "name", text, func(c *federation.Connection) *string { return &c.Name })
	}
	member(r, "jit_provisioning", flag, func(c *federation.Connection) *bool { return &c.JITProvisioning })
	member(r, "link_policy", text, func(c *federation.Connection) *federation.LinkPolicy { return &c.LinkPolicy })
	member(r, "trust_email", flag, func(c *federation.Connection) *bool { return &c.TrustEmail })
	member(r, "second_factor", text, func(c *federation.Connection) *federation.SecondFactor { return &c.SecondFactor })
	member(r, "domains", list, func(c *federation.Connection) *[]string { return &c.Domains })
	member(r, "group_mapping", rules, func(c *federation.Connection) *[]federation.GroupRule { return &c.GroupMapping })
	r.attributeMapping()

	member(r, "client_id", text, func(c *federation.Connection) *string { return &c.ClientID })
	member(r, "scopes", list, func(c *federation.Connection) *[]string { return &c.Scopes })
	r.secret("client_secret", func(c *federation.Connection) *federation.Secret { return &c.ClientSecret })
	member(r, "tenant", text, func(c *federation.Connection) *string { return &c.MicrosoftTenant })
	member(r, "team_id", text, func(c *federation.Connection) *string { return &c.TeamID })
	member(r, "key_id", text, func(c *federation.Connection) *string { return &c.KeyID })
	r.secret("private_key", func(c *federation.Connection) *federation.Secret { return &c.PrivateKey })

	member(r, "issuer", text, func(c *federation.Connection) *string { return &c.Issuer })
	r.discovery()
	member(r, "authorization_endpoint", text, func(c *federation.Connection) *string { return &c.Endpoints.Authorization })
	member(r, "token_endpoint", text, func(c *federation.Connection) *string { return &c.Endpoints.Token })
	member(r, "jwks_uri", text, func(c *federation.Connection) *string { return &c.Endpoints.JWKS })
	member(r, "userinfo_endpoint", text, func(c *federation.Connection) *string { return &c.Endpoints.UserInfo })
	member(r, "end_session_endpoint", text, func(c *federation.Connection) *string { return &c.Endpoints.EndSession })

	r.replacing("idp_metadata_url", "idp_metadata_xml")
	member(r, "idp_metadata_url", text, func(c *federation.Connection) *string { return &c.MetadataURL })
	member(r, "idp_metadata_xml", text, func(c *federation.Connection) *string { return &c.MetadataXML })
	member(r, "allow_idp_initiated", flag, func(c *federation.Connection) *bool { return &c.AllowIDPInitiated })
	return func(c *federation.Connection) {
		for _, change := range r.changes {
			change(c)
		}
	}
}

// reader turns the members of a form into changes.
type reader struct {
	form
	faults  *web.Validation
	changes []func(*federation.Connection)
}

func (r *reader) add(change func(*federation.Connection)) { r.changes = append(r.changes, change) }

// decode reads a member if it is there and not null.
func decode[T any](f form, v *web.Validation, name, must string, into *T) {
	if f.given(name) && json.Unmarshal(f[name], into) != nil {
		v.Add(name, "type_invalid", must)
	}
}

// member reads a member that is a field of a connection; null is its default.
func member[T any](r *reader, name, must string, field func(*federation.Connection) *T) {
	if r.form[name] == nil {
		return
	}
	var value T
	decode(r.form, r.faults, name, must, &value)
	given := r.given(name)
	r.add(func(c *federation.Connection) {
		set := value
		if !given {
			defaults := c.Kind.Defaults()
			set = *field(&defaults)
		}
		*field(c) = set
	})
}

// secret reads a secret; null removes it.
func (r *reader) secret(name string, field func(*federation.Connection) *federation.Secret) {
	if r.form[name] == nil {
		return
	}
	var value string
	decode(r.form, r.faults, name, text, &value)
	r.add(func(c *federation.Connection) { *field(c) = federation.NewSecret(value) })
}

// discovery reads use_discovery, which replaces endpoints that were set.
func (r *reader) discovery() {
	member(r, "use_discovery", flag, func(c *federation.Connection) *bool { return &c.UseDiscovery })
	if r.form["use_discovery"] != nil {
		r.add(func(c *federation.Connection) {
			if c.UseDiscovery {
				c.Endpoints = federation.Endpoints{}
			}
		})
	}
}

// replacing lets each of two sources of metadata replace the other, unless both are given.
func (r *reader) replacing(url, xml string) {
	switch {
	case r.given(url) && !r.given(xml):
		r.add(func(c *federation.Connection) { c.MetadataXML = "" })
	case r.given(xml) && !r.given(url):
		r.add(func(c *federation.Connection) { c.MetadataURL = "" })
	}
}

// attributeMapping reads the mapping, whose members change by themselves. Null is the default
// of one, or of all.
func (r *reader) attributeMapping() {
	const name = "attribute_mapping"
	if r.form[name] == nil {
		return
	}
	var changes map[string]*string
	decode(r.form, r.faults, name, "must be an object of strings and nulls, or null", &changes)
	given := r.given(name)
	r.add(func(c *federation.Connection) {
		if !given {
			c.AttributeMapping = nil
		}
		if c.AttributeMapping == nil {
			c.AttributeMapping = map[string]string{}
		}
		for target, source := range changes {
			if source == nil {
				delete(c.AttributeMapping, target)
			} else {
				c.AttributeMapping[target] = *source
			}
		}
	})
}

// readPreview reads claims, and a mapping to be tried; nil if there is none.
func readPreview(members form) (from map[string]any, mapping map[string]string, err error) {
	var v web.Validation
	if !members.given("claims") {
		v.Add("claims", "required", "is required")
	}
	decode(members, &v, "claims", "must be an object", &from)
	if members.given("attribute_mapping") {
		mapping = map[string]string{}
		decode(members, &v, "attribute_mapping", "must be an object of strings, or null", &mapping)
	}
	return from, mapping, v.Err()
}
