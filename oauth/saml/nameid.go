package saml

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// nameID returns the name of a user at an application, in the format of the application; empty: the
// user has none, because the e-mail address is not verified.
//
// A persistent name is derived from the tenant, the application and the user, so that applications
// cannot compare their users (SAML Core §8.3.7), and nothing is stored. A transient one is derived
// from the session, too: it is stable while the session lives, for single logout.
func (s *Service) nameID(tenant protocol.Tenant, app client.Application, user Person, sessionID string) (string, error) {
	switch app.ServiceProvider.NameIDFormat {
	case "emailAddress":
		if !user.EmailVerified {
			return "", nil
		}
		return user.Email, nil
	case "transient":
		return s.derive(tenant.ID, "transient", app.ClientID, user.ID, sessionID)
	}
	return s.derive(tenant.ID, "persistent", app.ClientID, user.ID)
}

// derive returns an opaque name of 256 bits at a tenant, which reveals nothing of its parts. The
// parts are ids, and have no line break.
func (s *Service) derive(tenantID string, parts ...string) (string, error) {
	key, err := s.Seal.DeriveFor(tenantID, "saml names")
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.Join(parts, "\n")))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}
