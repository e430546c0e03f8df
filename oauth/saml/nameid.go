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
func (s *Service) nameID(tenant protocol.Tenant, app client.Application, user Person, sessionID string) string {
	switch app.ServiceProvider.NameIDFormat {
	case "emailAddress":
		if !user.EmailVerified {
			return ""
		}
		return user.Email
	case "transient":
		return s.derive("transient", tenant.ID, app.ClientID, user.ID, sessionID)
	}
	return s.derive("persistent", tenant.ID, app.ClientID, user.ID)
}

// derive returns an opaque name of 256 bits, which reveals nothing of its parts. The parts are ids,
// and have no line break.
func (s *Service) derive(parts ...string) string {
	mac := hmac.New(sha256.New, s.NameKey)
	mac.Write([]byte(strings.Join(parts, "\n")))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
