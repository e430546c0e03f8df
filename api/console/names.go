package console

import "fmt"

// names are the names of values that operations know: options of fields, mails, and uses of colours. Types of
// applications and kinds of connections and reports have theirs beside their descriptions, and
// languages in languageNames.
var names = map[string]string{
	// States.
	"active": "Active", "disabled": "Disabled", "enabled": "Enabled", "pending": "Pending", "open": "Open", "closed": "Closed",
	"accepted": "Accepted", "expired": "Expired", "revoked": "Withdrawn",
	"provisioning": "Provisioning", "suspended": "Suspended", "decommissioned": "Decommissioned",
	"retrying": "Retrying", "delivered": "Delivered", "dead_lettered": "Dead letter", "cancelled": "Cancelled", "draft": "Draft",

	// Settings.
	"off": "Off", "optional": "Optional", "required": "Required", "never": "Never", "any": "Any", "all": "All", "own": "Own", "default": "Default",
	"webauthn": "Passkeys and security keys", "totp": "Authenticator apps", "sms": "Text messages",
	"initial_access_token": "With an initial access token", "hosts": "Listed hosts only", "fapi2": "FAPI 2.0", "allowed_only": "Allowed only",
	"saml": "SAML 2.0", "persistent": "Persistent", "transient": "Transient", "emailAddress": "E-mail address", "user": "Users", "application": "Applications",
	"verified_email": "If both sides have verified it", "always_prompt": "If the user proves to own the account",
	"ask": "Ask for one here", "accept": "Accept one of the provider",
	"production": "Production", "staging": "Staging", "development": "Development",
	"daily": "Daily", "weekly": "Weekly", "monthly": "Monthly",
	"low": "Low", "medium": "Medium", "high": "High", "critical": "Critical",
	"viewer": "Viewer", "operator": "Operator", "admin": "Admin", "owner": "Owner",

	// Ways to a scope.
	"self": "Every user", "group": "Members of groups",

	// Threat feeds and sign-in flows.
	"log": "Record an event", "refuse": "Record and refuse", "address": "IP addresses", "mail_domain": "Mail domains",
	"sign_in": "Sign-in", "sign_up": "Sign-up", "deny": "Deny", "require_factor": "Require a second factor",
	"require_verified_email": "Require a verified e-mail address", "action": "Action", "add_claims": "Add claims", "continue": "Continue",

	// Mails.
	"verify_email": "Confirm an address", "reset_password": "Reset the password", "sign_up_again": "Sign-up with a known address",
	"change_email": "Confirm a new address", "email_changing": "Address about to change", "address_wanted": "Address entered for another account",
	"password_changed": "Password changed", "password_breached": "Password in a breach", "new_sign_in": "New sign-in",
	"factor_added": "Second factor added", "factor_removed": "Second factor removed",
	"identity_added": "External account linked", "identity_removed": "External account unlinked",
	"invitation": "Invitation to an organisation", "report": "Report", "announcement": "Announcement",

	// Colours.
	"light": "Light", "dark": "Dark", "text_on_accent": "Text on the accent", "accent_on_card": "Accent on the card",
	"accent_on_background": "Accent on the background", "focus_ring_on_card": "Focus on the card", "focus_ring_on_background": "Focus on the background",
	"text_on_background": "Text on the background", "soft_text_on_background": "Soft text on the background",
}

// displayName returns the name of a value for people. A value without one is shown as it is: those that a
// tenant chose, and those that standards name, such as algorithms.
func displayName(value any) string {
	text := fmt.Sprint(value)
	if name, ok := names[text]; ok {
		return name
	}
	if name, ok := languageNames[text]; ok {
		return name
	}
	for _, all := range [][]choice{applicationTypes, connectionKinds} {
		for _, c := range all {
			if c.Value == text {
				return c.Name
			}
		}
	}
	return reportKindOf(text).Name // that of another value is the value
}
