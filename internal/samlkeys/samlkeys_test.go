package samlkeys

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stonetown/internal/eventlog"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/internal/sqldb/sqltest"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const day = 24 * time.Hour

// fixture is a database with the stores of two processes.
type fixture struct {
	*testing.T
	db     *sqldb.DB
	stores [2]*Store

	mu sync.Mutex
	at time.Time
}

func (f *fixture) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

func (f *fixture) later(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = f.at.Add(d)
}

// store returns the store of another process, with the master key of a number.
func (f *fixture) store(master byte) *Store {
	f.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{master}, seal.KeySize))
	if err != nil {
		f.Fatal(err)
	}
	return NewStore(Config{DB: f.db, Seal: key, Clock: f.now, Logger: slog.New(slog.NewTextHandler(noErrors{f.T}, nil))})
}

func everywhere(t *testing.T, test func(f *fixture)) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"PostgreSQL": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			if err := db.Migrate(t.Context(), eventlog.Migrations(), sqlstore.Migrations(), Migrations()); err != nil {
				t.Fatal(err)
			}
			f := &fixture{T: t, db: db, at: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}
			f.stores = [2]*Store{f.store(1), f.store(1)}
			test(f)
		})
	}
}

func (f *fixture) keys(s *Store, use Use) []Key {
	f.Helper()
	keys, err := s.Keys(f.Context(), "t", use)
	if err != nil {
		f.Fatal(err)
	}
	return keys
}

// states returns the states of the keys of a use.
func (f *fixture) states(use Use) (states []State) {
	f.Helper()
	all, err := f.stores[0].List(f.Context(), "t")
	if err != nil {
		f.Fatal(err)
	}
	for _, k := range all {
		if k.Use == use {
			states = append(states, k.State)
		}
	}
	return states
}

func (f *fixture) want(states ...State) {
	f.Helper()
	if got := f.states(IdentityProvider); !slices.Equal(got, states) {
		f.Errorf("states %v, want %v", got, states)
	}
}

// together runs a function many times at once, on both processes.
func (f *fixture) together(do func(s *Store) error) {
	f.Helper()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			if err := do(f.stores[i%2]); err != nil {
				f.Error(err)
			}
		})
	}
	all.Wait()
}

// The first key of a use is made once, and is complete.
func TestFirstKey(t *testing.T) {
	everywhere(t, func(f *fixture) {
		var mu sync.Mutex
		ids := map[string]bool{}
		f.together(func(s *Store) error {
			keys, err := s.Keys(f.Context(), "t", IdentityProvider)
			mu.Lock()
			defer mu.Unlock()
			for _, k := range keys {
				ids[k.ID] = true
			}
			return err
		})
		if len(ids) != 1 {
			f.Fatalf("%d keys were made", len(ids))
		}
		f.want(Active)
		k := f.keys(f.stores[1], IdentityProvider)[0]
		if err := k.Certificate.CheckSignature(k.Certificate.SignatureAlgorithm, k.Certificate.RawTBSCertificate, k.Certificate.Signature); err != nil {
			f.Errorf("not self-signed: %v", err)
		}
		if k.Private.N.BitLen() != keyBits || k.Certificate.Subject.CommonName != "t" || k.Certificate.IsCA ||
			!k.Certificate.NotAfter.Equal(f.now().AddDate(3, 0, 0)) || !k.Certificate.NotBefore.Before(f.now()) {
			f.Errorf("%d bits, %+v", k.Private.N.BitLen(), k.Certificate)
		}
		other := f.keys(f.stores[0], ServiceProvider)
		foreign, err := f.stores[0].Keys(f.Context(), "another", IdentityProvider)
		if err != nil || other[0].ID == k.ID || foreign[0].ID == k.ID {
			f.Errorf("a key is shared between uses or tenants, or: %v", err)
		}
	})
}

