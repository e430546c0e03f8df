package relyingparty

import (
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/jwks"
)

// claims are the claims of a token that the protocol uses.
type claims struct {
	Issuer     string   `json:"iss"`
	Subject    string   `json:"sub"`
	Audience   texts    `json:"aud"`
	Authorized string   `json:"azp"`
	Expires    *float64 `json:"exp"` // NumericDate may have a fraction (RFC 7519 §2)
	NotBefore  *float64 `json:"nbf"`
	IssuedAt   *float64 `json:"iat"`

	Nonce           *string `json:"nonce"`
	AccessTokenHash *string `json:"at_hash"`
	CodeHash        *string `json:"c_hash"`

	// all are all claims. Those that not every token has to have are read from it, because
	// providers use their names for other types as well.
	all map[string]any
}

// text returns a claim that is text; empty: there is none.
func (c claims) text(name string) string {
	text, _ := c.all[name].(string)
	return text
}

// list returns a claim that is a list of text, or one.
func (c claims) list(name string) []string {
	if one := c.text(name); one != "" {
		return []string{one}
	}
	values, _ := c.all[name].([]any)
	var list []string
	for _, value := range values {
		if one, ok := value.(string); ok {
			list = append(list, one)
		}
	}
	return list
}

// date returns a claim that is a NumericDate, in seconds.
func (c claims) date(name string) (float64, bool) {
	date, ok := c.all[name].(float64)
	return date, ok
}

// texts is one string or an array on the wire (RFC 7519 §4.1.3).
type texts []string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *texts) UnmarshalJSON(b []byte) error {
	if jsontext.Value(b).Kind() == '"' {
		*t = texts{""}
		return json.Unmarshal(b, &(*t)[0])
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// readClaims reads the claims of a token strictly: no name twice, and every name as it is written.
func readClaims(payload []byte) (c claims, err error) {
	if json.Unmarshal(payload, &c) != nil || json.Unmarshal(payload, &c.all) != nil || c.all == nil {
		return claims{}, refused("the claims are not valid JSON")
	}
	return c, nil
}

// check refuses claims that are not by the provider, for the client, and valid now.
func (c claims) check(issuers issuers, k jwks.Key, clientID string, now time.Time) error {
	switch {
	case !issuers.accept(c.Issuer, c.text("tid")):
		return refused("iss is not the issuer of the provider")
	case issuers.template != "" && k.Issuer != "" && issuerOf(k.Issuer, c.text("tid")) != c.Issuer:
		return refused("the key is that of another issuer")
	case !slices.Contains(c.Audience, clientID):
		return refused("aud does not contain the client id")
	case c.Authorized != "" && c.Authorized != clientID:
		return refused("azp is another client")
	case len(c.Audience) > 1 && c.Authorized == "":
		return refused("azp is missing in a token with several audiences")
	case c.IssuedAt == nil:
		return refused("iat is missing")
	case *c.IssuedAt > seconds(now.Add(Skew)):
		return refused("iat is in the future")
	case c.NotBefore != nil && *c.NotBefore > seconds(now.Add(Skew)):
		return refused("nbf is in the future")
	case c.Expires != nil && *c.Expires <= seconds(now.Add(-Skew)):
		return refused("exp is in the past")
	case len(c.Subject) > maxSubject:
		return refused("sub is too long")
	}
	return nil
}

// issuers are the values of iss that a provider may use: main and other or, at a provider with many
// directories, template with the id of an allowed one.
type issuers struct {
	main, other string
	template    string
	allowed     Directories
}

func issuersOf(preset Preset, p Provider, m Metadata) issuers {
	if preset.Directories == nil {
		return issuers{main: m.Issuer, other: preset.OtherIssuer}
	}
	return issuers{template: preset.Issuer, allowed: preset.allowed(p.Directory, m)}
}

// accept reports whether a token with the claims iss and tid is from the provider.
func (i issuers) accept(iss, tid string) bool {
	if i.template != "" {
		return i.acceptAnswer(iss) && tid == directoryIn(iss, i.template)
	}
	return iss == i.main || i.other != "" && iss == i.other
}

// acceptAnswer reports whether an answer of the authorization endpoint with the parameter iss is
// from the provider.
func (i issuers) acceptAnswer(iss string) bool {
	if i.template != "" {
		return i.allowed.contain(directoryIn(iss, i.template))
	}
	return iss == i.main
}

// seconds returns a NumericDate.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// instant returns the time of a NumericDate, at the second.
func instant(date float64) time.Time {
	const most = 1 << 40 // far in the future, and within the range of a time
	return time.Unix(int64(math.Floor(max(0, min(date, most)))), 0).UTC()
}

// merge adds the claims of the userinfo endpoint to those of the ID token, see the package.
func merge(token, info map[string]any) {
	for _, verified := range []struct{ value, flag string }{{"email", "email_verified"}, {"phone_number", "phone_number_verified"}} {
		_, ok := token[verified.value]
		of, _ := token[verified.value].(string)
		switch also, _ := info[verified.value].(string); {
		case !ok:
			delete(token, verified.flag) // of no value
		case of == "" || of != also:
			delete(info, verified.flag)
		}
	}
	for name, value := range info {
		if _, ok := token[name]; !ok && !slices.Contains(protocolClaims, name) {
			token[name] = value
		}
	}
}

// protocolClaims are claims about an authentication, which only the ID token can state.
var protocolClaims = []string{
	"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "nonce", "azp", "at_hash", "c_hash", "auth_time", "acr", "amr", "sid", "tid", "xms_edov", "events",
}

// isTrue reports whether a claim is true. Apple and Amazon Cognito write booleans as text, and
// Microsoft xms_edov also as a number.
func isTrue(claim any) bool {
	switch claim := claim.(type) {
	case bool:
		return claim
	case string:
		return claim == "true" || claim == "1"
	case float64:
		return claim == 1
	}
	return false
}
