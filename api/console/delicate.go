package console

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"stonetown/controlplane"
	"stonetown/identity/authn"
)

// A delicate form gives access or secrets to somebody, replaces keys, changes a rule of the tenant,
// deletes what cannot be restored, or reaches many users. A stolen session must not be enough for it:
// the person must have proved a second factor recently (AAL 2, RFC 9470), as for the own account.
//
// This is a rule of the console, whose sessions are those of browsers. The operations decide what the
// person may do, and require of the token what the document says of each of them. A person without a
// factor adds one first. Where the tenant has no second factors (mfa_policy.mode is off), nothing is
// asked.

// inOrganizations is the path of the pages of an organisation.
const inOrganizations = organizationsPage + "/{org_id}"

// care is when a second factor is asked for.
type care int

const (
	// atForm asks before the form is shown, which is what GET of its path does, and when it is sent.
	atForm care = iota + 1
	// atSend asks when the form is sent: it is part of a page that can be read without.
	atSend
)

// delicate are the delicate forms, by the path that they are sent to.
var delicate = map[string]care{
	// They give access as another user, delete an account, or take what protects it.
	importAction:                                        atSend,
	usersPage + "/new":                                  atForm,
	usersPage + "/{user_id}/edit":                       atForm,
	usersPage + "/{user_id}/delete":                     atForm,
	usersPage + "/{user_id}/reset-factors":              atForm,
	usersPage + "/{user_id}/factors/{factor_id}/remove": atForm,

	// They give scopes.
	groupsPage + "/{group_id}":        atSend,
	groupsPage + "/new":               atForm,
	groupsPage + "/{group_id}/edit":   atForm,
	groupsPage + "/{group_id}/delete": atForm,
	scopesPage + "/new":               atForm,
	scopesPage + "/{name}/edit":       atForm,
	scopesPage + "/{name}/delete":     atForm,

	// They change who may do what.
	applyPage: atSend,

	// It deletes relations, which cannot be restored.
	registeredPage + "/delete": atForm,

	// They give secrets and scopes, or decide where codes and claims go.
	applicationsPage + "/new":                            atForm,
	applicationsPage + "/{application_id}/edit":          atForm,
	applicationsPage + "/{application_id}/rotate-secret": atForm,
	applicationsPage + "/{application_id}/delete":        atForm,
	applicationsPage + "/{application_id}/claims/save":   atSend,
	webhooksPage + "/new":                                atForm,
	webhooksPage + "/{subscription_id}/edit":             atForm,
	webhooksPage + "/{subscription_id}/rotate-secret":    atForm,
	webhooksPage + "/{subscription_id}/delete":           atForm,

	// A message to all users.
	incidentsPage + "/{incident_id}/notify": atForm,

	// A provider or an issuer says who somebody is.
	connectionsPage + "/new":                          atForm,
	connectionsPage + "/{connection_id}/edit":         atForm,
	connectionsPage + "/{connection_id}/enable":       atSend,
	connectionsPage + "/{connection_id}/delete":       atForm,
	connectionsPage + "/{connection_id}/mapping/save": atSend,
	issuersPage + "/new":                              atForm,
	issuersPage + "/{issuer_id}/edit":                 atForm,
	issuersPage + "/{issuer_id}/enable":               atSend,
	issuersPage + "/{issuer_id}/delete":               atForm,

	// The rules and keys of the tenant.
	policiesPage + "/{policy}":          atSend,
	keysPage + "/rotate":                atForm,
	keysPage + "/replace":               atForm,
	certificatesPage + "/{use}/rotate":  atForm,
	certificatesPage + "/{use}/replace": atForm,
	threatsPage + "/new":                atForm,
	threatsPage + "/{feed_id}/edit":     atForm,
	threatUpload:                        atSend,
	threatsPage + "/{feed_id}/delete":   atForm,

	// A mail with another text could lead all users somewhere else.
	mailsPage + "/{mail}/{language}": atSend,

	// They change what is demanded of sign-ins, or give the secret of an action.
	flowPage + "/publish":                      atForm,
	flowPage + "/versions/{version}/rollback":  atForm,
	flowPage + "/actions/{action_name}/secret": atForm,

	// In the control plane: the end of a tenant, the secret of its first application, and roles.
	inOrganizations + "/tenants/new":                                         atForm,
	inOrganizations + "/tenants/{tenant_id}/suspend":                         atForm,
	inOrganizations + "/tenants/{tenant_id}/decommission":                    atForm,
	inOrganizations + "/tenants/{tenant_id}/open-console":                    atForm, // with all rights there
	inOrganizations + "/members/{member_id}/edit":                            atForm,
	inOrganizations + "/invitations/new":                                     atForm,
	inOrganizations + "/service-accounts/new":                                atForm,
	inOrganizations + "/service-accounts/{service_account_id}/edit":          atForm,
	inOrganizations + "/service-accounts/{service_account_id}/rotate-secret": atForm,
	inOrganizations + "/service-accounts/{service_account_id}/delete":        atForm,
}