// A private key opens with its master key, for its tenant, and with its certificate only.
func TestPrivateKeysAreSealed(t *testing.T) {
	everywhere(t, func(f *fixture) {
		f.keys(f.stores[0], IdentityProvider)
		f.keys(f.stores[0], ServiceProvider)
		if _, err := f.store(2).Keys(f.Context(), "t", IdentityProvider); !errors.Is(err, seal.ErrWrongKey) {
			f.Errorf("with another master key: %v, want ErrWrongKey", err)
		}
		exec := func(sql string) {
			f.Helper()
			if _, err := f.db.Exec(f.Context(), sql); err != nil {
				f.Fatal(err)
			}
		}
		exec(`UPDATE saml_keys SET certificate = (SELECT o.certificate FROM saml_keys o WHERE o.key_use = 'service_provider') WHERE key_use = 'identity_provider'`)
		if _, err := f.store(1).Keys(f.Context(), "t", IdentityProvider); err == nil {
			f.Error("a key was accepted with the certificate of another")
		}
		exec(`UPDATE saml_keys SET tenant_id = 'u'`)
		if _, err := f.store(1).Keys(f.Context(), "u", ServiceProvider); !errors.Is(err, seal.ErrCorrupt) || strings.Contains(err.Error(), "PRIVATE") {
			f.Errorf("key of another tenant: %v, want ErrCorrupt", err)
		}
	})
}

// A requested rotation publishes the next key, and both processes take the later steps.
func TestRotation(t *testing.T) {
	everywhere(t, func(f *fixture) {
		for _, s := range f.stores {
			f.keys(s, IdentityProvider)
		}
		first := f.keys(f.stores[0], IdentityProvider)[0].ID
		ask := func(emergency bool) func(*Store) error {
			return func(s *Store) error {
				_, err := s.Rotate(f.Context(), "t", IdentityProvider, emergency)
				return err
			}
		}
		upkeep := func(s *Store) error { return s.RotateDue(f.Context()) }

		f.together(ask(false))
		f.want(Active, Next)
		f.later(publishedFor - 1)
		f.together(upkeep)
		f.want(Active, Next)
		for _, s := range f.stores { // after the time in the cache
			if keys := f.keys(s, IdentityProvider); len(keys) != 2 || keys[0].ID != first || keys[1].Private == nil {
				f.Errorf("%+v", keys)
			}
		}
		next := f.keys(f.stores[0], IdentityProvider)[1].ID
		f.later(1)
		f.together(upkeep)
		f.want(Active, Retired)
		f.later(cacheFor)
		for _, s := range f.stores {
			if keys := f.keys(s, IdentityProvider); keys[0].ID != next || keys[1].ID != first || keys[1].Private == nil {
				f.Errorf("%+v", keys)
			}
		}
		f.later(retiredFor)
		f.together(upkeep)
		f.want(Active)

		f.together(ask(false))
		if err := ask(true)(f.stores[0]); err != nil {
			f.Fatal(err)
		}
		f.want(Active)
		if id := f.keys(f.stores[0], IdentityProvider)[0].ID; id == next {
			f.Error("the key from before an emergency signs")
		}

		log, err := eventlog.Open(eventlog.Config{DB: f.db})
		if err != nil {
			f.Fatal(err)
		}
		events, err := log.Read(f.Context(), "t", 0, 100)
		if err != nil {
			f.Fatal(err)
		}
		var got []string
		for _, e := range events {
			var data struct {
				Emergency    bool
				Certificates []struct{ State State } `json:"saml_certificates"`
			}
			if err := json.Unmarshal(e.Data, &data); err != nil || e.Type != eventlog.TenantSAMLCertificateRotated {
				f.Fatalf("%s: %s, %v", e.Type, e.Data, err)
			}
			got = append(got, fmt.Sprint(data.Emergency, data.Certificates))
		}
		want := []string{"false [{next}]", "false [{retired} {active}]", "false [{removed}]", "false [{next}]", "true [{removed} {removed} {active}]"}
		if diff := cmp.Diff(want, got); diff != "" {
			f.Error(diff)
		}
	})
}

// Run replaces a certificate before its end.
func TestRun(t *testing.T) {
	everywhere(t, func(f *fixture) {
		f.keys(f.stores[0], IdentityProvider)
		f.later(3*365*day - renewedBefore + day)
		var loop sync.WaitGroup
		ctx, stop := context.WithCancel(f.Context())
		defer func() { stop(); loop.Wait() }()
		loop.Go(func() { f.stores[0].Run(ctx) })
		for end := time.Now().Add(20 * time.Second); len(f.states(IdentityProvider)) < 2; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				f.Fatal("no certificate is replaced")
			}
		}
	})
}

