// Package relyingparty signs people in at an identity provider: OpenID Connect (Core 1.0) with
// the authorization code flow, and OAuth 2.0 (RFC 6749) with an API that identifies the user. It is
// the protocol only: it has no database, no HTTP handlers, and no users.
//
// A sign-in is two calls with the browser between them:
//
//	Begin   the URL to which the browser is sent, and a [Pending] that the caller keeps
//	        secret, for one browser, for one use
//	Finish  the [Identity] of the user, from the Pending and the parameters with which the
//	        provider sends the browser back
//
// An answer is accepted only if all of these hold:
//
//	state            that of the Pending, so the answer is for this browser
//	iss              that of the provider, where it sends one (RFC 9207)
//	code_verifier    PKCE (RFC 7636), always with S256: a stolen code is useless
//	signature        by a key that the provider publishes, with an asymmetric algorithm that
//	                 its metadata lists and that fits the key
//	iss, aud, azp    the provider and this client
//	tid              the directory in iss, at a provider with many, and one that
//	                 [Provider.Directory] allows
//	nonce            that of the Pending, so the token was issued for this sign-in
//	exp, iat, nbf    now, with [Skew]
//	at_hash, c_hash  those of the access token and the code, if present
//	sub of userinfo  that of the ID token (Core §5.3.2)
//
// RFC 9207 is not common yet. Without it, mix-up attacks are prevented by a redirect URI for
// each provider (RFC 9700 §4.4.2.2), which the caller must choose. [Finish] refuses a Pending of
// another provider.
//
// The differences between the kinds of providers are data, see [Preset].
//
// # Claims
//
// The claims of an identity are those of the ID token, and of the userinfo endpoint for names
// that the ID token does not have: the ID token is signed, so its claims take precedence. An
// address and its verification are one claim in two parts: email and email_verified are from the
// same source, and so are phone_number and phone_number_verified. The members of a protocol, such
// as iss and sub, are from the ID token only.
//
// # Requests
//
// All requests of the server are sent by package outbound, follow no redirects, and read at most
// 256 KiB. Metadata and keys are cached: they are fetched again after 15 minutes, and a key set
// also if a token has an unknown key or a wrong signature, but then at most once a minute,
// because any client can send such a token. While they cannot be fetched, the cached ones are
// valid for 24 hours.
//
// Finish sends up to four requests, one after the other. Each takes at most 15 seconds, so the caller
// should bound the whole by its context.
//
// Errors are [*Error], except those of a context that has ended.
package relyingparty

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"stonetown/internal/jwks"
	"stonetown/internal/outbound"
)

// Skew is the tolerance for the clock of a provider, in both directions.
const Skew = time.Minute

const (
	maxDocument = 256 << 10 // bytes of each answer
	maxToken    = 64 << 10  // bytes of a signed token
	maxParam    = 8 << 10   // bytes of a parameter of a callback
	maxSubject  = 1024      // bytes, as package external stores
)

// Config configures a service.
type Config struct {
	Client *outbound.Client
	// Clock is the current time. The default is [time.Now].
	Clock func() time.Time
	// Log receives failed fetches of cached documents. The default discards them.
	Log *slog.Logger
	// Presets are the providers of the kinds. The default is [Presets]; tests replace the
	// addresses in them.
	Presets map[Kind]Preset
	// Observe receives the step, the duration and the error of each request to a provider. The
	// default ignores them.
	Observe func(step Step, took time.Duration, err error)
}

// Service signs in at providers. It is safe for concurrent use.
type Service struct {
	client   *outbound.Client
	clock    func() time.Time
	presets  map[Kind]Preset
	observe  func(step Step, took time.Duration, err error)
	metadata *documents[location, Metadata]
	keys     *documents[string, jwks.Set]
}

// New returns a service.
func New(config Config) (*Service, error) {
	if config.Client == nil {
		return nil, errors.New("relyingparty: a client is required")
	}
	s := &Service{client: config.Client, clock: config.Clock, presets: config.Presets, observe: config.Observe}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.presets == nil {
		s.presets = Presets()
	}
	if s.observe == nil {
		s.observe = func(Step, time.Duration, error) {}
	}
	log := cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	s.metadata = newDocuments(s.fetchMetadata, s.clock, log)
	s.keys = newDocuments(s.fetchKeys, s.clock, log)
	return s, nil
}

// do sends a request of a step to a provider.
func (s *Service) do(req *http.Request, step Step) (outbound.Answer, error) {
	began := time.Now()
	a, err := s.client.Do(req, maxDocument)
	s.observe(step, time.Since(began), err)
	return a, err
}

// Provider is a provider as a tenant has configured it.
type Provider struct {
	Kind Kind
	// Issuer is the issuer of a provider of the kind [OIDC], whose metadata is discovered.
	Issuer string
	// Directory is what Microsoft calls a tenant: common (users of every directory),
	// organizations (of every one except that of personal accounts), consumers (personal
	// accounts), or the id or a domain of one directory, in lower case. An id stays with its
	// directory, and a domain can move to another one. Kinds without directories have none. See
	// [Preset.CheckDirectory].
	Directory string
	// Metadata is used instead of discovery, if it is set. Only the kind [OIDC] has it.
	Metadata *Metadata

	ClientID string
	// Secret is the client secret. Without it, and without AppleKey, the client is public.
	Secret string
	// AppleKey signs the client secret of the kind [Apple].
	AppleKey *AppleKey
	// Scopes are the requested scopes; empty: those of the preset.
	Scopes []string
	// AuthMethod is the method of client authentication (RFC 7591 §2): client_secret_basic,
	// client_secret_post or none. Empty: as the preset or the metadata states.
	AuthMethod string
}

// Identity is a user at a provider.
type Identity struct {
	// Issuer is the issuer of the ID token. It differs from that of the metadata for a
	// provider with many directories, see [Preset].
	Issuer string
	// Subject identifies the user at the provider permanently: the only key for links.
	Subject string
	// Email is the claim email; empty: there is none.
	Email string
	// EmailVerified reports whether the provider states that Email belongs to the user.
	EmailVerified bool
	// Claims are all claims. email and email_verified are those of the fields above.
	Claims map[string]any

	ACR      string
	AMR      []string
	AuthTime time.Time // of the authentication at the provider; zero: not stated
	// SessionID is sid, the session at the provider, which logout tokens name.
	SessionID string
	// IDToken is the token as it was received, for [Logout.IDToken]; empty for OAuth 2.0.
	IDToken string
}

// preset returns the preset of a provider's kind, for which its directory is valid.
func (s *Service) preset(p Provider) (Preset, error) {
	preset, ok := s.presets[p.Kind]
	if !ok {
		return Preset{}, failed(Misconfigured, Configuration, "the kind is not supported")
	}
	return preset, preset.CheckDirectory(p.Directory)
}
