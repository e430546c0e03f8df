package api_test

import (
	"crypto/rand"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// administrator is a user with rights in the console, in a browser, who has proved a second factor.
type administrator struct {
	t     *testing.T
	c     *client // of the tenant, with all rights
	id    string
	group string // it gives the rights
	token string // of the session
}

// newAdministrator returns ann@example.com, with scopes by a group of her own.
func newAdministrator(t *testing.T, c *client, scopes ...string) *administrator {
	t.Helper()
	a := &administrator{t: t, c: c, id: member(t, c, "ann@example.com")}
	a.group = c.want(t, 201, "", "POST", "/api/v1/groups", object{"slug": "admins", "name": "Admins", "scopes": scopes}).data()["id"].(string)
	c.want(t, 201, "", "POST", "/api/v1/groups/"+a.group+"/members", object{"user_id": a.id})
	a.token = steppedUp(t, signedIn(t, c, "ann@example.com")).token
	return a
}

// restrict replaces the scopes.
func (a *administrator) restrict(scopes ...string) {
	a.t.Helper()
	a.c.want(a.t, 200, "", "PATCH", "/api/v1/groups/"+a.group, object{"scopes": scopes})
}

func (a *administrator) visit(method, target string, form url.Values) shown {
	a.t.Helper()
	return a.c.visit(a.t, method, target, asBrowser(a.token), form)
}

// has expects the status of a page, and texts in it.
func (a *administrator) has(p shown, status int, texts ...string) {
	a.t.Helper()
	if p.status != status || slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(p.html, text) }) {
		a.t.Errorf("%d, want %d with %q\n%s", p.status, status, texts, p.html)
	}
}

// lacks expects a page without texts.
func (a *administrator) lacks(p shown, texts ...string) {
	a.t.Helper()
	if p.status != 200 || slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(p.html, text) }) {
		a.t.Errorf("%d, with one of %q\n%s", p.status, texts, p.html)
	}
}

// fill returns what the form of a page sends, with some values.
func (a *administrator) fill(target string, values url.Values) url.Values {
	a.t.Helper()
	p := a.visit("GET", target, nil)
	a.has(p, 200)
	all := url.Values{}
	for name, value := range hiddenFields(p.html) {
		all.Set(name, value)
	}
	for name, list := range values {
		all[name] = list
	}
	return all
}

// twice sends a form twice, which does as much as once, and expects that it leads to a path with an end.
func (a *administrator) twice(target string, form url.Values, to string) (location string) {
	a.t.Helper()
	form.Set("once", rand.Text())
	for range 2 {
		p := a.visit("POST", target, form)
		location = p.header.Get("Location")
		if p.status != 303 || !strings.HasSuffix(location, to) {
			a.t.Fatalf("%s: %d, to %q\n%s", target, p.status, location, p.html)
		}
	}
	return location
}
