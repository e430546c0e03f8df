package client

import (
	"context"
	"encoding/json"
	"slices"
)

// maxSector bounds a sector document, in bytes.
const maxSector = 64 << 10

// verifySector refuses a sector_identifier_uri whose document, a JSON array, lacks a redirect URI of
// the client (OIDC Registration §5). It fails with [*protocol.Error].
func (s *Registry) verifySector(ctx context.Context, m Metadata) error {
	at := m.SectorIdentifierURI
	if at == "" {
		return nil
	}
	if s.allowed.fetch.CheckURL(at) != nil {
		return metadataError("sector_identifier_uri must be an https URL on the public Internet")
	}
	text, err := s.allowed.fetch.Get(ctx, at, maxSector)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var listed []string
	if err != nil || json.Unmarshal(text, &listed) != nil {
		return metadataError("sector_identifier_uri must lead to a JSON array of redirect URIs, of at most 64 KiB")
	}
	for _, uri := range m.RedirectURIs {
		if !slices.Contains(listed, uri) {
			return metadataError("the document at sector_identifier_uri does not list each of redirect_uris")
		}
	}
	return nil
}
