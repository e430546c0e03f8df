package controlplane

import (
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// The types of the events of organisations. The log of an organisation has its id in place of that
// of a tenant.
const (
	TenantSuspendedEvent      eventlog.Type = "tenant.suspended"
	TenantResumedEvent        eventlog.Type = "tenant.resumed"
	TenantDecommissionedEvent eventlog.Type = "tenant.decommissioned"
	TenantPurgedEvent         eventlog.Type = "tenant.purged"
	TenantImportedEvent       eventlog.Type = "tenant.imported"
)

// tenantDocument is a tenant in the data of events.
type tenantDocument struct {
	ID               string             `json:"id"`
	OrgID            string             `json:"org_id"`
	Slug             string             `json:"slug"`
	Name             string             `json:"name"`
	State            TenantState        `json:"state"`
	BaseURL          string             `json:"base_url"`
	CreatedAt        document.Timestamp `json:"created_at"`
	SuspendedAt      document.Timestamp `json:"suspended_at,omitzero"`
	SuspendReason    string             `json:"suspend_reason,omitzero"`
	DecommissionedAt document.Timestamp `json:"decommissioned_at,omitzero"`
	PurgeAt          document.Timestamp `json:"purge_at,omitzero"`
}

func (t Tenant) document() tenantDocument {
	return tenantDocument{
		ID: t.ID, OrgID: t.OrgID, Slug: t.Slug, Name: t.Name, State: t.State, BaseURL: t.BaseURL, CreatedAt: document.Timestamp(t.CreatedAt),
		SuspendedAt: document.Timestamp(t.SuspendedAt), SuspendReason: t.SuspendReason,
		DecommissionedAt: document.Timestamp(t.DecommissionedAt), PurgeAt: document.Timestamp(t.PurgeAt),
	}
}
