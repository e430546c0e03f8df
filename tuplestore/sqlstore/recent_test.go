package sqlstore

import (
	"fmt"
	"testing"

	"stonetown/tuplestore"
)

// The commits of a process that is the only writer are kept, and those of others are not.
func TestKnownChangesOfTheOnlyWriter(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := open(t, Config{DB: openDB(t, url)})
		if _, err := s.Write(t.Context(), "t", tuplestore.Write{Ops: []tuplestore.Op{creation("1", "ann")}}); err != nil {
			t.Fatal(err)
		}
		if commits, known := s.KnownChanges("t", 0); known != s.onlyWriter() {
			t.Errorf("known: %v, %+v", known, commits)
		}
	})
}

// The commits that are kept are the newest ones, of whichever tenant, and without gaps.
func TestRecentIsBounded(t *testing.T) {
	var r recent
	head := map[string]tuplestore.Revision{}
	commit := func(tenant string, changes int) {
		head[tenant]++
		r.add(tenant, []commitRow{{Commit: tuplestore.Commit{Revision: head[tenant], Changes: make([]tuplestore.Change, changes)}}})
	}
	kept := func(tenant string, want int) {
		t.Helper()
		for after := range head[tenant] {
			commits, ok := r.after(tenant, after)
			n := int(head[tenant] - after)
			if ok != (n <= want) {
				t.Fatalf("%s: the commits after %d of %d are known: %v, want the last %d", tenant, after, head[tenant], ok, want)
			}
			if ok && (len(commits) != n || commits[0].Revision != after+1) {
				t.Fatalf("%s: %d commits after %d of %d, the first %d", tenant, len(commits), after, head[tenant], commits[0].Revision)
			}
		}
	}
	for range recentCommits {
		commit("a", recentChanges)
	}
	kept("a", recentCommits)
	commit("a", 1)
	kept("a", recentCommits)
	for range 100 {
		commit("b", 1)
	}
	kept("a", recentCommits-100)
	kept("b", 100)

	// A large commit is a gap: what was before it is of no use.
	commit("b", recentChanges+1)
	kept("b", 0)
	commit("b", 1)
	kept("b", 1)
	for range 10 {
		commit("a", 1)
		commit("b", 1)
	}
	kept("b", 11)

	for i := range recentCommits {
		commit(fmt.Sprint(i), 1)
	}
	kept("a", 0)
	kept("b", 0)
	if n := len(r.commits); n != recentCommits {
		t.Errorf("%d tenants are kept, want %d", n, recentCommits)
	}
}
