package sqldb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrNotEmbedded is returned by functions that only a SQLite database supports.
var ErrNotEmbedded = errors.New("only an embedded database (SQLite) can do this; PostgreSQL and CockroachDB have tools of their own")

// Backup writes the database as it is at this moment to a new file that only its
// owner can read, and returns after the file is on disk. Readers and the writer go
// on meanwhile, in this process or another. It fails with [ErrNotEmbedded], or if
// the file exists; after an error there is no file.
func (db *DB) Backup(ctx context.Context, path string) error {
	l, ok := db.backend.(*traced).backend.(*lite)
	if !ok {
		return ErrNotEmbedded
	}
	if err := l.backup(ctx, path); err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	return nil
}

func (l *lite) backup(ctx context.Context, path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	pool, err := openPool(l.path, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	// SQLite takes the file because it is empty. It reads in one transaction.
	if _, err := pool.ExecContext(ctx, `VACUUM INTO ?`, path); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes sure that the names in a folder are on disk.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// CheckIntegrity reads all of an embedded database and reports damage. It fails with
// [ErrNotEmbedded].
func (db *DB) CheckIntegrity(ctx context.Context) error {
	if db.Dialect() != SQLite {
		return ErrNotEmbedded
	}
	rows, err := db.Query(ctx, `PRAGMA integrity_check(1)`)
	if err != nil {
		return fmt.Errorf("the database is damaged: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var found string
		if err := rows.Scan(&found); err != nil {
			return err
		}
		if found != "ok" {
			return fmt.Errorf("the database is damaged: %s", found)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("the database is damaged: %w", err)
	}
	return nil
}
