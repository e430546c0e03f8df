package controlplane

import (
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// The types of the events of organisations. The log of an organisation has its id in place of that
// of a tenant.
const (
	OrganizationCreatedEvent  eventlog.Type = "organization.created"
	OrganizationUpdatedEvent  eventlog.Type = "organization.updated"
	TenantCreatedEvent        eventlog.Type = "tenant.created"
	TenantUpdatedEvent        eventlog.Type = "tenant.updated"
	TenantSuspendedEvent      eventlog.Type = "tenant.suspended"
	TenantResumedEvent        eventlog.Type = "tenant.resumed"
	TenantDecommissionedEvent eventlog.Type = "tenant.decommissioned"
	TenantPurgedEvent         eventlog.Type = "tenant.purged"
	TenantImportedEvent       eventlog.Type = "tenant.imported"
	TenantConsoleOpenedEvent  eventlog.Type = "tenant.console_opened"
)

// TenantDocument is the public representation of a [Tenant].
type TenantDocument struct {
	ID               string              `json:"id"`
	OrgID            string              `json:"org_id"`
	Slug             string              `json:"slug"`
	Name             string              `json:"name"`
	Environment      Environment         `json:"environment"`
	Region           *string             `json:"region"`
	State            TenantState         `json:"state"`
	BaseURL          string              `json:"base_url"`
	CreatedBy        *string             `json:"created_by"`
	CreatedAt        document.Timestamp  `json:"created_at"`
	UpdatedAt        document.Timestamp  `json:"updated_at"`
	SuspendedAt      *document.Timestamp `json:"suspended_at"`
	SuspendReason    *string             `json:"suspend_reason"`
	DecommissionedAt *document.Timestamp `json:"decommissioned_at"`
	PurgeAt          *document.Timestamp `json:"purge_at"`
}

// Document returns the public representation.
func (t Tenant) Document() TenantDocument {
	return TenantDocument{
		ID: t.ID, OrgID: t.OrgID, Slug: t.Slug, Name: t.Name, Environment: t.Environment, Region: document.OrNull(t.Region),
		State: t.State, BaseURL: t.BaseURL, CreatedBy: document.OrNull(t.CreatedBy),
		CreatedAt: document.Timestamp(t.CreatedAt), UpdatedAt: document.Timestamp(t.UpdatedAt),
		SuspendedAt: document.TimeOrNull(t.SuspendedAt), SuspendReason: document.OrNull(t.SuspendReason),
		DecommissionedAt: document.TimeOrNull(t.DecommissionedAt), PurgeAt: document.TimeOrNull(t.PurgeAt),
	}
}

// OrganizationDocument is the public representation of an [Organization].
type OrganizationDocument struct {
	ID        string             `json:"id"`
	Slug      string             `json:"slug"`
	Name      string             `json:"name"`
	State     string             `json:"state"` // active
	CreatedAt document.Timestamp `json:"created_at"`
	UpdatedAt document.Timestamp `json:"updated_at"`
}

// Document returns the public representation.
func (o Organization) Document() OrganizationDocument {
	return OrganizationDocument{o.ID, o.Slug, o.Name, "active", document.Timestamp(o.CreatedAt), document.Timestamp(o.UpdatedAt)}
}
