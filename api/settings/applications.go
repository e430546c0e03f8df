package settings

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/oauth"
)

// ofApplications are what a tenant decides about its applications and their tokens.
var ofApplications = members[oauth.Settings]{
	"dcr_mode":               word([]string{string(oauth.DCROff), string(oauth.DCRInitialAccessToken)}, func(s *oauth.Settings) *string { return (*string)(&s.DCRMode) }),
	"require_state":          flag(func(s *oauth.Settings) *bool { return &s.RequireState }),
	"refresh_reuse_leeway_s": seconds(0, oauth.MostRefreshReuseLeeway, func(s *oauth.Settings) *int { return &s.RefreshReuseLeewayS }),
	"refresh_family_max_s":   seconds(oauth.LeastRefreshFamily, oauth.MostRefreshFamily, func(s *oauth.Settings) *int { return &s.RefreshFamilyMaxS }),
	"previous_secret_ttl_s":  seconds(0, oauth.MostPreviousSecretTTL, func(s *oauth.Settings) *int { return &s.PreviousSecretTTLS }),
}

func seconds(least, most time.Duration, of func(*oauth.Settings) *int) member[oauth.Settings] {
	return integer(int(least.Seconds()), int(most.Seconds()), of)
}

// applicationsOf reads the members of a patch that are about applications.
func applicationsOf(form *SettingsPatch) (change func(*oauth.Settings), err error) {
	return ofApplications.read(map[string]jsontext.Value{
		"dcr_mode": form.DcrMode, "require_state": form.RequireState, "refresh_reuse_leeway_s": form.RefreshReuseLeewayS,
		"refresh_family_max_s": form.RefreshFamilyMaxS, "previous_secret_ttl_s": form.PreviousSecretTTLS,
	}, oauth.DefaultSettings())
}

// wireApplications puts the settings about applications as clients get them.
func wireApplications(w *Settings, s oauth.Settings) {
	w.DcrMode, w.RequireState = string(s.DCRMode), s.RequireState
	w.RefreshReuseLeewayS, w.RefreshFamilyMaxS, w.PreviousSecretTTLS = s.RefreshReuseLeewayS, s.RefreshFamilyMaxS, s.PreviousSecretTTLS
}
