package grants

import (
	"errors"
	"fmt"
	"slices"

	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

const (
	// maxActors bounds the chain of actors in one token.
	maxActors = 4
	// maxTargets bounds the audiences of one request.
	maxTargets = 10
)

// denial is a refusal of a token exchange, with the reason that its event states.
type denial struct {
	reason  string
	refusal *protocol.Error
}

func (d *denial) Error() string { return d.refusal.Error() }

func (d *denial) Unwrap() error { return d.refusal }

// stage is the point at which a rule is checked, named by what is known then.
type stage int

const (
	stageForm    stage = iota // the parameters
	stageTokens               // the subject token, the actor token and the application
	stageKey                  // the key that was proved
	stageRequest              // the requested scopes and audiences
	stagePolicy               // the answers of the relations
	stageResult               // the entitlement and the claims of the new token
)

// exchangeRule is a condition of a token exchange.
type exchangeRule struct {
	stage       stage
	reason      string // that the event of a refusal states
	code        protocol.Code
	description string
	violated    func(*exchange) bool
}

var exchangeTypes = []string{protocol.TypeAccessToken, protocol.TypeRefreshToken, protocol.TypeIDToken, protocol.TypeJWT}

// exchangeRules are the conditions of token exchange, in the order in which refusals are
// reported. Refusals that are not in the table are those of the runner (client, dpop_proof,
// used_before) and of tokens that are not valid (subject_token_invalid, actor_token_invalid).
var exchangeRules = []exchangeRule{
	{stageForm, "malformed", protocol.InvalidRequest, "subject_token and subject_token_type are required", func(e *exchange) bool {
		return e.params.SubjectToken == "" || e.params.SubjectTokenType == ""
	}},
	{stageForm, "malformed", protocol.InvalidRequest, "actor_token and actor_token_type must be given together", func(e *exchange) bool {
		return (e.params.ActorToken == "") != (e.params.ActorTokenType == "")
	}},
	{stageForm, "malformed", protocol.InvalidRequest, "subject_token_type is not supported", func(e *exchange) bool {
		return !slices.Contains(exchangeTypes, e.params.SubjectTokenType)
	}},
	{stageForm, "malformed", protocol.InvalidRequest, "actor_token_type is not supported", func(e *exchange) bool {
		return e.params.ActorToken != "" && !slices.Contains(exchangeTypes, e.params.ActorTokenType)
	}},
	{stageForm, "malformed", protocol.InvalidRequest, "requested_token_type must be the type of access tokens", func(e *exchange) bool {
		return e.params.RequestedTokenType != "" && e.params.RequestedTokenType != protocol.TypeAccessToken
	}},

	{stageTokens, "subject_token_not_own", protocol.InvalidGrant, "the application may exchange only tokens that were issued to it or name it as audience", func(e *exchange) bool {
		return e.app.TokenExchange.SubjectTokens == client.OwnSubjectTokens && !e.isOwn()
	}},

	// The new token is bound to the key that was proved, so no exchange leads from a bound token
	// to one that is not.
	{stageKey, "subject_token_key", protocol.InvalidRequest, "subject_token is bound to a key or a certificate, and the request does not prove it", func(e *exchange) bool {
		return e.subject.key != "" && e.subject.key != e.key
	}},
	{stageKey, "actor_token_key", protocol.InvalidRequest, "actor_token is bound to a key or a certificate, and the request does not prove it", func(e *exchange) bool {
		return e.actor != nil && e.actor.key != "" && e.actor.key != e.key
	}},

	{stageRequest, "scope_malformed", protocol.InvalidScope, "", func(e *exchange) bool { return e.scopesErr != nil }},
	{stageRequest, "audience_too_many", protocol.InvalidRequest, fmt.Sprintf("more than %d audiences", maxTargets), func(e *exchange) bool {
		return len(e.audience) > maxTargets
	}},
	{stageRequest, "audience_malformed", protocol.InvalidTarget, "an audience is not an absolute URI without fragment", func(e *exchange) bool {
		return slices.ContainsFunc(e.audience, func(audience string) bool { return !client.ValidAudience(audience) })
	}},

	{stagePolicy, "not_enabled", protocol.InvalidGrant, "the application is not allowed to exchange tokens", func(e *exchange) bool {
		return !e.allowed.exchange
	}},
	{stagePolicy, "audience_not_permitted", protocol.InvalidTarget, "the application is not allowed tokens for this audience", func(e *exchange) bool {
		return slices.Contains(e.allowed.targets, false)
	}},
	{stagePolicy, "audience_denied", protocol.InvalidTarget, "the subject is not allowed to call this audience", func(e *exchange) bool {
		return slices.Contains(e.allowed.callers, false)
	}},
	{stagePolicy, "act_as_not_enabled", protocol.InvalidGrant, "the application does not allow delegation for subjects of this type", func(e *exchange) bool {
		return e.actor != nil && !e.allowed.delegates
	}},
	{stagePolicy, "act_as_denied", protocol.InvalidGrant, "the actor is not allowed to act as the subject", func(e *exchange) bool {
		return e.actor != nil && !e.allowed.acts
	}},

	{stageResult, "scope", protocol.InvalidScope, "scope exceeds what the subject has or what the application is allowed", func(e *exchange) bool {
		return e.exceeds
	}},
	{stageResult, "act_chain", protocol.InvalidGrant, fmt.Sprintf("the chain of actors would be longer than %d", maxActors), func(e *exchange) bool {
		return e.actor != nil && e.granted.Act.Depth() > maxActors
	}},
	{stageResult, "too_many_exchanges", protocol.InvalidGrant, fmt.Sprintf("the token would have more than %d ancestors", token.MaxAncestors), func(e *exchange) bool {
		return len(e.granted.Ancestors) > token.MaxAncestors
	}},
}

// check applies the rules of a stage. It fails with [*denial].
func (e *exchange) check(at stage) error {
	for _, rule := range exchangeRules {
		if rule.stage != at || !rule.violated(e) {
			continue
		}
		refusal := protocol.NewError(rule.code, rule.description)
		if malformed := new(protocol.Error); rule.description == "" && errors.As(e.scopesErr, &malformed) {
			refusal = malformed // which states the character or the length
		}
		return &denial{rule.reason, refusal}
	}
	return nil
}

// isOwn reports whether the subject token was issued to the application that exchanges it, or
// names it as an audience.
func (e *exchange) isOwn() bool {
	return e.subject.clientID == e.app.ClientID || slices.Contains(e.subject.audience, e.app.ClientID) ||
		e.app.Audience != "" && slices.Contains(e.subject.audience, e.app.Audience)
}
