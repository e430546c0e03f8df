package relyingparty

import (
	"context"
	"crypto/subtle"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Request describes a sign-in. Empty members are not sent.
type Request struct {
	// RedirectURI is the address to which the provider sends the browser back. It must differ
	// from those of other providers, see the package.
	RedirectURI string
	LoginHint   string
	// Fresh asks that the user authenticates again, in the way of the kind; see [Preset.Again].
	// [Service.Finish] refuses an ID token with an older auth_time. Most providers state it only if
	// they are asked for MaxAge.
	Fresh bool
	// Prompt are values of prompt, such as login.
	Prompt []string
	// ACRValues are the requested authentication context classes. A provider may ignore them,
	// so the caller must compare [Identity.ACR].
	ACRValues []string
	UILocales []string
	// MaxAge is the greatest time since the user authenticated at the provider when the
	// sign-in begins, in full seconds. [Service.Finish] refuses an ID token with an older
	// auth_time, or without one.
	MaxAge *time.Duration
}

// Pending is a sign-in between [Service.Begin] and [Service.Finish]. The caller must keep it
// secret, delete it before Finish so that it is used once, and accept it only from the browser for
// which it was made.
type Pending struct {
	State    string // identifies the sign-in in the parameters of the callback
	Nonce    string // empty without ID tokens
	Verifier string // PKCE

	Issuer      string
	ClientID    string
	RedirectURI string
	Begun       time.Time
	Fresh       bool
	MaxAge      *time.Duration
}

// Begin returns the URL to which the browser is sent.
func (s *Service) Begin(ctx context.Context, p Provider, r Request) (to string, pending Pending, err error) {
	preset, err := s.preset(p)
	if err != nil {
		return "", Pending{}, err
	}
	m, err := s.Metadata(ctx, p)
	if err != nil {
		return "", Pending{}, err
	}
	if p.ClientID == "" || r.RedirectURI == "" {
		return "", Pending{}, failed(Misconfigured, Configuration, "client_id or redirect_uri is missing")
	}
	pending = Pending{
		State: oauth2.GenerateVerifier(), Verifier: oauth2.GenerateVerifier(), // 256 random bits
		Issuer: m.Issuer, ClientID: p.ClientID, RedirectURI: r.RedirectURI, Begun: s.clock().UTC(), Fresh: r.Fresh, MaxAge: r.MaxAge,
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(pending.Verifier)}
	set := func(name, value string) {
		if value != "" {
			options = append(options, oauth2.SetAuthURLParam(name, value))
		}
	}
	if preset.API == nil {
		pending.Nonce = oauth2.GenerateVerifier()
	}
	set("nonce", pending.Nonce)
	set("response_mode", preset.ResponseMode)
	set("login_hint", r.LoginHint)
	prompt := r.Prompt
	if r.Fresh && preset.Again != "" && !slices.Contains(prompt, preset.Again) {
		prompt = append(slices.Clone(prompt), preset.Again)
	}
	set("prompt", strings.Join(prompt, " "))
	set("acr_values", strings.Join(r.ACRValues, " "))
	set("ui_locales", strings.Join(r.UILocales, " "))
	if r.MaxAge != nil {
		set("max_age", strconv.FormatInt(int64(*r.MaxAge/time.Second), 10))
	}
	config := oauth2.Config{
		ClientID: p.ClientID, RedirectURL: r.RedirectURI, Scopes: scopes(p, preset),
		Endpoint: oauth2.Endpoint{AuthURL: m.AuthorizationEndpoint},
	}
	return config.AuthCodeURL(pending.State, options...), pending, nil
}

// scopes returns the scopes to request. An ID token requires openid (Core §3.1.2.1).
func scopes(p Provider, preset Preset) []string {
	wanted := p.Scopes
	if len(wanted) == 0 {
		wanted = preset.Scopes
	}
	if preset.API == nil && !slices.Contains(wanted, "openid") {
		wanted = slices.Concat([]string{"openid"}, wanted)
	}
	return wanted
}

// answer is the answer of the authorization endpoint.
type answer struct{ code, state, iss, err, description, user string }

// readAnswer reads the parameters of a callback. No parameter may be present twice (RFC 6749 §3.1).
func readAnswer(params url.Values) (a answer, err error) {
	for name, value := range map[string]*string{
		"code": &a.code, "state": &a.state, "iss": &a.iss, "error": &a.err, "error_description": &a.description, "user": &a.user,
	} {
		values := params[name]
		if len(values) > 1 {
			return a, refused("a parameter is present twice")
		}
		if len(values) == 1 {
			*value = values[0]
		}
		if len(*value) > maxParam {
			return a, refused("a parameter is too long")
		}
	}
	return a, nil
}

// checkAnswer refuses an answer that does not belong to a sign-in at a provider. It is done before
// the error of the answer is believed, and before the code is sent anywhere.
func checkAnswer(a answer, p Provider, m Metadata, issuers issuers, pending Pending) error {
	switch {
	case pending.State == "" || subtle.ConstantTimeCompare([]byte(a.state), []byte(pending.State)) != 1:
		return refused("state is not that of the sign-in")
	case pending.Issuer != m.Issuer || pending.ClientID != p.ClientID:
		return failed(Stale, Authorization, "the sign-in began at another provider, or before the connection was changed")
	case a.iss == "" && m.IssParameter:
		return refused("iss is missing, which the metadata announces (RFC 9207)")
	case a.iss != "" && !issuers.acceptAnswer(a.iss):
		return refused("iss is another provider (RFC 9207)")
	case a.err != "" && a.code != "":
		return refused("the answer has both a code and an error")
	case a.err != "":
		return answered(Authorization, a.err, a.description)
	case a.code == "":
		return refused("the answer has no code")
	}
	return nil
}
