package management

import (
	"time"

	"stonetown/controlplane"
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// Role is the name of a direct relation of an organisation.
type Role string

// The built-in roles.
const (
	Owner    Role = "owner"
	Admin    Role = "admin"
	Operator Role = "operator"
	Viewer   Role = "viewer"
)

// Member is a user with a role in an organisation.
type Member struct {
	ID           string
	OrgID        string
	UserID       string
	Email        string
	Name         string
	Role         Role
	MFAEnrolled  bool // has a second factor
	JoinedAt     time.Time
	InvitedBy    string    // id of the user or application; empty for the first owner
	LastActiveAt time.Time // of the newest session; zero: there is none
}

// ServiceAccount is an application of the system tenant with a role in an organisation. It gets
// tokens by its client credentials.
type ServiceAccount struct {
	ID        string // of the application
	OrgID     string
	ClientID  string
	Name      string
	Role      Role
	CreatedBy string
	CreatedAt time.Time
}

// NewTenant describes a tenant to create.
type NewTenant struct {
	Slug        string // the first label of its host
	Name        string
	Environment controlplane.Environment // default: production
	Region      string                   // default: the first region of the deployment
}

// CreatedTenant is a new tenant with the credentials of the application that administers it.
// There is no other copy of the secret.
type CreatedTenant struct {
	controlplane.Tenant
	ApplicationID, ClientID, ClientSecret string
}

// ServiceAccountChange is a change of a service account. Nil leaves a value as it is.
type ServiceAccountChange struct {
	Name *string
	Role *Role
}

// RotatedSecret is the new secret of a service account.
type RotatedSecret struct {
	Secret            string
	PreviousExpiresAt time.Time // of the secret before
}

// InvitationState is the state of an invitation.
type InvitationState string

// The states of an invitation. All but the first are final.
const (
	InvitationPending  InvitationState = "pending"
	InvitationAccepted InvitationState = "accepted"
	InvitationRevoked  InvitationState = "revoked"
	InvitationExpired  InvitationState = "expired"
)

// Invitation invites the owner of an e-mail address to an organisation.
type Invitation struct {
	ID         string
	OrgID      string
	Email      string
	Role       Role
	State      InvitationState
	InvitedBy  string
	CreatedAt  time.Time
	ExpiresAt  time.Time
	AcceptedAt time.Time // zero in other states
}

// Event is an entry of the log of an organisation.
type Event struct {
	eventlog.Event
	TenantID   string // that the event is about; empty: none
	ActorEmail string // of a user that exists; else empty
}

// EventFilter selects events. Empty fields select all.
type EventFilter struct {
	Type     string
	TenantID string
	Actor    string // id of a user or application
	Since    time.Time
	Until    time.Time
}

// MemberDocument is the public representation of a [Member].
type MemberDocument struct {
	ID           string              `json:"id"`
	OrgID        string              `json:"org_id"`
	UserID       string              `json:"user_id"`
	Email        string              `json:"email"`
	Name         *string             `json:"name"`
	Role         Role                `json:"role"`
	MFAEnrolled  bool                `json:"mfa_enrolled"`
	JoinedAt     document.Timestamp  `json:"joined_at"`
	InvitedBy    *string             `json:"invited_by"`
	LastActiveAt *document.Timestamp `json:"last_active_at"`
}

// Document returns the public representation.
func (m Member) Document() MemberDocument {
	return MemberDocument{
		m.ID, m.OrgID, m.UserID, m.Email, document.OrNull(m.Name), m.Role, m.MFAEnrolled,
		document.Timestamp(m.JoinedAt), document.OrNull(m.InvitedBy), document.TimeOrNull(m.LastActiveAt),
	}
}

// ServiceAccountDocument is the public representation of a [ServiceAccount].
type ServiceAccountDocument struct {
	ID        string             `json:"id"`
	OrgID     string             `json:"org_id"`
	ClientID  string             `json:"client_id"`
	Name      string             `json:"name"`
	Role      Role               `json:"role"`
	CreatedBy string             `json:"created_by"`
	CreatedAt document.Timestamp `json:"created_at"`
}

// Document returns the public representation.
func (a ServiceAccount) Document() ServiceAccountDocument {
	return ServiceAccountDocument{a.ID, a.OrgID, a.ClientID, a.Name, a.Role, a.CreatedBy, document.Timestamp(a.CreatedAt)}
}

// InvitationDocument is the public representation of an [Invitation].
type InvitationDocument struct {
	ID         string              `json:"id"`
	OrgID      string              `json:"org_id"`
	Email      string              `json:"email"`
	Role       Role                `json:"role"`
	State      InvitationState     `json:"state"`
	InvitedBy  string              `json:"invited_by"`
	CreatedAt  document.Timestamp  `json:"created_at"`
	ExpiresAt  document.Timestamp  `json:"expires_at"`
	AcceptedAt *document.Timestamp `json:"accepted_at"`
}

// Document returns the public representation.
func (i Invitation) Document() InvitationDocument {
	return InvitationDocument{
		i.ID, i.OrgID, i.Email, i.Role, i.State, i.InvitedBy, document.Timestamp(i.CreatedAt), document.Timestamp(i.ExpiresAt), document.TimeOrNull(i.AcceptedAt),
	}
}
