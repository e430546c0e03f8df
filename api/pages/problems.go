package pages

import (
	"strings"
)

// problems are the messages of problems by code.
var problems = map[string]message{
	"invalid_credentials":     "The e-mail address or the password is wrong.",
	"user_disabled":           "This account is disabled.",
	"code_invalid":            "This code is wrong.",
	"credential_invalid":      "This passkey was not accepted.",
	"credential_exists":       "This passkey is already registered.",
	"ceremony_invalid":        "This link or form has expired, or was used before.",
	"email_invalid":           "This is not an e-mail address.",
	"proof_incorrect":         "This password is wrong.",
	"password_incorrect":      "The current password is wrong.",
	"factor_kind_unsupported": "This kind of second factor cannot be used here.",
	"factor_limit_reached":    "You have the maximum number of second factors. Remove one first.",
	"last_sign_in_method":     "You cannot remove your last way to sign in. Set a password or add a passkey first.",
	"flow_not_found":          "This sign-in has expired. Please go back to the application and start again.",
	"flow_expired":            "This sign-in has expired. Please go back to the application and start again.",
	"permission_denied":       "This is not possible here.",
	"opened":                  "This session was opened from the control plane and is for the console only. Sign out to use an account here.",
	"threat":                  "This is not possible from your network, or with your e-mail address. If you need access, please ask your administrator.",
	"federation_expired":      "This sign-in has expired, or was completed before. Please start again.",
	"connection_disabled":     "You cannot sign in this way any more. Please choose another one.",
	"connection_not_found":    "You cannot sign in this way any more. Please choose another one.",
	"no_account":              "There is no account for you here. Please ask your administrator.",
	"user_exists":             "There is an account with your e-mail address already. Please sign in to it another way.",
	"identity_conflict":       "This account cannot be linked: it is linked with another user, or you have linked another account of the same provider.",
	"no_organization":         "We do not know where your organisation signs in. Please sign in another way.",
	"NOT_FOUND":               "This invitation has expired, was revoked, or was accepted before.",
	"FORBIDDEN":               "This invitation was sent to another address than the verified one of your account.",
	"CONFLICT":                "You are a member of this organisation already.",
}

// federationProblems are the messages of sign-ins that failed at an identity provider, by reason.
var federationProblems = map[any]message{
	"access_denied":  "The sign-in was cancelled, or your provider does not let you in.",
	"stale":          "This sign-in took too long. Please start again.",
	"misconfigured":  "The connection to your provider is not set up correctly. Please tell your administrator.",
	"email_missing":  "Your provider has not sent an e-mail address, so no account can be created.",
	"provider_error": "Your provider does not answer as it should. Please try again later.",
	"unreachable":    "Your provider does not answer as it should. Please try again later.",
}

// say returns the message of a problem on a page.
func (p *problem) say(in speech) string {
	if p.deniedByFlow() {
		if message, ok := p.details["flow_message"].(string); ok {
			return message // of the tenant, and not translated
		}
		return in.say("You cannot sign in at present. Please ask your administrator.")
	}
	if text, ok := problems[p.code]; ok {
		return in.say(text)
	}
	switch p.code {
	case "rate_limited", "RATE_LIMITED":
		return in.say("Too many attempts. Please wait {count} seconds and try again.", "count", max(1, p.after))
	case "federation_failed":
		if text, ok := federationProblems[p.details["reason"]]; ok {
			return in.say(text)
		}
		return in.say("Your provider has sent an answer that is not valid. Please start again.")
	case "password_policy_violation":
		return p.sayPolicy(in)
	case "validation_failed":
		return in.say("Please check what you entered:") + " " + p.faults()
	}
	return in.say("Something went wrong. Please try again later.")
}

// deniedByFlow reports whether the sign-in flow of the tenant has refused a sign-up or a sign-in.
func (p *problem) deniedByFlow() bool { return p.details["reason"] == "sign_in_flow" }

// sayPolicy returns a sentence for each rule that a password violates.
func (p *problem) sayPolicy(in speech) string {
	var parts []string
	policy, _ := p.details["policy"].(object)
	violations, _ := p.details["violations"].([]any)
	for _, v := range violations {
		rule, _ := v.(object)["rule"].(string)
		switch rule {
		case "min_length":
			parts = append(parts, in.say("The password needs at least {count} characters.", "count", policy["min_length"]))
		case "max_length":
			parts = append(parts, in.say("The password can have at most {count} characters.", "count", policy["max_length"]))
		case "common":
			parts = append(parts, in.say("The password is one of the most common passwords."))
		case "contains_identifier":
			parts = append(parts, in.say("The password contains your name or e-mail address."))
		case "breached":
			parts = append(parts, in.say("The password appears in a list of stolen passwords."))
		}
	}
	return strings.Join(parts, " ")
}

// faults returns the errors of fields, in the words of the operation.
func (p *problem) faults() string {
	var parts []string
	faults, _ := p.details["field_errors"].([]any)
	for _, f := range faults {
		message, _ := f.(object)["message"].(string)
		parts = append(parts, strings.ReplaceAll(message, "_", " "))
	}
	return strings.Join(parts, "; ") + "."
}
