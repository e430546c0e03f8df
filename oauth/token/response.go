package token

import (
	"time"
)

// Response is a successful answer of the token endpoint (RFC 6749 §5.1).
type Response struct {
	AccessToken string
	TokenType   string        // [TokenTypeBearer] or [TokenTypeDPoP]
	ExpiresIn   time.Duration // whole seconds
	Scope       string        // what was granted, separated by spaces

	IssuedTokenType string // of token exchange

	// Of users' grants.
	RefreshToken string
	IDToken      string // with the scope openid
}
