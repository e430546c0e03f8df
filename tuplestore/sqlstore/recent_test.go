package sqlstore

import (
	"fmt"
	"testing"

	"stonetown/tuplestore"
)

// The commits that are kept are the newest ones, of whichever tenant, and without gaps.
func TestRecentIsBounded(t *testing.T) {
	var r recent
	head := map[string]tuplestore.Revision{}
	commit := func(tenant string, changes int) {
		head[tenant]++
		r.add(tenant, []commitRow{{Commit: tuplestore.Commit{Revision: head[tenant], Changes: make([]tuplestore.Change, changes)}}},
			tip{head: tuplestore.Head{Revision: head[tenant], Epoch: "e"}})
	}
	kept := func(tenant string, want int) {
		t.Helper()
		for after := range head[tenant] {
			commits, ok := r.after(tenant, "e", after)
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
		commit("a", recentChanges/recentCommits)
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
	commit("b", largestRecent+1)
	kept("b", 0)
	commit("b", 1)
	kept("b", 1)
	for range 10 {
		commit("a", 1)
		commit("b", 1)
	}
	kept("b", 11)

	// Large commits take the place of several.
	commit("a", largestRecent)
	commit("b", largestRecent)
	for range recentChanges/largestRecent - 2 {
		commit("a", largestRecent)
	}
	kept("a", recentChanges/largestRecent-1)
	kept("b", 1)

	// A revision of another process is a gap.
	head["a"]++
	commit("a", 1)
	kept("a", 1)

	for i := range recentCommits {
		commit(fmt.Sprint(i), 1)
	}
	kept("a", 0)
	kept("b", 0)
	if n := len(r.tenants); n != recentCommits {
		t.Errorf("%d tenants are kept, want %d", n, recentCommits)
	}
}
