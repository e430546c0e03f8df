package enginetest

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
	"stonetown/tuplestore/sqlstore"
)

// backends open an empty store each.
var backends = map[string]func(t testing.TB) tuplestore.Store{
	"memory": func(t testing.TB) tuplestore.Store {
		s := memstore.New(memstore.Config{})
		t.Cleanup(func() { s.Close() })
		return s
	},
	"sqlite": func(t testing.TB) tuplestore.Store {
		return openSQL(t, "sqlite://"+filepath.Join(t.TempDir(), "test.db"))
	},
	"postgres": func(t testing.TB) tuplestore.Store {
		return openSQL(t, pgtest.URL(t))
	},
}

func openSQL(t testing.TB, url string) tuplestore.Store { return openWriter(t, url, nil) }

func openDatabase(t testing.TB, url string) *sqldb.DB {
	t.Helper()
	ctx := context.Background()
	db, err := sqldb.Open(ctx, sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(ctx, sqlstore.Migrations()); err != nil {
		t.Fatal(err)
	}
	return db
}

// temperatures are the states of a tenant: resident, in a mapped file, cold, in part, with so little
// memory that parts come and go, and moving between these, with a graph that is read from a file.
var temperatures = map[string]engine.Config{
	"resident": {},
	"mapped":   {ResidentBytes: 1, MappedBytes: 1 << 30},
	"cold":     {ResidentBytes: -1},
	"in part":  {ResidentBytes: 2 << 10},
	"moving":   {ResidentBytes: 8 << 10, IdleAfter: 20 * time.Millisecond, SaveEvery: 5 * time.Millisecond, LeastSaved: 1},
}

func newEngine(t testing.TB, c engine.Config, s tuplestore.Store) *engine.Engine {
	t.Helper()
	c.Store = s
	if c.SaveEvery > 0 || c.MappedBytes > 0 {
		c.GraphFolder = t.TempDir()
	}
	e, err := engine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// everywhere runs a test on every backend, at every temperature.
func everywhere(t *testing.T, test func(t *testing.T, e *engine.Engine, s tuplestore.Store)) {
	at(t, slices.Collect(maps.Keys(temperatures)), test)
}

// underLeases runs a test on PostgreSQL with read leases, on a resident tenant and on one that moves.
func underLeases(t *testing.T, test func(t *testing.T, e *engine.Engine)) {
	for _, temperature := range []string{"resident", "moving"} {
		t.Run("postgres, read leases/"+temperature, func(t *testing.T) {
			test(t, leased(t, temperatures[temperature]))
		})
	}
}

// residentAndCold runs a test on every backend, resident and cold. It is for questions about
// states other than the newest, to which what is kept in part does not apply.
func residentAndCold(t *testing.T, test func(t *testing.T, e *engine.Engine, s tuplestore.Store)) {
	at(t, []string{"resident", "cold"}, test)
}

func at(t *testing.T, which []string, test func(t *testing.T, e *engine.Engine, s tuplestore.Store)) {
	for backend, open := range backends {
		for _, temperature := range which {
			t.Run(backend+"/"+temperature, func(t *testing.T) {
				s := open(t)
				e := newEngine(t, temperatures[temperature], s)
				test(t, e, s)
				if temperature == "mapped" && e.Stats().Checks > 0 {
					awaitLoad(t, e)
				}
			})
		}
	}
}

// awaitLoad waits until an engine has loaded a tenant, which it does beside the first checks.
func awaitLoad(t *testing.T, e *engine.Engine) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); e.Stats().Loads == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no tenant was loaded: %+v", e.Stats())
		}
	}
}

func TestMain(m *testing.M) { pgtest.Main(m) }
