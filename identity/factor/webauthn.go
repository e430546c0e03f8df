package factor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"

	"stonetown/internal/sqldb"
)

// ErrCredentialExists is returned for a credential that a user has already registered.
var ErrCredentialExists = errors.New("the credential is already registered")

// Party is the WebAuthn relying party: a tenant with its origin. Credentials are scoped to it
// (WebAuthn L3 §4).
type Party struct {
	Name   string
	Origin string
}

// Person is the user of a credential.
type Person struct {
	TenantID, UserID  string
	Name, DisplayName string
}

// Ceremony is the state between the begin and the end of a ceremony.
type Ceremony = webauthn.SessionData

// algorithms are the accepted algorithms of credentials, preferred first.
var algorithms = []protocol.CredentialParameter{
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgES256},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgEdDSA},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgRS256},
}

func (p Party) webauthn() (*webauthn.WebAuthn, error) {
	origin, err := url.Parse(p.Origin)
	if err != nil {
		return nil, fmt.Errorf("webauthn: %w", err)
	}
	w, err := webauthn.New(&webauthn.Config{
		RPID: origin.Hostname(), RPDisplayName: p.Name, RPOrigins: []string{p.Origin},
		AttestationPreference: protocol.PreferNoAttestation,
	})
	if err != nil {
		return nil, fmt.Errorf("webauthn: %w", err)
	}
	return w, nil
}

// holder implements [webauthn.User].
type holder struct {
	Person
	handle      []byte
	credentials []webauthn.Credential
}

func (h holder) WebAuthnID() []byte                         { return h.handle }
func (h holder) WebAuthnName() string                       { return h.Name }
func (h holder) WebAuthnDisplayName() string                { return h.DisplayName }
func (h holder) WebAuthnCredentials() []webauthn.Credential { return h.credentials }

// handleKey returns the key of the user handles of a tenant: 32 bytes for each user, without
// personal data (WebAuthn L3 §14.6.1).
func (s *Store) handleKey(tenantID string) ([]byte, error) {
	return s.seal.DeriveFor(tenantID, "webauthn user handles")
}

func (s *Store) holder(p Person, factors []Factor) (holder, error) {
	key, err := s.handleKey(p.TenantID)
	if err != nil {
		return holder{}, err
	}
	h := holder{Person: p, handle: keyed(key, p.TenantID, p.UserID)}
	for _, f := range factors {
		if f.Kind != WebAuthn {
			continue
		}
		c, err := s.credential(f)
		if err != nil {
			return holder{}, err
		}
		h.credentials = append(h.credentials, c)
	}
	return h, nil
}

func (s *Store) credential(f Factor) (c webauthn.Credential, err error) {
	text, err := s.open(f)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return c, fmt.Errorf("credential %s: %w", f.ID, err)
	}
	return c, nil
}

// BeginCredential begins the registration of a credential of a user with the given factors. A
// passkey requires user verification, so that it counts as two factors.
func (s *Store) BeginCredential(rp Party, p Person, factors []Factor, passkey bool) (options protocol.PublicKeyCredentialCreationOptions, c *Ceremony, err error) {
	w, err := rp.webauthn()
	if err != nil {
		return options, nil, err
	}
	h, err := s.holder(p, factors)
	if err != nil {
		return options, nil, err
	}
	verification := protocol.VerificationPreferred
	if passkey {
		verification = protocol.VerificationRequired
	}
	creation, c, err := w.BeginRegistration(h,
		webauthn.WithCredentialParameters(algorithms),
		webauthn.WithExclusions(webauthn.Credentials(h.credentials).CredentialDescriptors()),
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementPreferred, UserVerification: verification,
		}))
	if err != nil {
		return options, nil, fmt.Errorf("begin registration: %w", err)
	}
	return creation.Response, c, nil
}

