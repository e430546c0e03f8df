package sqldb

import "testing"

// The URL of a file leads back to it.
func TestSQLiteURL(t *testing.T) {
	for _, path := range []string{"/var/lib/stonetown/stonetown.db", "/tmp/a b/100%/ü?#.db"} {
		url := SQLiteURL(path)
		got, ok, err := SQLitePath(url)
		if got != path || !ok || err != nil {
			t.Errorf("%s is the URL of %q, and leads to %q, %v, %v", url, path, got, ok, err)
		}
	}
	if got, want := urlPath("C:/data/stonetown.db"), "/C:/data/stonetown.db"; got != want {
		t.Errorf("a path with a drive letter is %q in a URL, want %q", got, want)
	}
}
