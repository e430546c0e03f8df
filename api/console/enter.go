package console

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"stonetown/api/inprocess"
	"stonetown/api/web"
	"stonetown/identity/authn"
	"stonetown/identity/session"
)

// A member of an organisation opens the console of a tenant from the control plane (tenants.go). The
// link leads to a page here, with a button, because programs open links, too, and because the person
// must see as whom they enter: the link could be that of another.

// EnterPage is the path of the page that the link from the control plane leads to. It has the
// parameter token.
const EnterPage = home + "/enter"

// opened is a session that was opened from the control plane, as a page shows it.
type opened struct {
	Organization string
	EndsAt       string // RFC 3339
	Back         string // to the page of the tenant in the control plane
}

// anyone is the site of the pages for persons who have not signed in.
var anyone = &site{enter: func(*visit) error { return nil }, areas: func(*visit) []area { return nil }}

func (v *visit) authnTenant() authn.Tenant {
	return authn.Tenant{ID: v.info.Tenant.ID, Name: v.info.Tenant.Name, BaseURL: v.info.Tenant.BaseURL}
}

// enterForm asks the person whether to enter. It uses nothing up.
func enterForm(v *visit) error { return v.enterWith(http.StatusOK, "") }

func (v *visit) enterWith(status int, problem string) error {
	token := v.form("token")
	e, err := v.handlers.Sessions.ReadEntry(v.r.Context(), v.authnTenant(), token)
	if errors.Is(err, authn.ErrToken) {
		return v.staleLink()
	}
	if err != nil {
		return err
	}
	org, err := v.handlers.Organizations.OrganizationByID(v.r.Context(), e.Origin.OrganizationID)
	if err != nil {
		return err
	}
	replaced := ""
	if cookie := v.info.Cookie(web.SessionCookie); cookie != "" {
		a, err := inprocess.Call(v.handlers.API, v.r, cookie, http.MethodGet, "/api/v1/auth/session", nil)
		if _, ended := errors.AsType[*inprocess.Error](err); err != nil && !ended {
			return err
		}
		status, _ := a.Data.(object)
		replaced, _ = member(status, "user/email").(string)
	}
	return v.render(status, "enter.html", view{Title: "Open the console", Problem: problem, Data: object{
		"Token": token, "Person": e.User.Name, "Organization": org.Name, "Tenant": v.info.Tenant.Name, "Replaced": replaced,
	}})
}

// staleLink says that a link can't be used.
func (v *visit) staleLink() error {
	return v.render(http.StatusGone, "stale-link.html", view{Title: "This link is not valid any more", Data: object{"Control": v.handlers.ControlURL}})
}

// enterConsole uses the link, and begins the session that takes the place of the one in this browser.
func enterConsole(v *visit) error {
	device := authn.Device{Device: session.Device{IP: v.info.ClientIP.String(), UserAgent: v.info.UserAgent}}
	r, err := v.handlers.Sessions.Enter(v.r.Context(), v.authnTenant(), v.form("token"), device)
	switch {
	case errors.Is(err, authn.ErrToken):
		return v.staleLink()
	case errors.Is(err, authn.ErrDisabled), errors.Is(err, authn.ErrThreat):
		return v.enterWith(http.StatusForbidden, web.Sentence(err.Error()))
	case err != nil:
		return err
	}
	v.info.SetSession(r.Token, r.Session.ExpiresAt)
	v.redirect(home)
	return nil
}

// openedBy finds what the pages of a session that was opened from the control plane show of it.
func (v *visit) openedBy(s session.Session) error {
	org, err := v.handlers.Organizations.OrganizationByID(v.r.Context(), s.Origin.OrganizationID)
	if err != nil {
		return err
	}
	a, err := inprocess.Call(v.handlers.API, v.r, v.info.Cookie(web.SessionCookie), http.MethodGet, "/api/v1/me/profile", nil)
	if err != nil {
		return err
	}
	profile, _ := a.Data.(object)
	if name, _ := profile["name"].(string); name != "" {
		v.person = name
	}
	v.origin = s.Origin
	v.opened = &opened{
		Organization: org.Name, EndsAt: s.ExpiresAt.UTC().Format(time.RFC3339),
		Back: strings.TrimSuffix(v.handlers.ControlURL, "/") + organizationsPage + "/" + s.Origin.OrganizationID + "/tenants/" + v.info.Tenant.ID,
	}
	return nil
}

// reopen asks the person to open the console again from the control plane, where they prove a second
// factor. What was sent is kept as by [visit.keep].
func (v *visit) reopen() error {
	data := object{"Opened": v.opened, "Page": v.r.URL.RequestURI()}
	if v.r.Method == http.MethodPost && v.r.MultipartForm == nil && len(v.r.PostForm) > 0 {
		data["Fields"], data["Action"] = v.sent(), v.r.URL.RequestURI()
	}
	return v.render(http.StatusForbidden, "reopen.html", view{Title: "Open this console again", Data: data})
}
