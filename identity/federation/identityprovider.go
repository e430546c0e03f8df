package federation

import (
	"fmt"
	"slices"
	"time"

	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/outbound"
)

// parseIdentityProvider parses the metadata of a SAML identity provider. It refuses services to
// which browsers must not be sent.
func parseIdentityProvider(document []byte, now time.Time, client *outbound.Client) (*serviceprovider.IdentityProvider, error) {
	p, err := serviceprovider.ParseMetadata(document, now)
	if err != nil {
		return nil, err
	}
	for _, s := range slices.Concat(p.SingleSignOn, p.SingleLogout) {
		for _, at := range []string{s.Location, s.ResponseLocation} {
			if at == "" { // ResponseLocation is optional
				continue
			}
			if err := checkBrowserURL(client, at); err != nil {
				return nil, fmt.Errorf("a service of the identity provider has an invalid URL: %w", err)
			}
		}
	}
	return p, nil
}

// describe returns descriptions of the signing certificates. Those that are stored are valid.
func describe(p *serviceprovider.IdentityProvider) []serviceprovider.Certificate {
	list, err := p.Describe()
	if err != nil {
		return nil
	}
	return list
}

// lastCertificate returns the signing certificate that expires last.
func lastCertificate(p *serviceprovider.IdentityProvider) (last serviceprovider.Certificate) {
	for _, c := range describe(p) {
		if c.NotAfter.After(last.NotAfter) {
			last = c
		}
	}
	return last
}
