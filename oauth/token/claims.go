package token

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"stonetown/internal/id"
	"stonetown/oauth/detail"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// accessTokenType is the typ header of access tokens (RFC 9068 §2.1). It distinguishes them
// from all other JWTs.
const accessTokenType = "at+jwt"

// Claims are the members of an access token (RFC 9068 §2.2).
type Claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  Audience `json:"aud"`
	ClientID  string   `json:"client_id"`
	TenantID  string   `json:"tid"`
	Scope     string   `json:"scope,omitempty"`
	IssuedAt  int64    `json:"iat"` // as the next two, in seconds since 1970
	NotBefore int64    `json:"nbf"`
	Expires   int64    `json:"exp"`
	TokenID   string   `json:"jti"`

	// In tokens of users who have signed in.
	SessionID string   `json:"sid,omitempty"`
	GrantID   string   `json:"gid,omitempty"`
	AuthTime  int64    `json:"auth_time,omitempty"`
	ACR       string   `json:"acr,omitempty"`
	AMR       []string `json:"amr,omitempty"`

	// Details are the authorization details (RFC 9396 §9.1); nil: none. A token from which all
	// were taken has an empty list.
	Details []detail.Detail `json:"authorization_details,omitzero"`

	// In tokens that are bound to a key.
	Confirmation Confirmation `json:"cnf,omitzero"`
	// DPoPNonce demands a nonce in each proof of the key. It is a claim because the requests of a
	// token read nothing of its application.
	DPoPNonce bool `json:"dpop_nonce,omitzero"`

	// In tokens of a token exchange (RFC 8693).
	Act       *Actor     `json:"act,omitempty"`
	Parent    string     `json:"ptok,omitempty"` // jti of the subject token
	Ancestors []Ancestor `json:"anc,omitempty"`

	// Configured are the claims that the tenant has configured for the application. They are
	// written and not read.
	Configured map[string]json.RawMessage `json:"-"`

	keyID string // kid of the header, of a verified token
}

// MarshalJSON implements [json.Marshaler]. No configured claim has the name of another member
// ([client.ReservedClaim]).
func (c Claims) MarshalJSON() ([]byte, error) {
	type members Claims
	own, err := json.Marshal(members(c))
	if err != nil || len(c.Configured) == 0 {
		return own, err
	}
	configured, err := json.Marshal(c.Configured)
	if err != nil {
		return nil, err
	}
	return slices.Concat(own[:len(own)-1], []byte{','}, configured[1:]), nil
}

// Audience is one string or an array on the wire (RFC 7519 §4.1.3).
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

// Seconds is the inverse of [time.Time.Unix].
func Seconds(s int64) time.Time { return time.Unix(s, 0).UTC() }

// Actor is the actor of a token, and the actors before it (RFC 8693 §4.1).
type Actor struct {
	Subject  string `json:"sub"`
	ClientID string `json:"client_id,omitempty"`
	Act      *Actor `json:"act,omitempty"`
}

// Depth returns the number of actors.
func (a *Actor) Depth() int {
	if a == nil {
		return 0
	}
	return 1 + a.Act.Depth()
}

// SubjectOf returns the user or application of a sub, by the form of the id. A comparison with
// client_id would not suffice: a token of an application may have been exchanged by another.
func SubjectOf(sub string) tuplestore.Subject {
	if strings.HasPrefix(sub, id.Client+"_") {
		return tuplestore.Subject{Type: schema.ApplicationType, ID: sub}
	}
	return tuplestore.Subject{Type: schema.UserType, ID: sub}
}
