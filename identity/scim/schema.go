package scim

import "strings"

// The URNs of schemas and messages (RFC 7643 §8.7, RFC 7644 §8.2).
const (
	UserSchema       = "urn:ietf:params:scim:schemas:core:2.0:User"
	EnterpriseSchema = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
	GroupSchema      = "urn:ietf:params:scim:schemas:core:2.0:Group"

	ListMessage   = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
	SearchMessage = "urn:ietf:params:scim:api:messages:2.0:SearchRequest"
	PatchMessage  = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
	BulkRequest   = "urn:ietf:params:scim:api:messages:2.0:BulkRequest"
	BulkResponse  = "urn:ietf:params:scim:api:messages:2.0:BulkResponse"
	ErrorMessage  = "urn:ietf:params:scim:api:messages:2.0:Error"
)

// Attribute is the definition of an attribute (RFC 7643 §7).
type Attribute struct {
	Name            string      `json:"name"`
	Type            string      `json:"type"` // string, boolean, dateTime, reference, complex
	MultiValued     bool        `json:"multiValued"`
	Description     string      `json:"description"`
	Required        bool        `json:"required"`
	CanonicalValues []string    `json:"canonicalValues,omitzero"`
	CaseExact       bool        `json:"caseExact"`
	Mutability      string      `json:"mutability"` // readOnly, readWrite
	Returned        string      `json:"returned"`   // always, default, request
	Uniqueness      string      `json:"uniqueness"` // none, server
	ReferenceTypes  []string    `json:"referenceTypes,omitzero"`
	SubAttributes   []Attribute `json:"subAttributes,omitzero"`
}

// Schema is a set of attributes.
type Schema struct {
	ID, Name, Description string
	Attributes            []Attribute
}

// Type is a type of resources (RFC 7643 §6).
type Type struct {
	Name, Endpoint, Description string
	Core                        Schema
	Extensions                  []Schema // none is required
}

// Types are all types of resources.
var Types = []*Type{Users, Groups}

func plain(name, description string) Attribute {
	return Attribute{Name: name, Type: "string", Description: description, Mutability: "readWrite", Returned: "default", Uniqueness: "none"}
}

func flag(name, description string) Attribute {
	a := plain(name, description)
	a.Type = "boolean"
	return a
}

func link(name, description string, types ...string) Attribute {
	a := plain(name, description)
	a.Type, a.ReferenceTypes, a.CaseExact = "reference", types, true
	return a
}

func complexOf(name, description string, sub ...Attribute) Attribute {
	a := plain(name, description)
	a.Type, a.SubAttributes = "complex", sub
	return a
}

// several is a multi-valued attribute with the usual sub-attributes (RFC 7643 §2.4).
func several(name, description string, types ...string) Attribute {
	kind := plain("type", "A label of the value.")
	kind.CanonicalValues = types
	a := complexOf(name, description,
		plain("value", "The value."), plain("display", "A name of the value for people."), kind,
		flag("primary", "Whether it is the preferred value. At most one is."))
	a.MultiValued = true
	return a
}

func readOnly(a Attribute) Attribute {
	a.Mutability = "readOnly"
	for i, sub := range a.SubAttributes {
		a.SubAttributes[i] = readOnly(sub)
	}
	return a
}

func exact(a Attribute) Attribute {
	a.CaseExact = true
	return a
}

// Users is the type of users.
var Users = &Type{
	Name: "User", Endpoint: "/Users", Description: "Accounts of users",
	Core: Schema{ID: UserSchema, Name: "User", Description: "User account", Attributes: userAttributes()},
	Extensions: []Schema{{ID: EnterpriseSchema, Name: "EnterpriseUser", Description: "User of an organisation", Attributes: []Attribute{
		plain("employeeNumber", "The number of the user in the organisation."),
		plain("costCenter", "The cost centre."),
		plain("organization", "The organisation."),
		plain("division", "The division."),
		plain("department", "The department."),
		complexOf("manager", "The manager of the user.",
			exact(plain("value", "The id of the manager.")), link("$ref", "The URI of the manager.", "User"), plain("displayName", "The name of the manager.")),
	}}},
}

