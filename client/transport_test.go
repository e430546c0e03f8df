package client

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Names under localhost lead to this machine, and are the Host of the request.
func TestLocalhost(t *testing.T) {
	hosts := make(chan string, 1)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hosts <- r.Host })
	listen := map[string]func() *httptest.Server{
		"127.0.0.1": func() *httptest.Server { return httptest.NewServer(handler) },
		"::1": func() *httptest.Server {
			listener, err := net.Listen("tcp", "[::1]:0")
			if err != nil {
				t.Fatalf("the machine has no IPv6 loopback: %v", err)
			}
			s := httptest.NewUnstartedServer(handler)
			s.Listener.Close()
			s.Listener = listener
			s.Start()
			return s
		},
	}
	for address, start := range listen {
		t.Run(address, func(t *testing.T) {
			s := start()
			defer s.Close()
			_, port, err := net.SplitHostPort(s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			client := NewHTTP()
			defer client.CloseIdleConnections()
			for _, host := range []string{"dev.localhost", "a.b.LOCALHOST", "dev.localhost.", "localhost"} {
				resp, err := client.Get("http://" + host + ":" + port)
				if err != nil {
					t.Errorf("%s: %v", host, err)
					continue
				}
				resp.Body.Close()
				if got := <-hosts; got != host+":"+port {
					t.Errorf("%s is asked as %s", host, got)
				}
			}
		})
	}
	for host, want := range map[string]bool{"notlocalhost": false, "localhost.example": false, "127.0.0.1": false, "x.localhost": true} {
		if isLocalhost(host) != want {
			t.Errorf("%s is local: %v", host, !want)
		}
	}
}

func TestNoRedirects(t *testing.T) {
	s := httptest.NewServer(http.RedirectHandler("http://elsewhere.invalid/", http.StatusTemporaryRedirect))
	defer s.Close()
	c, err := New(Config{BaseURL: s.URL, ClientID: "id", ClientSecret: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Check(context.Background(), Question{})
	contains(t, err, "307")
	if strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("it went there: %v", err)
	}
}

func TestNew(t *testing.T) {
	good := Config{BaseURL: "https://dev.example/x/", ClientID: "id", ClientSecret: "secret"}
	if c, err := New(good); err != nil || c.base != "https://dev.example/x" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, base := range []string{"", "dev.example", "ftp://dev.example", "http://", "http://a:pass@b", "http://b?pass", "http://b#pass", "http://a:pass@b:x", ":"} {
		c := good
		c.BaseURL = base
		if _, err := New(c); err == nil || strings.Contains(err.Error(), "pass") {
			t.Errorf("%q: %v", base, err)
		}
	}
	for _, c := range []Config{{BaseURL: good.BaseURL, ClientID: "id"}, {BaseURL: good.BaseURL, ClientSecret: "secret"}} {
		if _, err := New(c); err == nil || strings.Contains(err.Error(), "pass") {
			t.Errorf("%v", err)
		}
	}
}
