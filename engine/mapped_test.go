//go:build unix

package engine_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
)

// inFile waits until the tenant is in a mapped file.
func (w *fixture) inFile() {
	w.Helper()
	w.waitResident(request("user:3", "viewer", "doc:3"))
	for deadline := time.Now().Add(10 * time.Second); w.engine.Stats().MappedBytes == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("no mapped file: %+v", w.engine.Stats())
		}
	}
}

// fill defines types and writes 600 relations.
func (w *fixture) fill() {
	w.define("team\n  member [user]\ndoc\n  viewer [user, team#member]\n  when open(x bool): x")
	for i := range 300 {
		w.write(fmt.Sprintf("doc:%d#viewer@user:%d", i, i%7), fmt.Sprintf("team:g#member@user:%d", 1000+i))
	}
	w.write("doc:9#viewer@team:g#member", "doc:10#viewer@user:old when open", "doc:10#viewer@user:older when open")
}

// A tenant that does not fit into memory is in a mapped file, from which checks and lists are
// answered, and which the changelog moves forward.
func TestTenantInMappedFile(t *testing.T) {
	folder := t.TempDir()
	w := newFixture(t, engine.Config{ResidentBytes: 1000, GraphFolder: folder})
	w.fill()
	w.inFile()
	reads := w.engine.Stats().ColdReads
	w.allowed("user:2", "viewer", "doc:2", true)
	w.allowed("user:1200", "viewer", "doc:9", true)
	w.allowed("user:1200", "viewer", "doc:10", false)
	w.write("team:g#member@user:new")
	w.allowed("user:new", "viewer", "doc:9", true)
	if err := w.remove("team:g#member@user:new"); err != nil {
		t.Fatal(err)
	}
	w.allowed("user:new", "viewer", "doc:9", false)
	page, err := w.engine.ListResources(t.Context(), tenant, engine.ListResourcesRequest{
		Subject: tuplestore.Subject{Type: "user", ID: "1200"}, Type: "doc", Action: "viewer", Limit: 10,
	})
	if err != nil || !slices.Equal(page.IDs, []string{"9"}) {
		t.Errorf("list %v %v", page, err)
	}
	_, err = w.engine.Check(t.Context(), tenant, request("user:old", "viewer", "doc:10"))
	if s := w.engine.Stats(); s.ColdReads != reads || s.ResidentBytes != 0 || s.MappedBytes == 0 {
		t.Errorf("%d reads, %+v, %v", s.ColdReads-reads, s, err)
	}
	if names, err := os.ReadDir(folder); err != nil || len(names) > 0 {
		t.Errorf("%d files with a name, %v", len(names), err)
	}
}

// What a request has got from a graph in a mapped file holds when the file is gone.
func TestResultsOutliveMappedFile(t *testing.T) {
	w := newFixture(t, engine.Config{ResidentBytes: 1000, GraphFolder: t.TempDir(), IdleAfter: 20 * time.Millisecond})
	w.fill()
	w.inFile()
	ctx := t.Context()
	page, err := w.engine.ListResources(ctx, tenant, engine.ListResourcesRequest{
		Subject: tuplestore.Subject{Type: "user", ID: "3"}, Type: "doc", Action: "viewer", Limit: 1000,
	})
	if err != nil || len(page.IDs) != 43 {
		t.Fatalf("%v %v", page, err)
	}
	for w.engine.Stats().MappedBytes > 0 {
		time.Sleep(time.Millisecond)
	}
	for range 3 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	for _, id := range page.IDs {
		if n, err := strconv.Atoi(id); err != nil || n%7 != 3 {
			t.Errorf("%q is in the list", id)
		}
	}
}

// A mapped tenant is loaded into memory when there is room for it.
func TestMappedTenantGoesToMemory(t *testing.T) {
	w := newFixture(t, engine.Config{ResidentBytes: 120_000, GraphFolder: t.TempDir()})
	w.fill()
	for i := range 1000 {
		w.write(fmt.Sprintf("team:g#member@user:x%d", i))
	}
	w.inFile()
	for i := range 1000 {
		if err := w.remove(fmt.Sprintf("team:g#member@user:x%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		w.allowed("user:2", "viewer", "doc:2", true)
		if s := w.engine.Stats(); s.ResidentBytes > 0 && s.MappedBytes == 0 {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%+v", s)
		}
	}
}

// Mapped files take no more than they may.
func TestMappedFilesAreBounded(t *testing.T) {
	w := newFixture(t, engine.Config{ResidentBytes: 1000, MappedBytes: 1000, GraphFolder: t.TempDir()})
	w.fill()
	for deadline := time.Now().Add(20 * time.Second); w.engine.Stats().LoadsTooLarge < 2; time.Sleep(time.Millisecond) {
		w.allowed("user:2", "viewer", "doc:2", true)
		if time.Now().After(deadline) {
			t.Fatalf("%+v", w.engine.Stats())
		}
	}
	if s := w.engine.Stats(); s.MappedBytes != 0 || s.ResidentBytes != 0 {
		t.Errorf("%+v", s)
	}
}

// A mapped graph is saved as one in memory is, and a later engine reads it to a mapped file.
func TestMappedGraphIsSaved(t *testing.T) {
	store := memstore.New(memstore.Config{})
	t.Cleanup(func() { store.Close() })
	config := engine.Config{ResidentBytes: 1000, GraphFolder: t.TempDir(), LeastSaved: 1}
	w := &fixture{t, store, open(t, store, config)}
	w.fill()
	w.inFile()
	w.engine.Close()
	w = &fixture{t, store, open(t, store, config)}
	w.inFile()
	if s := w.engine.Stats(); s.LoadsRestored != 1 || s.Loads != 0 {
		t.Errorf("%+v", s)
	}
	reads := w.engine.Stats().ColdReads
	w.allowed("user:1200", "viewer", "doc:9", true)
	w.allowed("user:1200", "viewer", "doc:10", false)
	if n := w.engine.Stats().ColdReads - reads; n > 0 {
		t.Errorf("%d reads", n)
	}
}