// AddCredential adds the credential of a registration. It fails with
// [ErrWrong], [ErrCredentialExists] or [ErrLimit].
func (s *Store) AddCredential(ctx context.Context, tx *sqldb.Tx, rp Party, p Person, c Ceremony, label string, response []byte) (Factor, error) {
	w, err := rp.webauthn()
	if err != nil {
		return Factor{}, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return Factor{}, wrong(err)
	}
	h, err := s.holder(p, nil)
	if err != nil {
		return Factor{}, err
	}
	made, err := w.CreateCredential(h, c, parsed)
	if err != nil {
		return Factor{}, wrong(err)
	}
	text, err := json.Marshal(made)
	if err != nil {
		return Factor{}, fmt.Errorf("keep credential: %w", err)
	}
	credentialID := base64.RawURLEncoding.EncodeToString(made.ID)
	if _, err := ownerOf(ctx, tx, p.TenantID, credentialID); !errors.Is(err, ErrNotFound) {
		if err == nil {
			err = ErrCredentialExists
		}
		return Factor{}, err
	}
	f, err := s.add(ctx, tx, Factor{TenantID: p.TenantID, UserID: p.UserID, Kind: WebAuthn, Label: label}, text)
	if err != nil {
		return Factor{}, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO credentials (tenant_id, credential_id, user_id, factor_id) VALUES ($1, $2, $3, $4)`,
		p.TenantID, credentialID, p.UserID, f.ID)
	return f, err
}

// BeginAssertion begins an authentication with a credential of a user or, if p has no user id,
// with any discoverable credential. verify requires user verification.
func (s *Store) BeginAssertion(rp Party, p Person, factors []Factor, verify bool) (options protocol.PublicKeyCredentialRequestOptions, c *Ceremony, err error) {
	w, err := rp.webauthn()
	if err != nil {
		return options, nil, err
	}
	verification := webauthn.WithUserVerification(protocol.VerificationDiscouraged)
	if verify {
		verification = webauthn.WithUserVerification(protocol.VerificationRequired)
	}
	var assertion *protocol.CredentialAssertion
	if p.UserID == "" {
		assertion, c, err = w.BeginDiscoverableLogin(verification)
	} else {
		h, holderErr := s.holder(p, factors)
		if holderErr != nil {
			return options, nil, holderErr
		}
		assertion, c, err = w.BeginLogin(h, verification)
	}
	if err != nil {
		return options, nil, fmt.Errorf("begin assertion: %w", err)
	}
	return assertion.Response, c, nil
}

// shape contains the properties by which credentials of different authenticators differ.
type shape struct {
	idLen      int // bytes
	transports []protocol.AuthenticatorTransport
}

// shapes are the shapes of common authenticators. More common ones are listed more often.
var shapes = func() []shape {
	phone := []protocol.AuthenticatorTransport{protocol.Hybrid, protocol.Internal} // in the order of browsers (WebAuthn L3 §5.2.1)
	key := []protocol.AuthenticatorTransport{protocol.NFC, protocol.USB}
	apple, google := shape{20, phone}, shape{16, phone} // iCloud Keychain; Google Password Manager and other managers
	windows := shape{32, []protocol.AuthenticatorTransport{protocol.Internal}}
	return []shape{apple, apple, apple, google, google, windows, windows, {48, key}, {64, key}}
}()

// BeginDecoy responds for an account that does not exist or has no credential as
// [Store.BeginAssertion] does for others, so that the response does not reveal which accounts
// exist. An account always gets the same decoy credential, of one of the [shapes].
func (s *Store) BeginDecoy(rp Party, tenantID, account string) (options protocol.PublicKeyCredentialRequestOptions, c *Ceremony, err error) {
	w, err := rp.webauthn()
	if err != nil {
		return options, nil, err
	}
	key, err := s.handleKey(tenantID)
	if err != nil {
		return options, nil, err
	}
	made := keyed(key, tenantID, "decoy credential: "+account)
	id := append(made, keyed(key, tenantID, "decoy credential, continued: "+account)...)
	drawn := keyed(key, tenantID, "decoy authenticator: "+account)
	like := shapes[int(drawn[0])%len(shapes)]
	h := holder{handle: keyed(key, tenantID, "decoy: "+account), credentials: []webauthn.Credential{{ID: id[:like.idLen], Transport: like.transports}}}
	assertion, c, err := w.BeginLogin(h, webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return options, nil, fmt.Errorf("begin assertion: %w", err)
	}
	return assertion.Response, c, nil
}

// Owner returns the factor of the credential in a response. userID is the user of the ceremony, or
// empty. Owner fails with [ErrWrong].
func (s *Store) Owner(ctx context.Context, tenantID, userID string, response []byte) (f Factor, err error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return Factor{}, wrong(err)
	}
	owner, err := ownerOf(ctx, s.db, tenantID, base64.RawURLEncoding.EncodeToString(parsed.RawID))
	if errors.Is(err, ErrNotFound) || err == nil && userID != "" && owner.UserID != userID {
		return Factor{}, ErrWrong
	}
	if err != nil {
		return Factor{}, err
	}
	return s.Find(ctx, tenantID, owner.UserID, owner.ID)
}

// VerifyAssertion verifies a response with the credential of a factor, which [Store.Owner] has
// found. It reports whether the authenticator verified the user, which makes it two factors.
// VerifyAssertion fails with [ErrWrong].
func (s *Store) VerifyAssertion(ctx context.Context, tx *sqldb.Tx, rp Party, f Factor, c Ceremony, response []byte) (verified bool, err error) {
	w, err := rp.webauthn()
	if err != nil {
		return false, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return false, wrong(err)
	}
	all, err := selectFactors(ctx, tx, f.TenantID, f.UserID)
	if err != nil {
		return false, err
	}
	h, err := s.holder(Person{TenantID: f.TenantID, UserID: f.UserID}, all)
	if err != nil {
		return false, err
	}
	var used *webauthn.Credential
	if c.UserID == nil {
		_, used, err = w.ValidatePasskeyLogin(func(_, _ []byte) (webauthn.User, error) { return h, nil }, c, parsed)
	} else {
		used, err = w.ValidateLogin(h, c, parsed)
	}
	if err != nil || used.Authenticator.CloneWarning {
		return false, wrong(err)
	}
	text, err := json.Marshal(used)
	if err != nil {
		return false, fmt.Errorf("keep credential: %w", err)
	}
	_, err = tx.Exec(ctx, `UPDATE factors SET secret = $4, last_used_at = $5 WHERE tenant_id = $1 AND user_id = $2 AND id = $3`,
		f.TenantID, f.UserID, f.ID, s.seal.Seal(f.TenantID, f.ID, text), s.now().UnixMicro())
	return parsed.Response.AuthenticatorData.Flags.HasUserVerified(), err
}

// wrong hides the reason from clients.
func wrong(error) error { return ErrWrong }

// HasPasskey reports, within a transaction, whether a user has a credential that can sign in on
// its own: one that was registered with user verification.
func (s *Store) HasPasskey(ctx context.Context, tx *sqldb.Tx, tenantID, userID string) (bool, error) {
	factors, err := selectFactors(ctx, tx, tenantID, userID)
	if err != nil {
		return false, err
	}
	h, err := s.holder(Person{TenantID: tenantID, UserID: userID}, factors)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(h.credentials, func(c webauthn.Credential) bool { return c.Flags.UserVerified }), nil
}

// ownerOf returns the factor of a credential. It fails with [ErrNotFound].
func ownerOf(ctx context.Context, from reader, tenantID, credentialID string) (f Factor, err error) {
	err = from.QueryRow(ctx, `SELECT user_id, factor_id FROM credentials WHERE tenant_id = $1 AND credential_id = $2`, tenantID, credentialID).
		Scan(&f.UserID, &f.ID)
	if errors.Is(err, sqldb.ErrNoRows) {
		err = ErrNotFound
	}
	return f, err
}
