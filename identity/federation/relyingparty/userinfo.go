package relyingparty

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"stonetown/internal/outbound"
)

// userinfo returns the claims of the userinfo endpoint (Core §5.3), which may be a signed JWT.
func (s *Service) userinfo(ctx context.Context, p Provider, m Metadata, subject, accessToken string) (map[string]any, error) {
	a, err := s.call(ctx, m.UserinfoEndpoint, accessToken, "application/json")
	if err != nil {
		return nil, at(Userinfo, err)
	}
	text := a.Body
	if media, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type")); media == "application/jwt" {
		opened, err := s.verify(ctx, m, strings.TrimSpace(string(text)), "", "jwt")
		if err != nil {
			return nil, at(Userinfo, err)
		}
		c, err := readClaims(opened.payload)
		if err != nil || c.Issuer != m.Issuer || !slices.Contains(c.Audience, p.ClientID) {
			return nil, failed(Invalid, Userinfo, "the signed answer is not by the provider for the client")
		}
		text = opened.payload
	}
	var info map[string]any
	if json.Unmarshal(text, &info) != nil {
		return nil, failed(Invalid, Userinfo, "the answer is not a JSON object")
	}
	if info["sub"] != subject { // Core §5.3.2: the claims could be those of another user
		return nil, failed(Invalid, Userinfo, "sub is not that of the ID token")
	}
	return info, nil
}

// call sends a request with an access token.
func (s *Service) call(ctx context.Context, to, accessToken, accept string) (outbound.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return outbound.Answer{}, &outbound.Error{Class: outbound.Invalid}
	}
	req.Header.Set("Authorization", "Bearer "+accessToken)
	req.Header.Set("Accept", accept)
	return s.do(req, Userinfo)
}

const githubMedia = "application/vnd.github+json"

// callAPI sends a request to GitHub's API. A request beyond its rate limit has the status 403 as
// well.
func (s *Service) callAPI(ctx context.Context, to, accessToken string) (outbound.Answer, error) {
	a, err := s.call(ctx, to, accessToken, githubMedia)
	if a.Status == http.StatusForbidden && a.Header.Get("X-RateLimit-Remaining") == "0" {
		return a, failed(Unavailable, Userinfo, "the rate limit of the API is exceeded")
	}
	return a, err
}

// identifyByAPI returns the user of an access token of GitHub. The claims are the members of the
// user, and those that OpenID Connect names (Core §5.1). The address is the primary one of the
// user's addresses: that of the user is one that the user chose to show.
func (s *Service) identifyByAPI(ctx context.Context, issuer string, api API, accessToken string) (Identity, error) {
	a, err := s.callAPI(ctx, api.User, accessToken)
	if err != nil {
		return Identity{}, at(Userinfo, err)
	}
	var user struct {
		ID     int64  `json:"id"`
		Login  string `json:"login"`
		Avatar string `json:"avatar_url"`
		Page   string `json:"html_url"`
	}
	var all map[string]any
	if json.Unmarshal(a.Body, &user) != nil || json.Unmarshal(a.Body, &all) != nil || user.ID <= 0 {
		return Identity{}, failed(Invalid, Userinfo, "the answer is not a user")
	}
	i := Identity{Issuer: issuer, Subject: strconv.FormatInt(user.ID, 10), Claims: all}
	delete(all, "email")
	delete(all, "email_verified")
	for name, value := range map[string]string{"sub": i.Subject, "preferred_username": user.Login, "picture": user.Avatar, "profile": user.Page} {
		if value != "" {
			all[name] = value
		}
	}
	primary, verified, err := s.primaryEmail(ctx, api, accessToken)
	if err != nil {
		return Identity{}, err
	}
	if primary != "" {
		all["email"], all["email_verified"] = primary, verified
	}
	i.setEmail(Preset{})
	return i, nil
}

// primaryEmail returns the primary address of a user of GitHub. It is empty if the access token is
// not for the addresses, which GitHub answers with 403 or 404.
func (s *Service) primaryEmail(ctx context.Context, api API, accessToken string) (address string, verified bool, err error) {
	a, err := s.callAPI(ctx, api.Emails, accessToken)
	var limited *Error
	switch {
	case errors.As(err, &limited):
		return "", false, err
	case a.Status == http.StatusForbidden, a.Status == http.StatusNotFound:
		return "", false, nil
	case err != nil:
		return "", false, at(Userinfo, err)
	}
	var list []struct {
		Email    string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	if json.Unmarshal(a.Body, &list) != nil {
		return "", false, failed(Invalid, Userinfo, "the answer is not a list of addresses")
	}
	for _, one := range list {
		if one.Primary {
			return one.Email, one.Verified, nil
		}
	}
	return "", false, nil
}
