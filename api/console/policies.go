package console

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"stonetown/api/inprocess"
	"stonetown/internal/ratelimit"
)

const (
	policiesPage = securityPage + "/policies"
	settingsPath = "/api/v1/settings"
)

// policy is a group of settings with a form of its own.
type policy struct {
	ID, Title, About string
	Button           string
	Fields           []field
}

// policies are all settings of a tenant. Limits are those of the operation, which checks them.
var policies = []policy{
	{"passwords", "Passwords", "For new passwords. Common passwords and those that contain the name or the address of the user are refused in any case.", "Save passwords", []field{
		{Name: "password_policy/min_length", Label: "Shortest length (characters)", Kind: asNumber, Hint: "8 to 64. Empty: 8."},
		{Name: "password_policy/max_length", Label: "Longest length (characters)", Kind: asNumber, Hint: "64 to 256. Empty: 128."},
	}},
	{"factors", "Second factors", "Passkeys, authenticator apps and phones.", "Save second factors", []field{
		{Name: "mfa_policy/mode", Label: "Second factor at sign-in", Kind: asChoice, Required: true, Options: []string{"off", "optional", "required"}, Hint: "Off: no factor is required, and none can be added. Optional: users who have a factor must use it. Required: users without one must add one when they sign in."},
		{Name: "mfa_policy/kinds", Label: "Kinds that users can add", Kind: asChoices, Options: []string{"webauthn", "totp", "sms"}},
	}},
	{"sessions", "Sessions", "How long users stay signed in in a browser.", "Save sessions", []field{
		{Name: "session/idle_s", Label: "End after this time without use (seconds)", Kind: asNumber, Hint: "300 to 31,536,000. Empty: 86,400 (1 day)."},
		{Name: "session/absolute_s", Label: "End after this time in any case (seconds)", Kind: asNumber, Hint: "300 to 31,536,000. Empty: 2,592,000 (30 days)."},
	}},
	{"accounts", "Accounts", "Who can create an account, and when it can be used.", "Save accounts", []field{
		{Name: "sign_up", Label: "Sign-up", Kind: asChoice, Required: true, Options: []string{"open", "closed"}, Hint: "Open: people can create accounts of their own. Closed: only administrators create accounts, directly, by import, or through a directory or connection."},
		{Name: "require_verified_email", Label: "Users must verify their e-mail address before they can sign in", Kind: asFlag},
	}},
	{"tokens", "Tokens", "Applications can have lifetimes of their own, which take precedence.", "Save tokens", []field{
		{Name: "token_defaults/access_token_ttl_s", Label: "Access tokens are valid for (seconds)", Kind: asNumber, Hint: "60 to 86,400. Empty: 3,600 (1 hour)."},
		{Name: "token_defaults/refresh_token_ttl_s", Label: "Refresh tokens are valid for (seconds)", Kind: asNumber, Hint: "300 to 31,536,000. Empty: 2,592,000 (30 days)."},
		{Name: "refresh_family_max_s", Label: "Refresh tokens can follow from one authorization for (seconds)", Kind: asNumber, Hint: "300 to 31,536,000. Empty: 7,776,000 (90 days). Authorizations keep the value of the time when they began."},
		{Name: "refresh_reuse_leeway_s", Label: "A replaced refresh token is accepted again for (seconds)", Kind: asNumber, Hint: "0 to 60. Empty: 0. For clients that renew twice at once or lose a response. After that, its reuse ends the authorization, because one of the two copies may be stolen."},
	}},
	{"clients", "Authentication of applications", "How applications prove their identity, and which websites may read responses of the API.", "Save authentication", []field{
		{Name: "previous_secret_ttl_s", Label: "A replaced secret stays valid for (seconds)", Kind: asNumber, Hint: "0 to 604,800. Empty: 259,200 (3 days). The default of new secrets of applications."},
		{Name: "client_assertion_max_s", Label: "JWTs of private_key_jwt may be valid for (seconds)", Kind: asNumber, Hint: "60 to 3,600. Empty: 3,600 (1 hour). Each is accepted once."},
		{Name: "trusted_origins", Label: "Trusted web origins", Kind: asLines, Hint: "Origins whose scripts may read responses of the API, besides those of applications, such as https://tools.example.com. One on each line, at most 50."},
		{Name: "require_state", Label: "Refuse authorization requests without state", Kind: asFlag},
	}},
	{"registration", "Registration of applications", "Whether clients become applications without an administrator.", "Save registration", []field{
		{Name: "dcr_mode", Label: "Dynamic client registration", Kind: asChoice, Required: true, Options: []string{"off", "initial_access_token", "open"}, Hint: "Off: none. With an initial access token: clients with an access token with the scope applications:write. Open: every client; at most 1,000 that registered without a token, of which unused ones are deleted after a day."},
		{Name: "client_id_documents", Label: "Client ID metadata documents", Kind: asChoice, Required: true, Options: []string{"off", "hosts", "open"}, Hint: "Whether a client id can be the URL of a document about the client. Listed hosts only: of the hosts below. Open: of every host. Users are asked for consent each time."},
		{Name: "client_id_document_hosts", Label: "Hosts of these documents", Kind: asLines, Hint: "In lower case, with a port unless it is 443. One on each line, at most 50."},
		{Name: "dcr_require_pkce", Label: "Confidential clients that register themselves need PKCE", Kind: asFlag},
	}},
	{"limits", "Rate limits", "Requests and the time in which they may come: a number, a slash, and s, min, h or d, such as 600/min; or unlimited. Empty: the limit of the deployment. Limits by address count the requests of an IP address, those by caller the requests of a user or, without one, of an application.", "Save limits", limitFields()},
}

