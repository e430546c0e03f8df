package access

import (
	"slices"

	"stonetown/oauth/scope"
)

// claimsOfScopes are the claims about users that scopes permit (OIDC Core §5.4).
var claimsOfScopes = map[string][]string{
	"profile": append([]string{"name", "given_name", "family_name", "picture", "locale", "updated_at"}, profileAttributes...),
	"email":   {"email", "email_verified"},
	"phone":   {"phone_number", "phone_number_verified"},
	"address": {"address"},
}

// scopeOf has the scope of each claim about a user that can be requested by itself: all of
// [StandardClaims] but sub.
var scopeOf = func() map[string]string {
	of := map[string]string{}
	for scope, claims := range claimsOfScopes {
		for _, claim := range claims {
			of[claim] = scope
		}
	}
	return of
}()

// RequestedClaims are claims about a user that an application gets without their scope, because it
// asked for each of them (OIDC Core §5.5). All of them are of [StandardClaims].
type RequestedClaims struct {
	UserInfo []string `json:"userinfo,omitempty"`
	IDToken  []string `json:"id_token,omitempty"`
}

// Names returns the names of the claims, wherever the application gets them, in the order of
// [StandardClaims]. Users agree to a claim and not to its place.
func (r RequestedClaims) Names() []string {
	return slices.DeleteFunc(slices.Clone(StandardClaims), func(name string) bool {
		return !slices.Contains(r.UserInfo, name) && !slices.Contains(r.IDToken, name)
	})
}

// Empty reports whether there are none.
func (r RequestedClaims) Empty() bool { return len(r.UserInfo) == 0 && len(r.IDToken) == 0 }

// Of returns those of the claims that are among names.
func (r RequestedClaims) Of(names []string) RequestedClaims {
	return r.where(func(name string) bool { return slices.Contains(names, name) })
}

// For returns the claims that an application gets which is allowed some scopes: those whose scopes it
// is allowed. So a claim that is requested by itself is no way around the allowed scopes. Each use of
// requested claims asks For, because the allowed scopes can change.
func (r RequestedClaims) For(allowed []string) RequestedClaims {
	return r.where(func(name string) bool { return slices.Contains(allowed, scopeOf[name]) })
}

// Beyond returns the claims that scopes do not permit already.
func (r RequestedClaims) Beyond(scopes []string) RequestedClaims {
	return r.where(func(name string) bool { return !slices.Contains(scopes, scopeOf[name]) })
}

func (r RequestedClaims) where(keep func(name string) bool) RequestedClaims {
	only := func(names []string) (kept []string) {
		for _, name := range names {
			if keep(name) {
				kept = append(kept, name)
			}
		}
		return kept
	}
	return RequestedClaims{only(r.UserInfo), only(r.IDToken)}
}

// permits returns a function that reports whether a token has a claim about its user: by a scope, or
// because it was requested by its name.
func permits(scopes scope.Set, requested []string) func(claim string) bool {
	return func(claim string) bool { return scopes.Has(scopeOf[claim]) || slices.Contains(requested, claim) }
}
