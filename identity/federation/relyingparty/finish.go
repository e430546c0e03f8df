package relyingparty

import (
	"context"
	"crypto"
	_ "crypto/sha256" // hashes of tokens
	_ "crypto/sha512"
	"crypto/subtle"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// Finish completes a sign-in with the parameters of the callback: those of the URL, or of the form
// for response_mode form_post.
func (s *Service) Finish(ctx context.Context, p Provider, pending Pending, params url.Values) (Identity, error) {
	preset, err := s.preset(p)
	if err != nil {
		return Identity{}, err
	}
	a, err := readAnswer(params)
	if err != nil {
		return Identity{}, at(Authorization, err)
	}
	m, err := s.Metadata(ctx, p)
	if err != nil {
		return Identity{}, err
	}
	issuers := issuersOf(preset, p, m)
	if err := checkAnswer(a, p, m, issuers, pending); err != nil {
		return Identity{}, at(Authorization, err)
	}
	received, err := s.redeem(ctx, p, m, pending, a.code)
	if err != nil {
		return Identity{}, err
	}
	if preset.API != nil {
		return s.identifyByAPI(ctx, m.Issuer, *preset.API, received.access)
	}
	if received.id == "" {
		return Identity{}, failed(Invalid, IDToken, "the token response has no id_token")
	}
	opened, err := s.verify(ctx, m, received.id, "", "jwt")
	if err != nil {
		return Identity{}, at(IDToken, err)
	}
	c, err := readClaims(opened.payload)
	if err == nil {
		err = c.check(issuers, opened.key, p.ClientID, s.clock())
	}
	if err == nil {
		err = c.checkIDToken(pending, opened.alg, received.access, a.code)
	}
	if err != nil {
		return Identity{}, at(IDToken, err)
	}
	if m.UserinfoEndpoint != "" && !preset.NoUserinfo {
		info, err := s.userinfo(ctx, p, m, c.Subject, received.access)
		if err != nil {
			return Identity{}, err
		}
		merge(c.all, info)
	}
	if p.Kind == Apple {
		addName(c.all, a.user)
	}
	identity := Identity{
		Issuer: c.Issuer, Subject: c.Subject, Claims: c.all,
		ACR: c.text("acr"), AMR: c.list("amr"), SessionID: c.text("sid"), IDToken: received.id,
	}
	if len(identity.SessionID) > maxSubject {
		identity.SessionID = "" // no logout token has it
	}
	if at, ok := c.date("auth_time"); ok {
		identity.AuthTime = instant(at)
	}
	identity.setEmail(preset)
	return identity, nil
}

// setEmail sets the address and its verification, in the fields and in the claims.
func (i *Identity) setEmail(preset Preset) {
	verified := isTrue(i.Claims["email_verified"])
	if preset.VerifiedClaim != "" {
		verified = isTrue(i.Claims[preset.VerifiedClaim])
	}
	i.Email, _ = i.Claims["email"].(string)
	if preset.HostedClaim != "" && !strings.HasSuffix(strings.ToLower(i.Email), preset.HostedDomain) {
		hosted, _ := i.Claims[preset.HostedClaim].(string)
		verified = verified && hosted != ""
	}
	i.EmailVerified = verified && i.Email != ""
	if i.Email == "" {
		delete(i.Claims, "email")
		delete(i.Claims, "email_verified")
		return
	}
	i.Claims["email_verified"] = i.EmailVerified
}

// checkIDToken refuses the claims of an ID token that is not for a sign-in (Core §3.1.3.7).
func (c claims) checkIDToken(pending Pending, alg, accessToken, code string) error {
	switch {
	case c.Subject == "" || !utf8.ValidString(c.Subject) || strings.ContainsRune(c.Subject, 0):
		return refused("sub is missing or not text")
	case c.Expires == nil:
		return refused("exp is missing")
	case c.Nonce == nil || pending.Nonce == "" || subtle.ConstantTimeCompare([]byte(*c.Nonce), []byte(pending.Nonce)) != 1:
		return refused("nonce is not that of the sign-in")
	case c.AccessTokenHash != nil && *c.AccessTokenHash != halfHash(alg, accessToken):
		return refused("at_hash is not that of the access token")
	case c.CodeHash != nil && *c.CodeHash != halfHash(alg, code):
		return refused("c_hash is not that of the code")
	}
	at, ok := c.date("auth_time")
	switch {
	case pending.MaxAge != nil && !ok:
		return refused("auth_time is missing, which max_age requires")
	case pending.MaxAge != nil && at < seconds(pending.Begun.Add(-*pending.MaxAge-Skew)):
		return refused("auth_time is before what max_age requires")
	case pending.Fresh && ok && at < seconds(pending.Begun.Add(-Skew)):
		return refused("auth_time is before the sign-in, which had to be a new one")
	}
	return nil
}

// halfHash returns the value of at_hash or c_hash: the left half of the hash of the algorithm (Core
// §3.1.3.6). EdDSA with Ed25519 has SHA-512.
func halfHash(alg, text string) string {
	hash := crypto.SHA512
	switch alg[2:] {
	case "256":
		hash = crypto.SHA256
	case "384":
		hash = crypto.SHA384
	}
	h := hash.New()
	h.Write([]byte(text))
	sum := h.Sum(nil)
	return base64url.EncodeToString(sum[:len(sum)/2])
}

// addName adds the name that Apple sends beside the code, at the first sign-in only. The browser
// could have changed it, so nothing else of it is used, and an invalid one is ignored.
func addName(all map[string]any, user string) {
	var form struct {
		Name struct {
			First string `json:"firstName"`
			Last  string `json:"lastName"`
		} `json:"name"`
	}
	if user == "" || json.Unmarshal([]byte(user), &form) != nil {
		return
	}
	for name, value := range map[string]string{
		"given_name": form.Name.First, "family_name": form.Name.Last, "name": strings.TrimSpace(form.Name.First + " " + form.Name.Last),
	} {
		if _, ok := all[name]; !ok && value != "" {
			all[name] = value
		}
	}
}
