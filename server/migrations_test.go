package server

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// generation is that of package sqldb.
const generation = 1000

// A migration of the generation of the newest picture of a release, and after it, only adds to the
// tables, changes how PostgreSQL compresses a column, or copies a table of SQLite into another form.
func TestMigrationsAdd(t *testing.T) {
	released := newestPicture(t)
	checked := 0
	for _, m := range migrations() {
		err := fs.WalkDir(m.FS, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || path.Ext(name) != ".sql" {
				return err
			}
			number, _, _ := strings.Cut(path.Base(name), "_")
			version, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return err
			}
			text, err := fs.ReadFile(m.FS, name)
			if err != nil {
				return err
			}
			checked++
			dialect := path.Dir(name)
			compatible := adds(string(text)) || dialect == "sqlite" && replaces(string(text)) || dialect == "postgres" && compresses(string(text))
			if version > released[m.Owner] && version/generation == released[m.Owner]/generation && !compatible {
				t.Errorf("%s/%s does more than add to the tables, so its version must be the next multiple of %d", m.Owner, name, generation)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if checked < 100 || released["oauth"] == 0 {
		t.Errorf("only %d migrations; the picture has %v", checked, released)
	}
}

var (
	comment     = regexp.MustCompile(`(?m)--.*$`)
	addition    = regexp.MustCompile(`^(CREATE TABLE|CREATE INDEX|UPDATE|ALTER TABLE \S+ SET \() ?`)
	alteration  = regexp.MustCompile(`^ALTER TABLE \S+ (.*)$`)
	addedColumn = regexp.MustCompile(`^ADD COLUMN (IF NOT EXISTS )?\w+ \w+( (NOT NULL )?DEFAULT \S+)?$`)
	compression = regexp.MustCompile(`^DO \$\$\s+BEGIN\s+EXECUTE 'ALTER TABLE \w+( ALTER COLUMN \w+ SET COMPRESSION lz4,?)+';\s+EXCEPTION\s+WHEN feature_not_supported OR syntax_error THEN NULL;\s+END\s+\$\$;$`)
	replacement = regexp.MustCompile(`^CREATE TABLE (\w+)_copy \([^;]*;\s*INSERT INTO (\w+)_copy SELECT \* FROM (\w+);\s*DROP TABLE (\w+);\s*ALTER TABLE (\w+)_copy RENAME TO (\w+);$`)
)

// compresses reports whether a migration changes nothing but how columns are compressed, if the server
// can do so.
func compresses(migration string) bool {
	return compression.MatchString(strings.TrimSpace(comment.ReplaceAllString(migration, "")))
}

func TestCompresses(t *testing.T) {
	const before, after = "-- +goose Up\n-- +goose StatementBegin\nDO $$\nBEGIN\n    EXECUTE '", "';\nEXCEPTION\n    WHEN feature_not_supported OR syntax_error THEN NULL;\nEND\n$$;\n-- +goose StatementEnd\n"
	for sql, want := range map[string]bool{
		before + "ALTER TABLE a ALTER COLUMN b SET COMPRESSION lz4" + after:                                     true,
		before + "ALTER TABLE a ALTER COLUMN b SET COMPRESSION lz4, ALTER COLUMN c SET COMPRESSION lz4" + after: true,
		before + "ALTER TABLE a ALTER COLUMN b SET COMPRESSION lz4, DROP COLUMN c" + after:                      false,
		before + "ALTER TABLE a ALTER COLUMN b SET NOT NULL" + after:                                            false,
		before + "ALTER TABLE a ALTER COLUMN b SET COMPRESSION lz4" + after + "DROP TABLE a;":                   false,
		before + "ALTER TABLE a ALTER COLUMN b SET COMPRESSION lz4'; EXECUTE 'DROP TABLE a" + after:             false,
	} {
		if compresses(sql) != want {
			t.Errorf("%s: %t, want %t", sql, !want, want)
		}
	}
}

// adds reports whether a migration only adds to the tables: the release before can still use them, and
// leaves out the new columns of rows that it writes. An index that is unique can refuse these rows.
func adds(migration string) bool {
	sql := strings.TrimSuffix(strings.TrimSpace(comment.ReplaceAllString(migration, "")), ";")
	for statement := range strings.SplitSeq(sql, ";") {
		statement = strings.Join(strings.Fields(statement), " ")
		if addition.MatchString(statement) {
			continue
		}
		altered := alteration.FindStringSubmatch(statement)
		if altered == nil {
			return false
		}
		for change := range strings.SplitSeq(altered[1], ", ") {
			if !addedColumn.MatchString(change) {
				return false
			}
		}
	}
	return true
}

// replaces reports whether a migration copies a table into another form: the statement that copies the
// rows fails if the number of columns is not the same. SQLite cannot alter the form, and no other
// process uses its tables meanwhile.
func replaces(migration string) bool {
	tables := replacement.FindStringSubmatch(strings.TrimSpace(comment.ReplaceAllString(migration, "")))
	return tables != nil && len(slices.Compact(tables[1:])) == 1
}

func TestReplaces(t *testing.T) {
	for sql, want := range map[string]bool{
		"-- +goose Up\nCREATE TABLE a_copy (\n    b TEXT\n);\nINSERT INTO a_copy SELECT * FROM a;\nDROP TABLE a;\nALTER TABLE a_copy RENAME TO a;": true,
		"CREATE TABLE a_copy (b TEXT); INSERT INTO a_copy SELECT * FROM a; DROP TABLE b; ALTER TABLE a_copy RENAME TO a;":                          false,
		"CREATE TABLE a_copy (b TEXT); INSERT INTO a_copy SELECT b FROM a; DROP TABLE a; ALTER TABLE a_copy RENAME TO a;":                          false,
		"CREATE TABLE a_copy (b TEXT); INSERT INTO a_copy SELECT * FROM a; DROP TABLE a; ALTER TABLE a_copy RENAME TO c;":                          false,
		"CREATE TABLE a_copy (b TEXT); INSERT INTO a_copy SELECT * FROM a; DROP TABLE a; ALTER TABLE a_copy RENAME TO a; DROP TABLE c;":            false,
		"CREATE TABLE a_copy (b TEXT); DROP INDEX c; INSERT INTO a_copy SELECT * FROM a; DROP TABLE a; ALTER TABLE a_copy RENAME TO a;":            false,
	} {
		if replaces(sql) != want {
			t.Errorf("%s: %t, want %t", sql, !want, want)
		}
	}
}

func TestAdds(t *testing.T) {
	for sql, want := range map[string]bool{
		"-- +goose NO TRANSACTION\n-- +goose Up\nCREATE TABLE IF NOT EXISTS a (b TEXT PRIMARY KEY, UNIQUE (b));": true,
		"CREATE TABLE a (b TEXT -- of c; empty: none\n);":                                                        true,
		"CREATE INDEX IF NOT EXISTS a ON b (c) WHERE d <> '';":                                                   true,
		"ALTER TABLE a ADD COLUMN b TEXT NOT NULL DEFAULT '';":                                                   true,
		"ALTER TABLE a ADD COLUMN b TEXT;\nALTER TABLE a ADD COLUMN c BIGINT DEFAULT 1;":                         true,
		"ALTER TABLE a\n    ADD COLUMN IF NOT EXISTS b TEXT NOT NULL DEFAULT '',\n    ADD COLUMN c TEXT;":        true,
		"UPDATE a SET b = 1 WHERE b = 0;":                                                                        true,
		"ALTER TABLE a SET (fillfactor = 50)":                                                                    true,
		"ALTER TABLE a ADD COLUMN b TEXT NOT NULL;":                                                              false,
		"ALTER TABLE a DROP COLUMN b;":                                                                           false,
		"ALTER TABLE a ADD COLUMN b TEXT, DROP COLUMN c;":                                                        false,
		"ALTER TABLE a RENAME COLUMN b TO c;":                                                                    false,
		"CREATE UNIQUE INDEX a ON b (c);":                                                                        false,
		"DROP TABLE a;":                                                                                          false,
		"DROP INDEX a;":                                                                                          false,
		"DELETE FROM a;":                                                                                         false,
		"CREATE TABLE a (b TEXT); DROP TABLE c;":                                                                 false,
		"ALTER TABLE a ALTER COLUMN b SET NOT NULL":                                                              false,
		"ALTER TABLE a ADD CONSTRAINT b CHECK (c > 0)":                                                           false,
		"ALTER TABLE a ADD COLUMN b TEXT NOT NULL DEFAULT '', ADD CONSTRAINT c d e":                              false,
	} {
		if adds(sql) != want {
			t.Errorf("%s: %t, want %t", sql, !want, want)
		}
	}
}

// newestPicture returns the versions of all owners in the newest picture of a release.
func newestPicture(t *testing.T) map[string]int64 {
	t.Helper()
	files, err := filepath.Glob("../cmd/stonetown/testdata/schemas/*/sqlite.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no pictures: %v", err)
	}
	newest, at := "", time.Time{}
	for _, file := range files {
		var made struct{ At time.Time }
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &made)
		}
		if err != nil {
			t.Fatal(err)
		}
		if made.At.After(at) {
			newest, at = file, made.At
		}
	}
	statements, err := os.ReadFile(filepath.Join(filepath.Dir(newest), "sqlite.sql"))
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]int64{}
	for _, row := range regexp.MustCompile(`INSERT INTO goose_(\w+) VALUES \(\d+,(\d+),`).FindAllStringSubmatch(string(statements), -1) {
		version, err := strconv.ParseInt(row[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		versions[row[1]] = max(versions[row[1]], version)
	}
	return versions
}
