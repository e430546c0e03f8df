package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"stonetown/controlplane"
	"stonetown/identity/password/breached"
	"stonetown/internal/geo"
	"stonetown/internal/notify"
	"stonetown/internal/outbound"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

func testConfig(t *testing.T, path string, fill byte) Config {
	t.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{fill}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Database: sqldb.Config{URL: "sqlite://" + path}, MasterKey: key, Mail: notify.None{}, Texts: notify.None{},
		BreachedPasswords: breached.None{}, GeoIP: geo.None{}, Outbound: outbound.New(outbound.Config{}), Logger: slog.New(slog.DiscardHandler),
	}
}

// A server that lacks a dependency is refused.
func TestDependenciesAreRequired(t *testing.T) {
	for name, without := range map[string]func(*Config){
		"MasterKey": func(c *Config) { c.MasterKey = nil }, "Mail": func(c *Config) { c.Mail = nil }, "Texts": func(c *Config) { c.Texts = nil },
		"BreachedPasswords": func(c *Config) { c.BreachedPasswords = nil }, "GeoIP": func(c *Config) { c.GeoIP = nil },
		"Outbound": func(c *Config) { c.Outbound = nil }, "Logger": func(c *Config) { c.Logger = nil }, "Database": func(c *Config) { c.Database.URL = "" },
	} {
		c := testConfig(t, filepath.Join(t.TempDir(), "test.db"), 1)
		without(&c)
		if s, err := Open(t.Context(), c); err == nil {
			t.Errorf("a server without %s was opened", name)
			s.Close()
		}
	}
}

// A server opens, serves, runs its background work and closes; a second one finds its data, and
// only with the same master key.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s, err := Open(t.Context(), testConfig(t, path, 1))
	if err != nil {
		t.Fatal(err)
	}
	err = s.DB.Tx(t.Context(), func(tx *sqldb.Tx) error {
		org, err := s.Organizations.CreateOrganization(t.Context(), tx, "org", "Organisation")
		if err != nil {
			return err
		}
		_, err = s.Organizations.CreateTenant(t.Context(), tx, controlplane.NewTenant{OrgID: org.ID, Slug: "a", Name: "A", BaseURL: "https://a.test"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "https://a.test/.well-known/jwks.json", nil))
	if w.Code != 200 {
		t.Errorf("keys: %d %s", w.Code, w.Body)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	stop()
	running.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	if _, err := Open(t.Context(), testConfig(t, path, 2)); !errors.Is(err, seal.ErrWrongKey) {
		t.Errorf("with another master key: %v", err)
	}
	if s, err = Open(t.Context(), testConfig(t, path, 1)); err != nil { // the failure has released the database
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A server that is limited to some tenants refuses requests for others.
func TestServeRegions(t *testing.T) {
	c := testConfig(t, filepath.Join(t.TempDir(), "test.db"), 1)
	c.ControlURL, c.ServeRegions, c.ServeTenants = "https://control.test", []string{"eu"}, []string{"listed"}
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	err = s.DB.Tx(t.Context(), func(tx *sqldb.Tx) error {
		org, err := s.Organizations.CreateOrganization(t.Context(), tx, "org", "Organisation")
		for slug, region := range map[string]string{"near": "eu", "far": "us", "listed": "us", "nowhere": ""} {
			if err == nil {
				_, err = s.Organizations.CreateTenant(t.Context(), tx, controlplane.NewTenant{OrgID: org.ID, Slug: slug, Name: slug, Region: region, BaseURL: "https://" + slug + ".test"})
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"near": 200, "listed": 200, "control": 200, "far": 421, "nowhere": 421, "unknown": 404} {
		operation := "/api/v1/users"
		if host == "control" {
			operation = "/api/v1/organizations"
		}
		for path, served := range map[string]int{"/.well-known/jwks.json": 200, operation: 401} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest("GET", "https://"+host+".test"+path, nil))
			if want == 200 && w.Code != served || want != 200 && w.Code != want {
				t.Errorf("%s%s: %d %s", host, path, w.Code, w.Body)
			}
		}
	}
}
