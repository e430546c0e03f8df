// Package peers tests the product with software of others, whose libraries the product must not
// depend on: the identity providers Dex, as a process, and the OP of zitadel/oidc.
package peers

import (
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"stonetown/identity/federation/relyingparty"
	"stonetown/internal/outbound"
)

const (
	redirectURI = "http://127.0.0.1:9/callback" // is never requested
	leftURI     = "http://127.0.0.1:9/left"
)

func newService(t *testing.T) *relyingparty.Service {
	t.Helper()
	client := outbound.New(outbound.Config{AllowInsecure: true})
	t.Cleanup(client.Close)
	s, err := relyingparty.New(relyingparty.Config{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// browser is a person with a browser, who fills in the forms of a provider.
type browser struct {
	*http.Client
	t    *testing.T
	fill map[string]string // the fields of forms, by name
}

func newBrowser(t *testing.T, fill map[string]string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{
		Jar: jar, Timeout: 10 * time.Second, Transport: new(http.Transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(client.CloseIdleConnections)
	return &browser{client, t, fill}
}

// visit follows a URL until the provider sends the browser to an address that begins with end. It
// returns the parameters there.
func (b *browser) visit(from, end string) url.Values {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, from, nil)
	var page string
	for range 20 {
		if err != nil {
			b.t.Fatal(err)
		}
		res, failed := b.Do(req)
		if failed != nil {
			b.t.Fatal(failed)
		}
		body, failed := io.ReadAll(res.Body)
		res.Body.Close()
		if failed != nil {
			b.t.Fatal(failed)
		}
		page = string(body)
		if to, none := res.Location(); none == nil {
			if strings.HasPrefix(to.String(), end) {
				return to.Query()
			}
			req, err = http.NewRequestWithContext(b.t.Context(), http.MethodGet, to.String(), nil)
			continue
		}
		to, form := b.form(page)
		if form == nil || res.StatusCode != http.StatusOK {
			break
		}
		target, failed := req.URL.Parse(to)
		if failed != nil {
			b.t.Fatal(failed)
		}
		req, err = http.NewRequestWithContext(b.t.Context(), http.MethodPost, target.String(), strings.NewReader(form.Encode()))
		if err == nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	}
	b.t.Fatalf("the provider does not lead to %s, but to %s: %s", end, req.URL, page)
	return nil
}

// form returns the target and the fields of the first form of a page.
func (b *browser) form(page string) (to string, fields url.Values) {
	b.t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		b.t.Fatal(err)
	}
	attribute := func(n *html.Node, name string) string {
		for _, a := range n.Attr {
			if a.Key == name {
				return a.Val
			}
		}
		return ""
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "form" {
			continue
		}
		fields = url.Values{}
		for in := range n.Descendants() {
			name := attribute(in, "name")
			if in.Type != html.ElementNode || in.Data != "input" || name == "" || attribute(in, "type") == "checkbox" {
				continue
			}
			value, ok := b.fill[name]
			if !ok {
				value = attribute(in, "value")
			}
			fields.Set(name, value)
		}
		return attribute(n, "action"), fields
	}
	return "", nil
}

// signIn signs in at a provider.
func signIn(t *testing.T, s *relyingparty.Service, p relyingparty.Provider, b *browser, r relyingparty.Request) (relyingparty.Identity, error) {
	t.Helper()
	r.RedirectURI = redirectURI
	to, pending, err := s.Begin(t.Context(), p, r)
	if err != nil {
		t.Fatal(detail(err))
	}
	return s.Finish(t.Context(), p, pending, b.visit(to, redirectURI))
}

// detail is an error with its detail.
func detail(err error) string {
	var e *relyingparty.Error
	if errors.As(err, &e) {
		return string(e.Class) + " at " + string(e.Step) + ": " + e.Detail
	}
	if err != nil {
		return err.Error()
	}
	return "none"
}
