package token

// Reason says in a word why an access token was refused.
type Reason string

// The reasons that [Service.Verify] and [Service.VerifyBound] answer with.
const (
	Malformed      Reason = "malformed"       // not a signed JWT, or a required claim is missing
	WrongType      Reason = "wrong_type"      // a JWT for another purpose
	BadSignature   Reason = "bad_signature"   // not signed by this tenant, or not as its key is used
	WrongIssuer    Reason = "wrong_issuer"    // issued under another base URL
	WrongTenant    Reason = "wrong_tenant"    // issued for another tenant
	WrongAudience  Reason = "wrong_audience"  // meant for another API
	Expired        Reason = "expired"         // its time is over
	NotYetValid    Reason = "not_yet_valid"   // its time has not come
	Revoked        Reason = "revoked"         // its session has ended
	UnsupportedAlg Reason = "unsupported_alg" // signed with an algorithm that is never used here
	Bound          Reason = "bound"           // bound to a key, and presented as if it were not
	NotBound       Reason = "not_bound"       // presented as bound to a key, and it is not
	WrongKey       Reason = "wrong_key"       // bound to another key than the proof's
)

// Error is the refusal of an access token. It never quotes the token.
type Error struct{ Reason Reason }

func (e *Error) Error() string { return "access token refused: " + string(e.Reason) }
