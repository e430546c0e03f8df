package samlkeys

import (
	"context"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// rotated is the event of keys that entered a state.
func rotated(ctx context.Context, emergency bool, changed []Key) eventlog.Event {
	type certificate struct {
		Fingerprint string             `json:"fingerprint"`
		Use         Use                `json:"use"`
		State       State              `json:"state"`
		NotAfter    document.Timestamp `json:"not_after"`
	}
	var data struct {
		Emergency    bool          `json:"emergency"`
		Certificates []certificate `json:"saml_certificates"`
	}
	data.Emergency = emergency
	for _, k := range changed {
		data.Certificates = append(data.Certificates, certificate{k.ID, k.Use, k.State, document.Timestamp(k.Certificate.NotAfter)})
	}
	return eventlog.Of(ctx, eventlog.TenantSAMLCertificateRotated, data)
}
