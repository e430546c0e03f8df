package relyingparty

import (
	"net/url"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
)

func TestLogoutURL(t *testing.T) {
	p := newProvider(t)
	p.metadata["end_session_endpoint"] = p.URL + "/logout?tenant=1"
	s := p.service(nil, nil)
	to, err := s.LogoutURL(t.Context(), p.discovered(), Logout{IDToken: "a.b.c", RedirectURI: "https://a.example.com/left", State: "7"})
	if err != nil {
		t.Fatal(detail(err))
	}
	u, err := url.Parse(to)
	want := "client_id=app_1&id_token_hint=a.b.c&post_logout_redirect_uri=https%3A%2F%2Fa.example.com%2Fleft&state=7&tenant=1"
	if err != nil || u.RawQuery != want || u.Path != "/logout" {
		t.Errorf("%s, %v", to, err)
	}
	if to, err := s.LogoutURL(t.Context(), p.discovered(), Logout{}); err != nil || to != p.URL+"/logout?client_id=app_1&tenant=1" {
		t.Errorf("%s, %v", to, err)
	}
}

func TestVerifyLogoutToken(t *testing.T) {
	p := newProvider(t)
	s := p.service(nil, nil)
	now := p.clock.Now()
	base := object{
		"iss": p.URL, "aud": clientID, "iat": now.Unix(), "exp": now.Add(2 * time.Minute).Unix(), "jti": "1", "sub": "user-1", "sid": "session-1",
		"events": object{logoutEvent: object{}},
	}
	es := signers()["p256"]
	for what, test := range map[string]struct {
		header, claims object
		want           LoggedOut
		reason         string
	}{
		"both":          {nil, nil, LoggedOut{p.URL, "user-1", "session-1", "1", now.Add(3 * time.Minute)}, ""},
		"typ":           {object{"typ": "logout+jwt"}, object{"sub": nil}, LoggedOut{p.URL, "", "session-1", "1", now.Add(3 * time.Minute)}, ""},
		"whole typ":     {object{"typ": "application/logout+JWT"}, object{"sid": nil}, LoggedOut{p.URL, "user-1", "", "1", now.Add(3 * time.Minute)}, ""},
		"JWT":           {object{"typ": "JWT"}, nil, LoggedOut{p.URL, "user-1", "session-1", "1", now.Add(3 * time.Minute)}, ""},
		"no exp":        {nil, object{"exp": nil}, LoggedOut{p.URL, "user-1", "session-1", "1", now.Add(defaultLogoutAge + Skew)}, ""},
		"long":          {nil, object{"exp": now.Add(1000 * time.Hour).Unix()}, LoggedOut{p.URL, "user-1", "session-1", "1", now.Add(maxLogoutAge + Skew)}, ""},
		"huge exp":      {nil, object{"exp": 1e300}, LoggedOut{p.URL, "user-1", "session-1", "1", now.Add(maxLogoutAge + Skew)}, ""},
		"old":           {nil, object{"exp": nil, "iat": now.Add(-defaultLogoutAge - Skew).Unix()}, LoggedOut{}, "expired"},
		"too old":       {nil, object{"exp": now.Add(time.Hour).Unix(), "iat": now.Add(-maxLogoutAge - Skew).Unix()}, LoggedOut{}, "expired"},
		"expired":       {nil, object{"exp": now.Add(-Skew).Unix()}, LoggedOut{}, "exp"},
		"ID token":      {nil, object{"events": nil, "nonce": "x"}, LoggedOut{}, "event"},
		"nonce":         {nil, object{"nonce": "x"}, LoggedOut{}, "nonce"},
		"other event":   {nil, object{"events": object{"https://x.example": object{}}}, LoggedOut{}, "event"},
		"event is true": {nil, object{"events": object{logoutEvent: true}}, LoggedOut{}, "event"},
		"events a list": {nil, object{"events": []string{logoutEvent}}, LoggedOut{}, "event"},
		"no user":       {nil, object{"sub": nil, "sid": nil}, LoggedOut{}, "sub"},
		"no jti":        {nil, object{"jti": nil}, LoggedOut{}, "jti"},
		"no iat":        {nil, object{"iat": nil}, LoggedOut{}, "iat"},
		"another aud":   {nil, object{"aud": "app_2"}, LoggedOut{}, "aud"},
		"another iss":   {nil, object{"iss": "https://evil.example"}, LoggedOut{}, "iss"},
		"access token":  {object{"typ": "at+jwt"}, nil, LoggedOut{}, "typ"},
	} {
		token := sign(t, jwa.ES256(), es, with(object{"kid": "p256"}, test.header), with(base, test.claims))
		got, err := s.VerifyLogoutToken(t.Context(), p.discovered(), token)
		if test.reason != "" {
			wantError(t, what, err, Invalid, LogoutToken, test.reason)
		} else if err != nil || got != test.want {
			t.Errorf("%s: %+v, %s", what, got, detail(err))
		}
	}
	null := sign(t, jwa.ES256(), es, nil, `{"nonce":null,`+string(asText(t, base))[1:])
	_, err := s.VerifyLogoutToken(t.Context(), p.discovered(), null)
	wantError(t, "nonce is null", err, Invalid, LogoutToken, "nonce")
	_, err = s.VerifyLogoutToken(t.Context(), p.discovered(), sign(t, jwa.ES256(), signers()["other"], object{"kid": "p256"}, base))
	wantError(t, "another key", err, Invalid, LogoutToken, "signature")
	_, err = s.VerifyLogoutToken(t.Context(), Provider{Kind: GitHub, ClientID: clientID}, null)
	wantError(t, "GitHub", err, Misconfigured, LogoutToken, "no logout tokens")
}