// ordinary are the other forms. A form that is in neither list is an error at start: whoever adds one
// decides.
var ordinary = map[string]bool{
	// They take access away, or give back what a person had.
	usersPage + "/{user_id}/reset-password":                       true, // the link goes to the user
	usersPage + "/{user_id}/sign-out":                             true,
	usersPage + "/{user_id}/sessions/{session_id}/end":            true,
	usersPage + "/{user_id}/disable":                              true,
	usersPage + "/{user_id}/enable":                               true,
	groupsPage + "/{group_id}/remove":                             true,
	usersPage + "/{user_id}/applications/{application_id}/revoke": true,
	applicationsPage + "/{application_id}/disable":                true,
	applicationsPage + "/{application_id}/enable":                 true,
	connectionsPage + "/{connection_id}/disable":                  true,
	issuersPage + "/{issuer_id}/disable":                          true,
	importsPage + "/{job_id}/cancel":                              true,

	// It begins the session. The second factor was asked for where the link came from.
	EnterPage: true,

	// They show something, and change nothing.
	modelPage: true,
	applicationsPage + "/{application_id}/claims": true,
	connectionsPage + "/{connection_id}/test":     true,
	connectionsPage + "/{connection_id}/mapping":  true,
	testsPage:                  true,
	testsPage + "/new":         true,
	testsPage + "/sets/{name}": true,

	// The daily work: relations of resources, deliveries, incidents, and assertions, which guard the model.
	addPage:                                  true,
	removePage:                               true,
	webhooksPage + "/{subscription_id}/test": true,
	webhooksPage + "/{subscription_id}/replay":    true,
	webhooksPage + "/{subscription_id}/drop":      true,
	webhooksPage + "/{subscription_id}/disable":   true,
	webhooksPage + "/{subscription_id}/enable":    true,
	webhooksPage + "/{subscription_id}/redeliver": true,
	incidentsPage + "/new":                        true,
	incidentsPage + "/{incident_id}":              true,
	incidentsPage + "/{incident_id}/edit":         true,
	incidentsPage + "/{incident_id}/close":        true,
	incidentsPage + "/{incident_id}/remove":       true,
	testsPage + "/new/save":                       true,
	testsPage + "/sets/{name}/save":               true,
	testsPage + "/sets/{name}/delete":             true,
	threatsPage + "/{feed_id}/refresh":            true,
	reportsPage + "/new":                          true,
	brandingPage + "/{part}":                      true,
	logoAction:                                    true,
	logoAction + "/remove":                        true,
	mailsPage + "/{mail}/{language}/preview":      true,
	mailsPage + "/{mail}/{language}/test":         true,
	mailsPage + "/{mail}/{language}/reset":        true,
	reportsPage + "/{report_id}/run":              true,
	reportsPage + "/{report_id}/edit":             true,
	reportsPage + "/{report_id}/delete":           true,

	// They name resources, and change attributes that decide nothing.
	registeredPage + "/new":  true,
	registeredPage + "/edit": true,

	// They change the draft of the sign-in flow, which has no effect before it is published, or preview it.
	flowPage + "/steps/{list}/new":               true,
	flowPage + "/steps/{list}/{position}":        true,
	flowPage + "/steps/{list}/{position}/move":   true,
	flowPage + "/steps/{list}/{position}/remove": true,
	flowPage + "/new-action":                     true,
	flowPage + "/actions/{action_name}":          true,
	flowPage + "/actions/{action_name}/remove":   true,
	flowPage + "/preview":                        true,
	flowPage + "/discard":                        true,

	// In the control plane.
	organizationsPage + "/new":                              true,
	organizationsPage + "/left":                             true,
	inOrganizations + "/edit":                               true,
	inOrganizations + "/tenants/{tenant_id}/edit":           true,
	inOrganizations + "/tenants/{tenant_id}/resume":         true,
	inOrganizations + "/members/{member_id}/remove":         true,
	inOrganizations + "/invitations/{invitation_id}/resend": true,
	inOrganizations + "/invitations/{invitation_id}/revoke": true,
}

