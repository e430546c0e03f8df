// Package serviceprovider signs people in at a SAML 2.0 identity provider: the Web Browser SSO
// profile (SAML Profiles §4.1) and Single Logout (§4.4) of a service provider. It is the protocol
// only: it has no database, no HTTP handlers, and no users.
//
// A sign-in is two calls with the browser between them:
//
//	Begin   the [Message] with which the browser is sent to the identity provider, and a
//	        [Pending] that the caller keeps, for one browser, for one use
//	Finish  the [Identity] of the user, from the Pending and the form that the browser posts
//
// Finish accepts a response only if all of these hold:
//
//	size, XML       at most 256 KiB and limited in depth and elements; no document type, no
//	                comments, no processing instructions, no attribute or ID twice
//	structure       one assertion in the document, plain or encrypted, a child of the response;
//	                signatures are children of these two only
//	RelayState,     those of the Pending
//	InResponseTo
//	Destination,    the address of the assertion consumer service
//	Recipient
//	Issuer          the identity provider, in the response and in the assertion
//	signature       of the assertion, or of the response with an unencrypted one, by a
//	                certificate of the metadata that has not expired, with RSA or ECDSA and SHA-2;
//	                one reference, to exactly this element
//	Audience        this service provider
//	times           NotBefore and NotOnOrAfter, with [Skew]
//
// # Signature wrapping
//
// A signature covers one element, and attacks place other elements where a program looks for the
// data. Therefore all data of an identity is read from the bytes whose digest was compared with
// that of the signature, parsed again, and from nothing else. The limits of the structure are a
// second barrier.
//
// # Replay
//
// The caller must accept an assertion once: it records [Identity.AssertionID] with the connection
// until [Identity.NotOnOrAfter], and refuses one that is recorded.
//
// Errors are [*Error], except those of [ParseMetadata].
package serviceprovider

import (
	"slices"
	"time"

	"stonetown/internal/samlprotocol"
)

const (
	// Skew is the tolerance for the clock of an identity provider, in both directions.
	Skew = samlprotocol.Skew
	// MaxDocument is the maximum size of a message or of metadata, in bytes of XML.
	MaxDocument = samlprotocol.MaxDocument
)

// The terms that identity providers share, see [samlprotocol].
type (
	Key     = samlprotocol.Key
	NameID  = samlprotocol.NameID
	Service = samlprotocol.Service
	Message = samlprotocol.Message
	Error   = samlprotocol.Error
	Class   = samlprotocol.Class
)

// The bindings of messages that are supported.
const (
	Redirect = samlprotocol.Redirect
	Post     = samlprotocol.Post
)

// The classes of errors.
const (
	Denied              = samlprotocol.Denied
	InteractionRequired = samlprotocol.InteractionRequired
	Stale               = samlprotocol.Stale
	Invalid             = samlprotocol.Invalid
	Misconfigured       = samlprotocol.Misconfigured
	Unavailable         = samlprotocol.Unavailable
)

// Provider is one connection: this service provider, and an identity provider.
type Provider struct {
	// EntityID is the name of the service provider: the URL of its metadata.
	EntityID string
	// ACS is the URL of the assertion consumer service, to which responses are posted.
	ACS string
	// SLO is the URL for single logout; empty: there is none.
	SLO string
	// Keys are the keys of the service provider. The first signs; all are published and decrypt,
	// so that a key is published before it signs, and decrypts after. Without keys, messages
	// are not signed, and assertions cannot be encrypted.
	Keys []Key

	IdentityProvider IdentityProvider
	// NameIDFormat is the requested format of name identifiers; empty: the identity provider
	// decides.
	NameIDFormat string
	// AllowIDPInitiated accepts responses that no request preceded, see [Provider.Finish].
	AllowIDPInitiated bool
}

// Identity is a user at an identity provider.
type Identity struct {
	// Subject names the user, permanently unless its format is transient (SAML Core §8.3.8):
	// then it is a name for one session, and no key for links.
	Subject NameID
	// Attributes are the values of the attributes, by Name, as []string.
	Attributes map[string]any

	// SessionIndex names the session in requests of single logout; empty: there is none.
	SessionIndex string
	// SessionEnds is the end of the session at the identity provider; zero: not stated.
	SessionEnds  time.Time
	AuthnContext string    // URI of the class; empty: not stated
	AuthnInstant time.Time // UTC

	AssertionID string
	// NotOnOrAfter is the time from which the assertion is not accepted, with [Skew].
	NotOnOrAfter time.Time
	// Unsolicited reports that no request preceded: a sign-in begun by the identity provider.
	Unsolicited bool
}

// check refuses a configuration without the names that messages are compared with.
func (p *Provider) check() error {
	if slices.Contains([]string{p.EntityID, p.ACS, p.IdentityProvider.EntityID}, "") {
		return samlprotocol.Failed(Misconfigured, "an entity id or the URL of the assertion consumer service is missing")
	}
	return nil
}
