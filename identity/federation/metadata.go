package federation

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"stonetown/identity/federation/relyingparty"
	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/outbound"
)

// MaxMetadata is the maximum size of a document about a provider, in bytes.
const MaxMetadata = serviceprovider.MaxDocument

// Metadata is what a provider publishes about itself. It is stored as JSON.
type Metadata struct {
	Provider         *relyingparty.Metadata            `json:"provider,omitempty"`          // of OpenID, from its discovery document
	IdentityProvider *serviceprovider.IdentityProvider `json:"identity_provider,omitempty"` // of SAML
	RefreshedAt      time.Time                         `json:"refreshed_at,omitzero"`       // UTC, as FailingSince
	FailingSince     time.Time                         `json:"failing_since,omitzero"`      // the first failed refresh since then; zero: none
	FailedAt         time.Time                         `json:"failed_at,omitzero"`          // the last one; zero: none since then
}

// The reasons of a [MetadataError] that are not classes of [outbound.Error].
const invalidMetadata = "invalid"

// MetadataError is returned for a provider whose metadata cannot be had or used. Reason is a
// class of [outbound.Error] for a document that was not received, and invalid for one that is
// not valid.
type MetadataError struct {
	URLHost string // empty for XML that was sent
	Reason  string
	Message string // without what the server sent
}

func (e *MetadataError) Error() string { return "metadata of the provider: " + e.Message }

// fetch reads the metadata of a connection. It fails with [*MetadataError].
func (r *Registry) fetch(ctx context.Context, c Connection) (Metadata, error) {
	m := Metadata{RefreshedAt: r.now()}
	from := c.source()
	if from == "" {
		idp, err := parseIdentityProvider([]byte(c.MetadataXML), m.RefreshedAt, r.outbound)
		m.IdentityProvider = idp
		return m, inMetadata("", err)
	}
	host := ""
	if u, err := url.Parse(from); err == nil {
		host = u.Host
	}
	document, err := r.outbound.Get(ctx, from, MaxMetadata)
	if err != nil {
		return m, notFetched(host, err)
	}
	if c.Kind == SAML {
		m.IdentityProvider, err = parseIdentityProvider(document, m.RefreshedAt, r.outbound)
	} else {
		m.Provider, err = r.parseProvider(document, c.Issuer)
	}
	return m, inMetadata(host, err)
}

// notFetched returns the error of a request. The end of the caller's context is passed on.
func notFetched(host string, err error) error {
	var failed *outbound.Error
	if !errors.As(err, &failed) {
		return err
	}
	message := map[outbound.Class]string{
		outbound.BlockedAddress: "the address of the host is not on the public Internet",
		outbound.DNS:            "the name of the host could not be looked up",
		outbound.Connection:     "no connection to the host",
		outbound.TLS:            "no trusted, encrypted connection to the host",
		outbound.Timeout:        "the host did not respond in time",
		outbound.Status:         fmt.Sprintf("the host responded with the status %d; redirects are not followed", failed.Status),
		outbound.TooLarge:       fmt.Sprintf("the document has more than %d bytes", MaxMetadata),
		outbound.Invalid:        "the URL cannot be fetched",
	}[failed.Class]
	return &MetadataError{host, string(failed.Class), message}
}

func inMetadata(host string, err error) error {
	if err == nil {
		return nil
	}
	reason := invalidMetadata
	if errors.Is(err, serviceprovider.ErrMetadataTooLarge) {
		reason = string(outbound.TooLarge)
	}
	return &MetadataError{host, reason, err.Error()}
}

// checkBrowserURL refuses a URL to which browsers are sent. It may be of a host that this
// machine does not reach, such as a provider within the network of the tenant.
func checkBrowserURL(client *outbound.Client, text string) error {
	err := client.CheckURL(text)
	var refused *outbound.Error
	if errors.As(err, &refused) && refused.Class == outbound.BlockedAddress {
		return nil
	}
	return urlProblem(err)
}

// urlProblem returns the problem of a URL that [outbound.Client.CheckURL] refused.
func urlProblem(err error) error {
	if err == nil {
		return nil
	}
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}