// limitFields are the limits of each family, by address and by caller.
func limitFields() (all []field) {
	about := map[ratelimit.Family]string{
		ratelimit.Token: "Issue of tokens", ratelimit.SignIn: "Sign-in", ratelimit.Page: "Hosted pages", ratelimit.SelfService: "The user's own account",
		ratelimit.Admin: "Administration", ratelimit.Authz: "Checks, resources and relations", ratelimit.Client: "Introspection and revocation", ratelimit.Provisioning: "Directories (SCIM)",
	}
	by := map[ratelimit.By]string{ratelimit.IP: "by address", ratelimit.Caller: "by caller"}
	for _, c := range ratelimit.All() {
		all = append(all, field{Name: "rate_limits/" + c.String(), Label: about[c.Family] + ", " + by[c.By], Kind: asText, Hint: c.String()})
	}
	return all
}

// form returns the form of the policy.
func (p policy) form() *form {
	return &form{Sections: []section{{"", p.Fields}}, Action: policiesPage + "/" + p.ID, Button: p.Button}
}

// of returns the settings with a version of those of the policy: a change of another policy is none of
// this one.
func (p policy) of(settings object) object { return versioned(settings, p.Fields) }

// versioned returns a resource that has no time of a change, with a version of the members of fields in
// its place.
func versioned(resource object, fields []field) object {
	var mine []any
	for _, f := range fields {
		mine = append(mine, member(resource, f.Name))
	}
	text, err := json.Marshal(mine)
	if err != nil {
		panic("console: " + err.Error()) // it was JSON
	}
	sum := sha256.Sum256(text)
	resource = maps.Clone(resource)
	resource["updated_at"] = hex.EncodeToString(sum[:8])
	return resource
}

// readPolicies shows all policies.
func readPolicies(v *visit) error {
	s, err := v.one(settingsPath)
	if err != nil {
		return err
	}
	return v.showPolicies(s, "", nil, nil)
}

// showPolicies shows all policies; that with the id as it was typed, with an error.
func (v *visit) showPolicies(settings object, id string, typed *form, wrong *fault) error {
	type shown struct {
		policy
		Form *form
	}
	var all []shown
	for _, p := range policies {
		f := typed
		if p.ID != id {
			f = p.form()
			f.show(p.of(settings))
		}
		all = append(all, shown{p, f})
	}
	data := object{"Policies": all, "Write": v.may("settings:write")}
	if v.may("settings:write") {
		v.calls = append(v.calls, call{http.MethodPatch, settingsPath, object{"password_policy": settings["password_policy"]}})
	}
	if wrong != nil {
		return v.again("policies.html", "Policies", data, wrong)
	}
	return v.show("policies.html", "Policies", data)
}

// savePolicy changes the settings of one policy.
func savePolicy(v *visit) error {
	if err := v.require("settings:write"); err != nil {
		return err
	}
	i := slices.IndexFunc(policies, func(p policy) bool { return p.ID == v.variable("policy") })
	if i < 0 {
		return &inprocess.Error{Status: http.StatusNotFound, Message: "there is no such policy"}
	}
	s, err := v.one(settingsPath)
	if err != nil {
		return err
	}
	p := policies[i]
	f := p.form()
	body, wrong := v.body(f, p.of(s))
	if wrong == nil && len(body) > 0 {
		_, err = v.call(http.MethodPatch, settingsPath, body)
		wrong = f.refused(err, nil)
	}
	if wrong != nil {
		return v.showPolicies(s, p.ID, f, wrong)
	}
	if err != nil {
		return err
	}
	v.redirect(policiesPage + "?done=saved")
	return nil
}
