package federation

import (
	"fmt"
	"slices"
	"time"

	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/outbound"
)

// parseIdentityProvider parses and validates metadata of a SAML identity provider. Its services can
// be at all addresses to which this server sends browsers.
func parseIdentityProvider(document []byte, now time.Time, client *outbound.Client) (*serviceprovider.IdentityProvider, error) {
	p, err := serviceprovider.ParseMetadata(document, now)
	if err != nil {
		return nil, err
	}
	for _, s := range slices.Concat(p.SingleSignOn, p.SingleLogout) {
		for _, at := range []string{s.Location, s.ResponseLocation} {
			if at == "" {
				continue
			}
			if err := checkBrowserURL(client, at); err != nil {
				return nil, fmt.Errorf("a service of the identity provider has an invalid URL: %w", err)
			}
		}
	}
	return p, nil
}

// certificates returns descriptions of the signing certificates of a SAML identity provider. Those
// that are stored are valid.
func (m Metadata) certificates() []serviceprovider.Certificate {
	if m.IdentityProvider == nil {
		return nil
	}
	list, err := m.IdentityProvider.Describe()
	if err != nil {
		return nil
	}
	return list
}

// lastCertificate returns the signing certificate that expires last.
func (m Metadata) lastCertificate() (last serviceprovider.Certificate) {
	for _, c := range m.certificates() {
		if c.NotAfter.After(last.NotAfter) {
			last = c
		}
	}
	return last
}
