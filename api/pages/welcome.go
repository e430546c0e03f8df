package pages

import (
	"stonetown/controlplane"
)

// Welcome is the front page of the tenants of a development server: what runs, and where to go on.
type Welcome struct {
	Version, Database      string
	ControlURL, AdminURL   string // of the control plane, and of the listener for operators
	AdminEmail, OwnerEmail string // of the first tenant, and of the control plane
	Credentials            string // the path of the file with their passwords
	Commands               string // for a shell: the first requests
	Docs                   bool   // the documentation is served
}

// front shows the welcome page. A server without one redirects to the account, which redirects to
// the sign-in if there is no session. So does the control plane, whose users do not come to try the
// API of a tenant.
func front(v *visit) error {
	if v.handlers.Welcome == nil || v.info.Tenant.ID == controlplane.SystemTenant {
		return v.redirect(home)
	}
	data := struct {
		*Welcome
		BaseURL string
	}{v.handlers.Welcome, v.info.Tenant.BaseURL}
	return v.showEnglish("welcome.html", view{Title: "Stonetown is running", Wide: true, Data: data})
}
