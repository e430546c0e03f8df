package engine_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/engine/internal/chunks"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
)

// saving returns the folder in which an engine has saved a tenant.
func saving(t *testing.T, store tuplestore.Store) (folder string) {
	t.Helper()
	folder = t.TempDir()
	w := &fixture{t, store, open(t, store, engine.Config{GraphFolder: folder, LeastSaved: 1})}
	w.define("team\n  member [user]\ndoc\n  viewer [user, team#member]")
	for i := range 300 {
		w.write(fmt.Sprintf("doc:%d#viewer@user:%d", i, i%7), fmt.Sprintf("team:g#member@user:%d", 1000+i), fmt.Sprintf("doc:%d#viewer@team:g#member", i))
	}
	w.resident()
	w.engine.Close()
	if n := len(files(t, folder)); n != 1 {
		t.Fatalf("%d files", n)
	}
	return folder
}

func files(t *testing.T, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// resident waits until the tenant is resident.
func (w *fixture) resident() engine.Stats {
	w.Helper()
	w.waitResident(request("user:3", "viewer", "doc:3"))
	return w.engine.Stats()
}

// A later engine reads the graph from its file, with what has been written since, renames
// included.
func TestGraphIsReadFromFile(t *testing.T) {
	for name, since := range map[string]func(w *fixture){
		"nothing": func(*fixture) {},
		"writes": func(w *fixture) {
			w.write("doc:3#viewer@user:77")
			w.remove("team:g#member@user:1003")
		},
		"types": func(w *fixture) {
			w.define("team\n  member [user]\ndoc\n  viewer [user, team#member]\n  owner [user]")
			w.write("doc:3#owner@user:77")
		},
		"renames": func(w *fixture) {
			w.apply(engine.TypesChange{Renames: []schema.Rename{{From: "doc", To: "paper"}}})
			w.write("team:g#member@user:78")
			w.apply(engine.TypesChange{Renames: []schema.Rename{{From: "paper", To: "doc"}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(memstore.Config{})
			t.Cleanup(func() { store.Close() })
			folder := saving(t, store)
			since(&fixture{t, store, open(t, store, engine.Config{})})

			w := &fixture{t, store, open(t, store, engine.Config{GraphFolder: folder, LeastSaved: 1, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})}
			if s := w.resident(); s.LoadsRestored != 1 || s.Loads != 0 {
				t.Fatalf("%d graphs read from files, %d loaded", s.LoadsRestored, s.Loads)
			}
			reads := w.engine.Stats().ColdReads
			w.allowed("user:77", "viewer", "doc:3", name == "writes")
			w.allowed("user:1003", "viewer", "doc:200", name != "writes")
			w.allowed("user:1004", "viewer", "doc:200", true)
			w.allowed("user:78", "viewer", "doc:200", name == "renames")
			w.write("doc:new#viewer@user:3")
			w.allowed("user:3", "viewer", "doc:new", true)
			if w.engine.Stats().ColdReads != reads {
				t.Error("answers came from the store")
			}
		})
	}
}

// A file that is damaged, of another history or of another version is ignored, with a line in the
// log, and replaced.
func TestFileIsIgnored(t *testing.T) {
	other := memstore.New(memstore.Config{})
	t.Cleanup(func() { other.Close() })
	ofOther := files(t, saving(t, other))[0]
	for name, damage := range map[string]func(content []byte) []byte{
		"damaged at the end":       func(c []byte) []byte { c[len(c)-20] ^= 4; return c },
		"damaged at the beginning": func(c []byte) []byte { c[3] ^= 4; return c },
		"incomplete":               func(c []byte) []byte { return c[:len(c)/2] },
		"empty":                    func([]byte) []byte { return nil },
		"of another version": func([]byte) []byte {
			var file bytes.Buffer
			w := chunks.NewWriter(&file)
			w.Text("stonetown graph 0")
			if err := w.End(); err != nil {
				t.Fatal(err)
			}
			return file.Bytes()
		},
		"of another history": func([]byte) []byte {
			c, err := os.ReadFile(ofOther)
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(memstore.Config{})
			t.Cleanup(func() { store.Close() })
			folder := saving(t, store)
			path := files(t, folder)[0]
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(content), 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			c := engine.Config{GraphFolder: folder, LeastSaved: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			w := &fixture{t, store, open(t, store, c)}
			if s := w.resident(); s.LoadsRestored != 0 || s.Loads != 1 {
				t.Fatalf("%d graphs read from files, %d loaded", s.LoadsRestored, s.Loads)
			}
			w.engine.Close()
			if !strings.Contains(log.String(), "is not used") {
				t.Errorf("log: %s", log.String())
			}
			w = &fixture{t, store, open(t, store, c)}
			if s := w.resident(); s.LoadsRestored != 1 {
				t.Error("the file was not replaced")
			}
		})
	}
}

// A graph that is far behind is loaded from the store, which takes less time.
func TestOldFileIsIgnored(t *testing.T) {
	store := memstore.New(memstore.Config{})
	t.Cleanup(func() { store.Close() })
	folder := saving(t, store)
	writer := &fixture{t, store, open(t, store, engine.Config{ResidentBytes: -1})}
	for i := range 10_500 {
		writer.write(fmt.Sprintf("doc:later%d#viewer@user:3", i))
	}
	w := &fixture{t, store, open(t, store, engine.Config{GraphFolder: folder, LeastSaved: 1})}
	if s := w.resident(); s.LoadsRestored != 0 || s.Loads != 1 {
		t.Errorf("%d graphs read from files, %d loaded", s.LoadsRestored, s.Loads)
	}
	w.allowed("user:3", "viewer", "doc:later10499", true)
}

// Files that cannot be used any more are removed, and no other files.
func TestFilesAreRemoved(t *testing.T) {
	store := memstore.New(memstore.Config{})
	t.Cleanup(func() { store.Close() })
	folder := saving(t, store)
	kept := files(t, folder)[0]
	other := memstore.New(memstore.Config{})
	t.Cleanup(func() { other.Close() })
	content, err := os.ReadFile(files(t, saving(t, other))[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string][]byte{"deleted.graph": content, "damaged.graph": content[:100], ".new-1": content, "notes": nil} {
		if err := os.WriteFile(filepath.Join(folder, name), c, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(folder, ".new-1"), time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	open(t, store, engine.Config{GraphFolder: folder, SaveEvery: 10 * time.Millisecond})
	for deadline := time.Now().Add(10 * time.Second); len(files(t, folder)) > 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("files: %v", files(t, folder))
		}
	}
	for _, path := range []string{kept, filepath.Join(folder, "notes")} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// A graph is saved again only if it has changed.
func TestUnchangedGraphIsNotSaved(t *testing.T) {
	store := memstore.New(memstore.Config{})
	t.Cleanup(func() { store.Close() })
	folder := saving(t, store)
	modified := func() time.Time {
		info, err := os.Stat(files(t, folder)[0])
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(files(t, folder)[0], time.Time{}, long); err != nil {
		t.Fatal(err)
	}
	c := engine.Config{GraphFolder: folder, LeastSaved: 1}
	w := &fixture{t, store, open(t, store, c)}
	w.resident()
	w.engine.Close()
	if m := modified(); !m.Equal(long) {
		t.Errorf("saved at %s although nothing changed", m)
	}
	w = &fixture{t, store, open(t, store, c)}
	w.resident()
	w.write("doc:3#viewer@user:77")
	w.allowed("user:77", "viewer", "doc:3", true)
	w.engine.Close()
	if m := modified(); m.Equal(long) {
		t.Error("not saved although a relation was written")
	}
}
