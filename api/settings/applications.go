package settings

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/web"
	"stonetown/oauth/client"
)

// ofApplications are the settings of applications and their tokens.
var ofApplications = members[client.Settings]{
	"dcr_mode":                 word([]string{string(client.DCROff), string(client.DCRInitialAccessToken), string(client.DCROpen)}, func(s *client.Settings) *string { return (*string)(&s.DCRMode) }),
	"dcr_require_pkce":         flag(func(s *client.Settings) *bool { return &s.DCRRequirePKCE }),
	"client_id_documents":      word(client.DocumentModes, func(s *client.Settings) *string { return (*string)(&s.ClientIDDocuments) }),
	"client_id_document_hosts": set(readHosts, func(s *client.Settings) *[]string { return &s.ClientIDDocumentHosts }),
	"require_state":            flag(func(s *client.Settings) *bool { return &s.RequireState }),
	"refresh_reuse_leeway_s":   seconds(0, client.MostRefreshReuseLeeway, func(s *client.Settings) *int { return &s.RefreshReuseLeewayS }),
	"refresh_family_max_s":     seconds(client.LeastRefreshFamily, client.MostRefreshFamily, func(s *client.Settings) *int { return &s.RefreshFamilyMaxS }),
	"previous_secret_ttl_s":    seconds(0, client.MostPreviousSecretTTL, func(s *client.Settings) *int { return &s.PreviousSecretTTLS }),
	"client_assertion_max_s":   seconds(client.LeastClientAssertion, client.MostClientAssertion, func(s *client.Settings) *int { return &s.ClientAssertionMaxS }),

	"token_defaults/access_token_ttl_s":  seconds(client.LeastAccessTokenTTL, client.MostAccessTokenTTL, func(s *client.Settings) *int { return &s.Tokens.AccessS }),
	"token_defaults/refresh_token_ttl_s": seconds(client.LeastRefreshTokenTTL, client.MostRefreshTokenTTL, func(s *client.Settings) *int { return &s.Tokens.RefreshS }),
	"trusted_origins":                    set(readOrigins, func(s *client.Settings) *[]string { return &s.TrustedOrigins }),
}

func readHosts(v *web.Validation, field string, value jsontext.Value, into *[]string) {
	if json.Unmarshal(value, into) != nil {
		v.Add(field, "type_invalid", "must be a list of strings, or null")
	} else if err := client.ValidateDocumentHosts(*into); err != nil {
		v.Add(field, "invalid", "are refused: "+err.Error())
	}
}

func readOrigins(v *web.Validation, field string, value jsontext.Value, into *[]string) {
	if json.Unmarshal(value, into) != nil {
		v.Add(field, "type_invalid", "must be a list of strings, or null")
	} else if err := client.ValidateOrigins(*into); err != nil {
		v.Add(field, "invalid", "are refused: "+err.Error())
	}
}

func seconds(least, most time.Duration, of func(*client.Settings) *int) member[client.Settings] {
	return integer(int(least.Seconds()), int(most.Seconds()), of)
}

// applicationsOf reads the members of a patch that are about applications.
func applicationsOf(form *SettingsPatch) (change func(*client.Settings), err error) {
	return ofApplications.read(map[string]jsontext.Value{
		"dcr_mode": form.DcrMode, "dcr_require_pkce": form.DcrRequirePkce, "client_id_documents": form.ClientIDDocuments, "client_id_document_hosts": form.ClientIDDocumentHosts, "require_state": form.RequireState, "refresh_reuse_leeway_s": form.RefreshReuseLeewayS,
		"refresh_family_max_s": form.RefreshFamilyMaxS, "previous_secret_ttl_s": form.PreviousSecretTTLS,
		"client_assertion_max_s": form.ClientAssertionMaxS,
		"token_defaults":         form.TokenDefaults, "trusted_origins": form.TrustedOrigins,
	}, client.DefaultSettings())
}
