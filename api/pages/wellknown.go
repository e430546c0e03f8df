package pages

import (
	"fmt"
	"net/http"
	"time"

	"stonetown/api/web"
)

// wellKnown returns the pages at well-known paths (RFC 8615).
func (h *Handlers) wellKnown() map[string]page {
	pages := map[string]page{
		// For password managers (W3C: A Well-Known URL for Changing Passwords).
		"/.well-known/change-password": func(v *visit) error {
			v.w.Header().Set("Location", "/account/security")
			v.w.WriteHeader(http.StatusFound)
			return nil
		},
		// For passkey providers (W3C: Passkey Endpoints).
		"/.well-known/passkey-endpoints": func(v *visit) error {
			base := v.info.Tenant.BaseURL
			return web.WriteJSON(v.w, http.StatusOK, map[string]string{"enroll": base + "/account/passkey", "manage": base + "/account/security"})
		},
		// For browsers: the origins that can use passkeys of this host (WebAuthn Level 3 §5.11).
		"/.well-known/webauthn": func(v *visit) error {
			return web.WriteJSON(v.w, http.StatusOK, map[string][]string{"origins": {v.info.Tenant.BaseURL}})
		},
	}
	if h.SecurityContact != "" {
		pages["/.well-known/security.txt"] = func(v *visit) error {
			v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, err := fmt.Fprintf(v.w, "Contact: %s\nExpires: %s\nCanonical: %s\n", h.SecurityContact,
				time.Now().AddDate(0, 6, 0).UTC().Format(time.RFC3339), v.info.Tenant.BaseURL+"/.well-known/security.txt")
			return err
		}
	}
	return pages
}
