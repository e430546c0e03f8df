package sqldb

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Migrations are the tables of one owner, as goose files named NNNNN_what.sql.
//
// Each file holds one idempotent DDL statement and the line
// "-- +goose NO TRANSACTION", for CockroachDB commits before each DDL
// statement and a file may be run again if the process died before noting it.
//
// The files at the root of FS are common. A folder named for a dialect (sqlite,
// postgres, cockroach) adds files for that dialect; one with the name of a
// common file replaces it.
//
// Processes of an older release may be using the tables while a file is applied, and may
// start afterwards. So a file only adds: a table, an index, a column that may be left out of
// an INSERT. Or it changes how PostgreSQL compresses a column. Later releases take away what no
// release in use needs any more; such a file, or any other with which older releases cannot
// work, has the next multiple of 1000 as its version, and so begins a generation. Until a release of
// that generation is in use, further files may do the same.
//
// SQLite cannot alter the form of a table, so a file in the folder sqlite may copy one, with the
// same columns in the same order: no other process uses that database.
type Migrations struct {
	Owner string // names the version table: goose_<owner>
	FS    fs.FS
}

// EmbeddedMigrations are those in the folder "migrations" of files. It panics if
// there is no such folder.
func EmbeddedMigrations(owner string, files embed.FS) Migrations {
	dir, err := fs.Sub(files, "migrations")
	if err == nil {
		_, err = fs.Stat(dir, ".")
	}
	if err != nil {
		panic("sqldb: " + owner + " embeds no migrations: " + err.Error())
	}
	return Migrations{Owner: owner, FS: dir}
}

// generation is how many versions are compatible: those with the same quotient.
const generation = 1000

// ErrNewer is returned by [DB.Migrate] if the tables are of a later generation.
var ErrNewer = errors.New("a newer release has upgraded the database, and this one cannot use it; run that release or a later one, or restore a backup from before the upgrade")

// Migrate brings the tables of each owner, in order, to their newest version.
// Processes that start together migrate one after the other. Later versions of the same
// generation are left as they are. With a later generation it changes nothing and fails
// with [ErrNewer].
func (db *DB) Migrate(ctx context.Context, all ...Migrations) error {
	all = slices.Clone(all)
	for i, m := range all {
		all[i].FS = overlay{common: m.FS, dialect: db.Dialect().String()}
	}
	if newest, ok := newestVersions(all); ok {
		// One statement for all owners, because nearly every start of a process finds nothing to do.
		stored, err := db.storedVersions(ctx, slices.Sorted(maps.Keys(newest)))
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		behind := false
		for _, m := range all {
			has, knows := stored[m.Owner], newest[m.Owner]
			if has/generation > knows/generation {
				return fmt.Errorf("%w (%s has version %d; this release knows %d)", ErrNewer, m.Owner, has, knows)
			}
			behind = behind || has < knows
		}
		if !behind {
			return nil
		}
	}
	return db.backend.migrate(ctx, all)
}

// newestVersions returns the newest version of each owner, and false if a file is not a migration.
func newestVersions(all []Migrations) (newest map[string]int64, ok bool) {
	newest = map[string]int64{}
	for _, m := range all {
		if m.FS.(overlay).common == nil {
			return nil, false
		}
		files, err := fs.Glob(m.FS, "*.sql")
		if err != nil || len(files) == 0 {
			return nil, false
		}
		for _, name := range files {
			version, err := goose.NumericComponent(name)
			if err != nil {
				return nil, false
			}
			newest[m.Owner] = max(newest[m.Owner], version)
		}
	}
	return newest, true
}

// storedVersions returns the versions of the tables of some owners; those without tables have none.
func (db *DB) storedVersions(ctx context.Context, owners []string) (map[string]int64, error) {
	stored, err := db.readVersions(ctx, owners)
	if err == nil {
		return stored, nil
	}
	// Some owners have no tables yet.
	query := `SELECT table_name, '' FROM information_schema.tables WHERE table_schema = current_schema() AND table_name LIKE $1`
	if db.Dialect() == SQLite {
		query = `SELECT name, '' FROM sqlite_master WHERE type = 'table' AND name LIKE $1`
	}
	var present []string
	err = db.catalog(ctx, func(table, _ string) error {
		if owner := strings.TrimPrefix(table, "goose_"); slices.Contains(owners, owner) {
			present = append(present, owner)
		}
		return nil
	}, query, "goose_%")
	if err != nil || len(present) == 0 {
		return nil, err
	}
	return db.readVersions(ctx, present)
}

func (db *DB) readVersions(ctx context.Context, owners []string) (map[string]int64, error) {
	parts := make([]string, len(owners))
	for i, owner := range owners {
		parts[i] = fmt.Sprintf("SELECT '%s', COALESCE(MAX(version_id), 0) FROM goose_%[1]s", owner)
	}
	rows, err := db.Query(ctx, strings.Join(parts, " UNION ALL "))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	stored := map[string]int64{}
	for rows.Next() {
		var owner string
		var version int64
		if err := rows.Scan(&owner, &version); err != nil {
			return nil, err
		}
		stored[owner] = version
	}
	return stored, rows.Err()
}

func (l *lite) migrate(ctx context.Context, all []Migrations) (err error) {
	if err := l.acquire(ctx); err != nil {
		return err
	}
	defer l.release()
	// Not every commit is synced: what a power failure undoes of the newest ones, the next start
	// does again, and the next commit that is synced follows all of them in the log.
	pool, err := openPool(l.path, 1, "synchronous(NORMAL)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	return up(ctx, goose.DialectSQLite3, pool, all)
}

func (pg *postgres) migrate(ctx context.Context, all []Migrations) (err error) {
	// A row in a table, because advisory locks do nothing on CockroachDB.
	locker, err := lock.NewPostgresTableLocker(
		lock.WithTableLockTimeout(200*time.Millisecond, 1500), // five minutes
	)
	if err != nil {
		return err
	}
	// Connections of its own: the lock holds one while the statements take
	// another, and the pool may be smaller than that.
	pool := stdlib.OpenDB(*pg.pool.Config().ConnConfig)
	defer func() { err = errors.Join(err, pool.Close()) }()
	return up(ctx, goose.DialectPostgres, pool, all, goose.WithLocker(locker))
}

func up(ctx context.Context, dialect goose.Dialect, pool *sql.DB, all []Migrations, options ...goose.ProviderOption) error {
	for _, m := range all {
		of := append(options[:len(options):len(options)], goose.WithTableName("goose_"+m.Owner), goose.WithDisableGlobalRegistry(true))
		provider, err := goose.NewProvider(dialect, pool, m.FS, of...)
		if err == nil {
			_, err = provider.Up(ctx)
		}
		if err != nil {
			return fmt.Errorf("migrate %s: %w", m.Owner, err)
		}
	}
	return nil
}

// overlay is the common folder with a dialect's folder laid over it.
type overlay struct {
	common  fs.FS
	dialect string
}

func (o overlay) Open(name string) (fs.File, error) {
	f, err := o.common.Open(o.dialect + "/" + name)
	if errors.Is(err, fs.ErrNotExist) || name == "." {
		if f != nil {
			_ = f.Close()
		}
		return o.common.Open(name)
	}
	return f, err
}

func (o overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	common, err := fs.ReadDir(o.common, name)
	if err != nil {
		return nil, err
	}
	own, err := fs.ReadDir(o.common, strings.TrimSuffix(o.dialect+"/"+name, "/."))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := append(own, common...)
	slices.SortStableFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return slices.CompactFunc(all, func(a, b fs.DirEntry) bool { return a.Name() == b.Name() }), nil
}