func userAttributes() []Attribute {
	userName := plain("userName", "The e-mail address with which the user signs in. It has one account of the tenant.")
	userName.Required, userName.Uniqueness = true, "server"
	photos := several("photos", "URLs of photos.", "photo", "thumbnail")
	photos.SubAttributes[0] = link("value", "The URL.", "external")
	addresses := complexOf("addresses", "Postal addresses.",
		plain("formatted", "The whole address."), plain("streetAddress", "Street and number."), plain("locality", "The city."),
		plain("region", "The state or region."), plain("postalCode", "The postal code."), plain("country", "The country."),
		plain("type", "A label of the address."), flag("primary", "Whether it is the preferred address. At most one is."))
	addresses.MultiValued = true
	groups := several("groups", "The groups of the user.")
	groups.SubAttributes = []Attribute{exact(plain("value", "The id of the group.")), link("$ref", "The URI of the group.", "Group"), plain("display", "The name of the group."), plain("type", "Always direct.")}
	groups.Returned = "request"
	return []Attribute{
		userName,
		complexOf("name", "The parts of the name.",
			plain("formatted", "The whole name."), plain("familyName", "The family name."), plain("givenName", "The given name."),
			plain("middleName", "The middle names."), plain("honorificPrefix", "A title before the name."), plain("honorificSuffix", "A suffix of the name.")),
		plain("displayName", "The name for people. Without one, it is made of the parts of the name."),
		plain("nickName", "A casual name."),
		link("profileUrl", "A page about the user.", "external"),
		plain("title", "The title in the organisation."),
		plain("userType", "The relation to the organisation."),
		plain("preferredLanguage", "Languages, as in Accept-Language."),
		plain("locale", "A language tag (BCP 47)."),
		plain("timezone", "A time zone, such as Europe/Berlin."),
		flag("active", "Whether the user may sign in. False ends all sessions at once."),
		several("emails", "E-mail addresses. Without any, there is the one of the account.", "work", "home", "other"),
		several("phoneNumbers", "Phone numbers.", "work", "home", "mobile", "fax", "pager", "other"),
		several("ims", "Addresses of instant messages."),
		photos,
		addresses,
		several("entitlements", "Entitlements in other systems. They give no rights."),
		several("roles", "Roles in other systems. They give no rights."),
		readOnly(groups),
	}
}

// Groups is the type of groups.
var Groups = &Type{
	Name: "Group", Endpoint: "/Groups", Description: "Groups of users",
	Core: Schema{ID: GroupSchema, Name: "Group", Description: "Group", Attributes: groupAttributes()},
}

func groupAttributes() []Attribute {
	name := plain("displayName", "The name of the group.")
	name.Required = true
	members := complexOf("members", "The users in the group.",
		exact(plain("value", "The id of the user.")), link("$ref", "The URI of the user.", "User"), plain("type", "Always User."))
	members.MultiValued = true
	return []Attribute{name, members}
}

// common are the attributes of every resource (RFC 7643 §3.1), which are in no schema.
var common = []Attribute{
	exact(Attribute{Name: "schemas", Type: "reference", MultiValued: true, Mutability: "readOnly", Returned: "always"}),
	exact(Attribute{Name: "id", Type: "string", Mutability: "readOnly", Returned: "always", Uniqueness: "server"}),
	exact(Attribute{Name: "externalId", Type: "string", Mutability: "readWrite", Returned: "default"}),
	readOnly(complexOf("meta", "", plain("resourceType", ""), Attribute{Name: "created", Type: "dateTime"}, Attribute{Name: "lastModified", Type: "dateTime"}, plain("location", ""), exact(plain("version", "")))),
}

func find(list []Attribute, name string) *Attribute {
	for i := range list {
		if strings.EqualFold(list[i].Name, name) {
			return &list[i]
		}
	}
	return nil
}

// extension returns the extension with a URN, or nil.
func (t *Type) extension(urn string) *Schema {
	for i := range t.Extensions {
		if strings.EqualFold(t.Extensions[i].ID, urn) {
			return &t.Extensions[i]
		}
	}
	return nil
}

// attribute returns an attribute of the type, and the URN of its extension if it is in one.
func (t *Type) attribute(urn, name string) (a *Attribute, extension string) {
	if e := t.extension(urn); e != nil {
		return find(e.Attributes, name), e.ID
	}
	if urn != "" && !strings.EqualFold(urn, t.Core.ID) {
		return nil, ""
	}
	if a := find(common, name); a != nil {
		return a, ""
	}
	return find(t.Core.Attributes, name), ""
}

// Document returns the representation of a schema (RFC 7643 §7).
func (s Schema) Document(base string) map[string]any {
	return map[string]any{
		"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:Schema"},
		"id":      s.ID, "name": s.Name, "description": s.Description, "attributes": s.Attributes,
		"meta": map[string]any{"resourceType": "Schema", "location": base + "/Schemas/" + s.ID},
	}
}

// Schemas returns all schemas.
func Schemas() (all []Schema) {
	for _, t := range Types {
		all = append(append(all, t.Core), t.Extensions...)
	}
	return all
}

// Document returns the representation of a type (RFC 7643 §6).
func (t *Type) Document(base string) map[string]any {
	extensions := []any{}
	for _, e := range t.Extensions {
		extensions = append(extensions, map[string]any{"schema": e.ID, "required": false})
	}
	return map[string]any{
		"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ResourceType"},
		"id":      t.Name, "name": t.Name, "endpoint": t.Endpoint, "description": t.Description, "schema": t.Core.ID, "schemaExtensions": extensions,
		"meta": map[string]any{"resourceType": "ResourceType", "location": base + "/ResourceTypes/" + t.Name},
	}
}
