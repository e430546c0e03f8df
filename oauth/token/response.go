package token

import (
	"time"

	"stonetown/oauth/detail"
)

// Response is a successful response of the token endpoint (RFC 6749 §5.1).
type Response struct {
	AccessToken string
	TokenType   string        // [protocol.TokenTypeBearer] or [protocol.TokenTypeDPoP]
	ExpiresIn   time.Duration // whole seconds
	Scope       string        // the granted scopes, separated by spaces

	Details []detail.Detail // RFC 9396 §7; nil: none were granted

	IssuedTokenType string // of token exchange

	// In responses to grants of users.
	RefreshToken string
	IDToken      string // with the scope openid
}
