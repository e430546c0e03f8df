package protocol

// Tenant is what the package needs to know of one.
type Tenant struct {
	ID      string
	BaseURL string // issuer and default audience
}