// stepUpPage is the page on which a person proves a second factor, or is led to add one.
const stepUpPage = "/account/step-up"

// confirmedPage ends in the other tab, in which a person has proved a second factor.
const confirmedPage = home + "/confirmed"

// confirmed reports whether the person may send delicate forms now. In a session that was opened from
// the control plane, they prove a second factor there.
func (v *visit) confirmed() (bool, error) {
	if v.handlers.Sessions.SteppedUp(v.secondFactor) {
		return true, nil
	}
	tenant, person := v.info.Tenant.ID, v.user
	if v.opened != nil {
		tenant, person = controlplane.SystemTenant, v.origin.UserID
	}
	way, err := v.handlers.Sessions.WayToAAL2(v.r.Context(), tenant, person)
	return way == authn.NoWay, err
}

// confirmation is the path on which the person proves a second factor before a file is sent, which no
// page can keep; empty: that was done.
func (v *visit) confirmation() (string, error) {
	done, err := v.confirmed()
	if err != nil || done {
		return "", err
	}
	if v.opened != nil {
		return v.opened.Back + "/open-console", nil
	}
	return query(stepUpPage, "next", v.r.URL.Path), nil
}

// stepUp asks for a second factor if the form of a path needs one. The page must not continue if it
// reports true.
func (v *visit) stepUp(path string) (asked bool, err error) {
	when := delicate[path]
	if when == 0 || v.r.Method != http.MethodPost && when == atSend {
		return false, nil
	}
	done, err := v.confirmed()
	if err != nil || done {
		return false, err
	}
	if v.opened != nil {
		v.drain(path)
		return true, v.reopen()
	}
	switch {
	case v.r.Method != http.MethodPost:
		v.redirect(query(stepUpPage, "next", v.r.URL.RequestURI()))
		return true, nil
	case isUpload(path):
		v.drain(path)
		v.redirect(query(stepUpPage, "next", v.r.URL.Path))
		return true, nil
	}
	return true, v.keep()
}

// drain reads the file of a form whose page is not shown. Browsers read the answer when they have sent
// the file, as far as there is time for it.
func (v *visit) drain(path string) {
	if v.r.Method == http.MethodPost && isUpload(path) {
		_ = http.NewResponseController(v.w).SetReadDeadline(time.Now().Add(maxOnce))
		_, _ = io.Copy(io.Discard, v.r.Body)
	}
}

// kept is a value of a form that waits.
type kept struct{ Name, Value string }

// keep shows what was sent as a form that waits until the person has proved a second factor in another
// tab. It is sent again by a click, and never by itself; no value is in an address or stored.
func (v *visit) keep() error {
	return v.render(http.StatusForbidden, "delicate.html", view{Title: "Confirm that it is you", Data: object{
		"Fields": v.sent(), "Action": v.r.URL.RequestURI(), "StepUp": query(stepUpPage, "next", confirmedPage),
	}})
}

// sent returns the values of a form.
func (v *visit) sent() (fields []kept) {
	for _, name := range slices.Sorted(maps.Keys(v.r.PostForm)) {
		for _, value := range v.r.PostForm[name] {
			fields = append(fields, kept{name, value})
		}
	}
	return fields
}

// confirmedInTab is the page in the other tab.
func confirmedInTab(v *visit) error { return v.show("confirmed.html", "Confirmed", nil) }
