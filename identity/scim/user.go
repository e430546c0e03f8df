package scim

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"

	"stonetown/identity"
	"stonetown/internal/text"
)

const (
	// MaxText is the maximum length of userName, displayName, the names and externalId, in bytes.
	MaxText = 500
	// MaxAttributes is the maximum size of the attributes of an account, in bytes of JSON.
	MaxAttributes = 16 << 10
	// home is the member of an account's attributes with the values that have no column, and
	// enterprise the one in it for the extension.
	home       = "scim"
	enterprise = "enterprise"
)

// ofUser returns the writable attributes of an account.
func ofUser(u identity.User, externalID string) Object {
	o := Object{}
	attributes := map[string]json.RawMessage{}
	if json.Unmarshal(u.Attributes, &attributes) == nil {
		var stored Object
		if json.Unmarshal(attributes[home], &stored) == nil {
			if part, ok := stored[enterprise].(Object); ok {
				stored[EnterpriseSchema] = part
			}
			delete(stored, enterprise)
			// Administrators can change the attributes, so they are validated like a request.
			if valid, err := Users.Canonical(stored); err == nil {
				o = valid
			}
		}
	}
	name, _ := o["name"].(Object)
	if name == nil {
		name = Object{}
	}
	for key, value := range map[string]string{"givenName": u.GivenName, "familyName": u.FamilyName} {
		if delete(name, key); value != "" {
			name[key] = value
		}
	}
	if len(name) > 0 {
		o["name"] = name
	}
	for key, value := range map[string]string{"userName": u.Email, "displayName": u.Name, "locale": u.Locale, "externalId": externalID} {
		if delete(o, key); value != "" {
			o[key] = value
		}
	}
	o["active"] = u.State != identity.Disabled
	if o["emails"] == nil {
		o["emails"] = ownEmail(u.Email)
	}
	return o
}

// ownEmail are the e-mail addresses of a user of whom only the one of the account is known.
func ownEmail(email string) []any {
	return []any{Object{"value": email, "type": "work", "primary": true}}
}

// isOwnEmail reports whether the e-mail addresses are those of ownEmail.
func isOwnEmail(value any, email string) bool {
	list, _ := value.([]any)
	if len(list) != 1 {
		return false
	}
	o, _ := list[0].(Object)
	return maps.Equal(o, Object{"value": email, "type": "work", "primary": true})
}

// composed is the name that the parts of a name make.
func composed(o Object) string {
	name, _ := o["name"].(Object)
	if formatted, _ := name["formatted"].(string); formatted != "" {
		return formatted
	}
	given, _ := name["givenName"].(string)
	family, _ := name["familyName"].(string)
	return strings.TrimSpace(given + " " + family)
}

// write sets an account to a resource. before is the resource that the account was, nil for a new
// one.
func write(u *identity.User, o, before Object) error {
	email, _ := o["userName"].(string)
	if email == "" {
		return refuse(InvalidValue, "userName is required")
	}
	if len(email) > MaxText || !identity.ValidEmail(email) {
		return refuse(InvalidValue, "userName must be an e-mail address")
	}
	rest := clone(o).(Object)
	display, _ := rest["displayName"].(string)
	if display == "" || before != nil && display == before["displayName"] && display == composed(before) {
		display = composed(o)
	}
	name, _ := rest["name"].(Object)
	given, _ := name["givenName"].(string)
	family, _ := name["familyName"].(string)
	locale, _ := rest["locale"].(string)
	for field, value := range map[string]string{"displayName": display, "name.givenName": given, "name.familyName": family, "externalId": external(o)} {
		if len(value) > MaxText || !text.IsLine(value) {
			return refuse(InvalidValue, "%s must be one line of at most %d bytes", field, MaxText)
		}
	}
	if locale != "" {
		tag, err := language.Parse(locale)
		if err != nil {
			return refuse(InvalidValue, "locale must be a language tag (BCP 47)")
		}
		if strings.Contains(locale, "_") { // Okta
			locale = tag.String()
		}
	}
	if active, ok := o["active"].(bool); ok && !active {
		u.State = identity.Disabled
	} else if ok || before == nil {
		u.Enable()
	}
	u.Name, u.GivenName, u.FamilyName, u.Locale = display, given, family, locale
	if isOwnEmail(rest["emails"], u.Email) || isOwnEmail(rest["emails"], email) {
		delete(rest, "emails")
	}
	u.Email = email
	for _, key := range []string{"userName", "displayName", "locale", "externalId", "active"} {
		delete(rest, key)
	}
	delete(name, "givenName")
	delete(name, "familyName")
	if len(name) == 0 {
		delete(rest, "name")
	}
	if part, ok := rest[EnterpriseSchema]; ok {
		rest[enterprise] = part
		delete(rest, EnterpriseSchema)
	}
	return writeAttributes(u, rest)
}

