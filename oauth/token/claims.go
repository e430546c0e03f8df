package token

import (
	"encoding/json"
	"strings"
	"time"

	"stonetown/internal/id"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// accessTokenType is the typ header of access tokens (RFC 9068 §2.1). It keeps
// every other kind of JWT from being taken for one.
const accessTokenType = "at+jwt"

// Claims are the members of an access token (RFC 9068 §2.2).
type Claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  Audience `json:"aud"`
	ClientID  string   `json:"client_id"`
	TenantID  string   `json:"tid"`
	Scope     string   `json:"scope,omitempty"`
	IssuedAt  int64    `json:"iat"` // this and the next two in seconds since 1970
	NotBefore int64    `json:"nbf"`
	Expires   int64    `json:"exp"`
	TokenID   string   `json:"jti"`

	// Of users, who have signed in.
	SessionID string   `json:"sid,omitempty"`
	GrantID   string   `json:"gid,omitempty"`
	AuthTime  int64    `json:"auth_time,omitempty"`
	ACR       string   `json:"acr,omitempty"`
	AMR       []string `json:"amr,omitempty"`

	// Of tokens that are bound to a key.
	Confirmation Confirmation `json:"cnf,omitzero"`

	// Of tokens that others were exchanged for (RFC 8693).
	Act       *Actor     `json:"act,omitempty"`
	Parent    string     `json:"ptok,omitempty"` // jti
	Ancestors []Ancestor `json:"anc,omitempty"`

	keyID string // kid of the header, of one that was verified
}

// Audience is one string or an array of them on the wire (RFC 7519 §4.1.3).
type Audience []string

func (a Audience) MarshalJSON() ([]byte, error) {
	if len(a) == 1 {
		return json.Marshal(a[0])
	}
	return json.Marshal([]string(a))
}

func (a *Audience) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*a = make(Audience, 1)
		return json.Unmarshal(data, &(*a)[0])
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// Seconds is the inverse of time.Time.Unix.
func Seconds(s int64) time.Time { return time.Unix(s, 0).UTC() }

// Actor is who acts for the subject of a token, and who acted before (RFC 8693 §4.1).
type Actor struct {
	Subject  string `json:"sub"`
	ClientID string `json:"client_id,omitempty"`
	Act      *Actor `json:"act,omitempty"`
}

func (a *Actor) Depth() int {
	if a == nil {
		return 0
	}
	return 1 + a.Act.Depth()
}

// SubjectOf tells a user from an application by the id. That the client is another one
// proves nothing: it may have exchanged the token of an application.
func SubjectOf(sub string) tuplestore.Subject {
	if strings.HasPrefix(sub, id.Client+"_") {
		return tuplestore.Subject{Type: schema.ApplicationType, ID: sub}
	}
	return tuplestore.Subject{Type: schema.UserType, ID: sub}
}