// A key's life, told by the plans alone.
func TestPlans(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	until := func(d time.Duration) *x509.Certificate { return &x509.Certificate{NotAfter: now.Add(d)} }
	active := Key{ID: "a", State: Active, Certificate: until(400 * day)}
	ending := Key{ID: "a", State: Active, Certificate: until(60 * day)}
	next := func(since time.Duration) Key {
		return Key{ID: "n", State: Next, CreatedAt: now.Add(-since), Certificate: until(999 * day)}
	}
	retired := func(since time.Duration) Key {
		return Key{ID: "r", State: Retired, RetiredAt: now.Add(-since), Certificate: until(50 * day)}
	}
	for name, tc := range map[string]struct {
		by   plan
		keys []Key
		want []step
	}{
		"the first":               {due, nil, []step{{"", Active}}},
		"new":                     {due, []Key{active}, nil},
		"before a successor":      {due, []Key{{ID: "a", State: Active, Certificate: until(60*day + 1)}}, nil},
		"a successor":             {due, []Key{ending}, []step{{"", Next}}},
		"a successor is there":    {due, []Key{ending, next(day)}, nil},
		"to sign":                 {due, []Key{ending, next(7 * day)}, []step{{"a", Retired}, {"n", Active}}},
		"published while retired": {due, []Key{active, retired(7*day - 1)}, nil},
		"to remove":               {due, []Key{active, retired(7 * day)}, []step{{"r", Removed}}},
		"requested":               {succeed, []Key{active, retired(0)}, []step{{"", Next}}},
		"requested again":         {succeed, []Key{active, next(0)}, nil},
		"requested without any":   {succeed, nil, []step{{"", Active}}},
		"an emergency":            {replace, []Key{active, next(0), retired(0)}, []step{{"a", Removed}, {"n", Removed}, {"r", Removed}, {"", Active}}},
	} {
		if diff := cmp.Diff(tc.want, tc.by(tc.keys, now), cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What has to hold at any time, whenever the steps are taken and rotations are requested.
func TestLivesOfKeys(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var keys []Key
	for made := 0; made < 500; now = now.Add(rand.N(day)) {
		by := plan(due)
		if rand.IntN(300) == 0 {
			by = succeed
		}
		for _, s := range by(keys, now) {
			if s.id == "" {
				made++
				k := Key{ID: fmt.Sprint(made), CreatedAt: now, Certificate: &x509.Certificate{NotAfter: now.AddDate(validYears, 0, 0)}}
				keys = append(keys, k.enter(s.to, now))
				continue
			}
			i := slices.IndexFunc(keys, func(k Key) bool { return k.ID == s.id })
			if s.to == Removed {
				if now.Sub(keys[i].RetiredAt) < retiredFor {
					t.Fatalf("removed too early: %+v", keys[i])
				}
				keys = slices.Delete(keys, i, i+1)
				continue
			}
			keys[i] = keys[i].enter(s.to, now)
		}
		count := map[State]int{}
		for _, k := range keys {
			count[k.State]++
			switch {
			case k.State == Active && k.ID != "1" && k.ActivatedAt.Sub(k.CreatedAt) < publishedFor:
				t.Fatalf("published too shortly: %+v", k)
			case k.State == Active && now.After(k.Certificate.NotAfter.Add(-50*day)):
				t.Fatalf("signs for too long: %+v", k)
			}
		}
		if len(keys) > 0 && count[Active] != 1 || count[Next] > 1 {
			t.Fatal(count)
		}
	}
}

// The statements use indexes.
func TestPlansUseIndexes(t *testing.T) {
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: pgtest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), Migrations()); err != nil {
		t.Fatal(err)
	}
	fill := `INSERT INTO saml_keys SELECT 't' || (g % 50), 'identity_provider', 'k' || g, 'retired', 'x', 'x', g, g, g, g FROM generate_series(1, 20000) g`
	for _, statement := range []string{fill, `ANALYZE saml_keys`} {
		if _, err := db.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		statement string
		args      []any
		index     string
	}{
		{selectUse, []any{"t1", "identity_provider"}, "saml_keys_pkey"},
		{deleteKey, []any{"t1", "identity_provider", "k1"}, "saml_keys_pkey"},
		{selectOwed, []any{int64(5)}, "saml_keys_due"},
	} {
		sqltest.UsesIndex(t, db, tc.index, tc.statement, tc.args...)
	}
}

// noErrors fails a test when something is logged.
type noErrors struct{ *testing.T }

func (f noErrors) Write(line []byte) (int, error) {
	f.Errorf("logged: %s", line)
	return len(line), nil
}
