package settings

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/web"
	"stonetown/oauth"
)

// ofApplications are the settings of applications and their tokens.
var ofApplications = members[oauth.Settings]{
	"dcr_mode":               word([]string{string(oauth.DCROff), string(oauth.DCRInitialAccessToken)}, func(s *oauth.Settings) *string { return (*string)(&s.DCRMode) }),
	"require_state":          flag(func(s *oauth.Settings) *bool { return &s.RequireState }),
	"refresh_reuse_leeway_s": seconds(0, oauth.MostRefreshReuseLeeway, func(s *oauth.Settings) *int { return &s.RefreshReuseLeewayS }),
	"refresh_family_max_s":   seconds(oauth.LeastRefreshFamily, oauth.MostRefreshFamily, func(s *oauth.Settings) *int { return &s.RefreshFamilyMaxS }),
	"previous_secret_ttl_s":  seconds(0, oauth.MostPreviousSecretTTL, func(s *oauth.Settings) *int { return &s.PreviousSecretTTLS }),

	"token_defaults/access_token_ttl_s":  seconds(oauth.LeastAccessTokenTTL, oauth.MostAccessTokenTTL, func(s *oauth.Settings) *int { return &s.Tokens.AccessS }),
	"token_defaults/refresh_token_ttl_s": seconds(oauth.LeastRefreshTokenTTL, oauth.MostRefreshTokenTTL, func(s *oauth.Settings) *int { return &s.Tokens.RefreshS }),
	"trusted_origins":                    set(readOrigins, func(s *oauth.Settings) *[]string { return &s.TrustedOrigins }),
}

func readOrigins(v *web.Validation, field string, value jsontext.Value, into *[]string) {
	if json.Unmarshal(value, into) != nil {
		v.Add(field, "type_invalid", "must be a list of strings, or null")
	} else if err := oauth.ValidateOrigins(*into); err != nil {
		v.Add(field, "invalid", "are refused: "+err.Error())
	}
}

func seconds(least, most time.Duration, of func(*oauth.Settings) *int) member[oauth.Settings] {
	return integer(int(least.Seconds()), int(most.Seconds()), of)
}

// applicationsOf reads the members of a patch that are about applications.
func applicationsOf(form *SettingsPatch) (change func(*oauth.Settings), err error) {
	return ofApplications.read(map[string]jsontext.Value{
		"dcr_mode": form.DcrMode, "require_state": form.RequireState, "refresh_reuse_leeway_s": form.RefreshReuseLeewayS,
		"refresh_family_max_s": form.RefreshFamilyMaxS, "previous_secret_ttl_s": form.PreviousSecretTTLS,
		"token_defaults": form.TokenDefaults, "trusted_origins": form.TrustedOrigins,
	}, oauth.DefaultSettings())
}
