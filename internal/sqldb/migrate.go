package sqldb

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
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

// Migrate brings the tables of each owner, in order, to their newest version.
// Processes that start together migrate one after the other.
func (db *DB) Migrate(ctx context.Context, all ...Migrations) error {
	all = slices.Clone(all)
	for i, m := range all {
		all[i].FS = overlay{common: m.FS, dialect: db.Dialect().String()}
	}
	if db.isNewest(ctx, all) {
		return nil
	}
	return db.backend.migrate(ctx, all)
}

// isNewest reports whether all tables have their newest version. It asks for all owners at once,
// because nearly every start of a process finds it so. If it cannot tell, as before the first
// migration, the answer is no.
func (db *DB) isNewest(ctx context.Context, all []Migrations) bool {
	newest := map[string]int64{}
	var parts []string
	for _, m := range all {
		if m.FS.(overlay).common == nil {
			return false
		}
		files, err := fs.Glob(m.FS, "*.sql")
		if err != nil || len(files) == 0 {
			return false
		}
		for _, name := range files {
			version, err := goose.NumericComponent(name)
			if err != nil {
				return false
			}
			newest[m.Owner] = max(newest[m.Owner], version)
		}
		parts = append(parts, fmt.Sprintf("SELECT '%s', MAX(version_id) FROM goose_%[1]s", m.Owner))
	}
	rows, err := db.Query(ctx, strings.Join(parts, " UNION ALL "))
	if err != nil {
		return false
	}
	defer rows.Close()
	for rows.Next() {
		var owner string
		var version int64
		if err := rows.Scan(&owner, &version); err != nil || version != newest[owner] {
			return false
		}
		delete(newest, owner)
	}
	return rows.Err() == nil && len(newest) == 0
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
