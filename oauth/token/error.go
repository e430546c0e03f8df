package token

// Reason is the reason for which an access token is refused.
type Reason string

// The reasons of refusals by [Service.Verify] and [Service.VerifyBound].
const (
	Malformed      Reason = "malformed"       // not a signed JWT, or a required claim is missing
	WrongType      Reason = "wrong_type"      // a JWT for another purpose
	BadSignature   Reason = "bad_signature"   // not signed by this tenant, or with another algorithm than its key's
	WrongIssuer    Reason = "wrong_issuer"    // issued under another base URL
	WrongTenant    Reason = "wrong_tenant"    // issued for another tenant
	WrongAudience  Reason = "wrong_audience"  // for another API
	Expired        Reason = "expired"         // exp has passed
	NotYetValid    Reason = "not_yet_valid"   // nbf has not come
	Revoked        Reason = "revoked"         // it was revoked, or something that it depends on has ended
	UnsupportedAlg Reason = "unsupported_alg" // signed with an algorithm that is not supported
	Bound          Reason = "bound"           // bound to a key, but presented without a proof
	// WrongCertificate: bound to a certificate, and presented without it.
	WrongCertificate Reason = "wrong_certificate"
	NotBound         Reason = "not_bound" // presented with a proof, but not bound to a key
	WrongKey         Reason = "wrong_key" // bound to another key than that of the proof
)

// Error is the refusal of an access token. It never quotes the token.
type Error struct{ Reason Reason }

func (e *Error) Error() string { return "access token refused: " + string(e.Reason) }
