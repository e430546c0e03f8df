package protocol

// Tenant is a tenant as an authorization server.
type Tenant struct {
	ID      string
	BaseURL string // issuer and default audience
}
