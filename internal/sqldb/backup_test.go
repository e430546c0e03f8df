package sqldb

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"stonetown/internal/pgtest"
)

// A backup is one moment of a database that is being written.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	url := "sqlite://" + filepath.Join(dir, "test.db")
	db := open(t, url)
	accounts(t, db)
	exec(t, db, `INSERT INTO accounts (name, balance) VALUES ('a', 1000), ('b', 0)`)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			err := db.Tx(t.Context(), func(tx *Tx) error {
				_, err := tx.Exec(t.Context(), `UPDATE accounts SET balance = balance - 1 WHERE name = 'a'`)
				if err == nil {
					_, err = tx.Exec(t.Context(), `UPDATE accounts SET balance = balance + 1 WHERE name = 'b'`)
				}
				return err
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	reader, err := Open(t.Context(), Config{URL: url, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for i, from := range []*DB{db, reader, db, reader} {
		path := filepath.Join(dir, "backup"+string(rune('0'+i)))
		if err := from.Backup(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		backup := open(t, "sqlite://"+path)
		if err := backup.CheckIntegrity(t.Context()); err != nil {
			t.Error(err)
		}
		if a, b := balance(t, backup, "a"), balance(t, backup, "b"); a+b != 1000 {
			t.Errorf("%d and %d are of two moments", a, b)
		}
		exec(t, backup, `DELETE FROM accounts`) // it is a database of its own
	}
	close(stop)
	wg.Wait()
	if a, b := balance(t, db, "a"), balance(t, db, "b"); a+b != 1000 || b == 0 {
		t.Errorf("%d and %d", a, b)
	}

	path := filepath.Join(dir, "backup0")
	if err := db.Backup(t.Context(), path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file that exists: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("and then: %v", err)
	}
	if err := db.Backup(t.Context(), filepath.Join(dir, "none", "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("to a folder that does not exist: %v", err)
	}
	if err := open(t, pgtest.URL(t)).Backup(t.Context(), filepath.Join(dir, "pg")); !errors.Is(err, ErrNotEmbedded) {
		t.Errorf("of PostgreSQL: %v", err)
	}
}

func TestCheckIntegrity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := Open(t.Context(), Config{URL: "sqlite://" + path})
	if err != nil {
		t.Fatal(err)
	}
	accounts(t, db)
	for i := range 2000 {
		exec(t, db, `INSERT INTO accounts (name, balance) VALUES ($1, $2)`, string(rune('a'+i%26))+string(rune(0x4e00+i)), int64(i))
	}
	if err := errors.Join(db.CheckIntegrity(t.Context()), db.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(text) / 2; i < len(text)/2+3*4096; i++ {
		text[i] ^= 0x5a
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, "sqlite://"+path).CheckIntegrity(t.Context()); err == nil {
		t.Error("the damage was not found")
	}
}
