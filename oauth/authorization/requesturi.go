package authorization

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"stonetown/internal/fair"
	"stonetown/internal/outbound"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/requestobject"
)

// fetchTime bounds the fetch of a request object: a browser waits for it.
const fetchTime = 5 * time.Second

// fetchLimits bound how many request objects are fetched at a time. Anyone can send an authorization
// request, so a slow address must occupy neither the process nor the other applications of a tenant.
var fetchLimits = fair.Limits{Service: 64, Tenant: 16, Caller: 4}

// registeredURI returns the address from which a request object is fetched, and the SHA-256 that its
// content must have; empty: any. An application has to register each request_uri, because otherwise
// a browser could make the server fetch any address (OIDC Core §6.2, RFC 9101 §10.4.1). One that is
// registered without a fragment is registered with every fragment, which can only restrict its
// content.
func registeredURI(app client.Application, requestURI string) (address, hash string, registered bool) {
	address, fragment, _ := strings.Cut(requestURI, "#")
	if !slices.Contains(app.RequestURIs, requestURI) && !slices.Contains(app.RequestURIs, address) {
		return "", "", false
	}
	if sha256Pattern.MatchString(fragment) { // another fragment has no meaning
		hash = fragment
	}
	return address, hash, true
}

// fetched returns the request object at the request_uri of an application. Nothing is cached: its
// content can change unless the fragment is its hash, and an object is sent once. A refusal is a code
// and a description.
func (s *Service) fetched(ctx context.Context, app client.Application, requestURI string) (object, code, description string, err error) {
	address, hash, registered := registeredURI(app, requestURI)
	if !registered {
		return "", protocol.InvalidRequestURI, "the application has not registered this request_uri", nil
	}
	caller := fair.Caller{Tenant: app.TenantID, ID: app.ClientID}
	if s.fetches.Take(caller, 1) != nil {
		return "", protocol.TemporarilyUnavailable, "too many request objects are being fetched; try again", nil
	}
	defer s.fetches.Give(caller, 1)
	within, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	content, err := s.outbound.Get(within, address, requestobject.MaxSize)
	if failed, ok := errors.AsType[*outbound.Error](err); ok {
		return "", protocol.InvalidRequestURI, "the request object cannot be fetched: " + failed.Error(), nil
	}
	if err != nil {
		return "", "", "", err
	}
	if sum := sha256.Sum256(content); hash != "" && base64.RawURLEncoding.EncodeToString(sum[:]) != hash {
		return "", protocol.InvalidRequestURI, "the content does not have the SHA-256 in the fragment of the request_uri", nil
	}
	return strings.TrimSpace(string(content)), "", "", nil
}