// writeAttributes stores the values that have no column, beside the other attributes.
func writeAttributes(u *identity.User, rest Object) error {
	attributes := map[string]json.RawMessage{}
	if u.Attributes != nil {
		if err := json.Unmarshal(u.Attributes, &attributes); err != nil {
			return err
		}
	}
	_, had := attributes[home]
	switch {
	case len(rest) == 0 && !had:
		return nil
	case len(rest) == 0:
		delete(attributes, home)
	default:
		encoded, err := json.Marshal(rest)
		if err != nil {
			return err
		}
		attributes[home] = encoded
	}
	if len(attributes) == 0 {
		u.Attributes = nil
		return nil
	}
	encoded, err := json.Marshal(attributes)
	if err != nil {
		return err
	}
	if len(encoded) > MaxAttributes {
		return refuse(InvalidValue, "the attributes of a user have more than %d bytes", MaxAttributes)
	}
	u.Attributes = encoded
	return nil
}

func external(o Object) string {
	id, _ := o["externalId"].(string)
	return id
}

// user returns the representation of an account.
func (c Client) user(u identity.User, externalID string) Resource {
	o := ofUser(u, externalID)
	version := versionOf(o, u.UpdatedAt)
	o["id"] = u.ID
	schemas := []any{UserSchema}
	if o[EnterpriseSchema] != nil {
		schemas = append(schemas, EnterpriseSchema)
	}
	o["schemas"] = schemas
	return c.resource(Users, o, u.ID, version, u.CreatedAt, u.UpdatedAt)
}

// versionOf returns the entity tag of a resource (RFC 7644 §3.14). It is weak, because the
// representation depends on the parameters of a request.
func versionOf(o any, updated time.Time) string {
	encoded, err := json.Marshal([]any{o, updated.UnixMicro()})
	if err != nil {
		panic("scim: encode a resource: " + err.Error()) // strings and booleans can be encoded
	}
	sum := sha256.Sum256(encoded)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// instants have microseconds, so that a filter with one is exact.
const instants = "2006-01-02T15:04:05.000000Z"

func (c Client) resource(t *Type, o Object, id, version string, created, updated time.Time) Resource {
	location := c.Base + t.Endpoint + "/" + id
	o["meta"] = Object{
		"resourceType": t.Name, "created": created.UTC().Format(instants), "lastModified": updated.UTC().Format(instants),
		"location": location, "version": version,
	}
	return Resource{Type: t, Object: o, ID: id, Version: version, Location: location}
}

// group returns the representation of a group without its members.
func (c Client) group(g identity.Group, externalID string) Resource {
	o := Object{"schemas": []any{GroupSchema}, "id": g.ID, "displayName": g.Name}
	if externalID != "" {
		o["externalId"] = externalID
	}
	version := versionOf([]string{g.Name, externalID, strconv.Itoa(g.MemberCount)}, g.UpdatedAt)
	return c.resource(Groups, o, g.ID, version, g.CreatedAt, g.UpdatedAt)
}
