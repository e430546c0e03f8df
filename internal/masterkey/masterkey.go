// Package masterkey rotates the master key of a deployment while it is in service.
//
// A file of master keys has one key on each line (internal/seal). The first one seals, and all of
// them open. A rotation takes three files, each of which every process has read before the next
// one is written:
//
//	old        the state before
//	old, new   every process can open what others will seal under the new key
//	new, old   the processes seal under the new key, and seal again what is sealed under the old one
//	new        nothing is left under the old key, which is retired and refused from now on
//
// The table master_keys has the keys under which processes have sealed, in the order in which they
// became the first one. A process compares its file with the table when it starts ([Open]), so a
// file that lacks a key in use, or has a retired one first, is refused before it can do harm.
//
// Sealing again ([Rotation]) is a pass over all columns of sealed values. It replaces a value only
// if it is still the one that was read, so it may run beside everything else, in several
// processes, and start again at any time.
//
// What is derived from a key, such as the hashes of backup codes, cannot be derived again from
// another one. It depends on the root: a random key that never changes and is sealed under each
// master key. In a database that is older than this package the root is its first master key.
package masterkey

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's table.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("masterkey", migrations) }

var (
	// ErrRetired is returned for a file whose first key was retired by a rotation.
	ErrRetired = errors.New("master key is retired")
	// ErrMissing is returned for a file without a key under which values are sealed.
	ErrMissing = errors.New("master key is missing")
)

// The root is sealed as a value of no tenant.
const (
	noTenant = ""
	rootID   = "root of derived values"
)

// record is a row of master_keys.
type record struct {
	id       string
	position int64
	root     []byte
	retired  bool
}

// queries is a database or a transaction.
type queries interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
}

// records reads the keys, the newest one first.
func records(ctx context.Context, q queries) (list []record, err error) {
	rows, err := q.Query(ctx, `SELECT key_id, position, root, retired_at FROM master_keys ORDER BY position DESC`)
	if err != nil {
		return nil, fmt.Errorf("read master keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var r record
		var retiredAt int64
		if err := rows.Scan(&r.id, &r.position, &r.root, &retiredAt); err != nil {
			return nil, fmt.Errorf("read master keys: %w", err)
		}
		r.retired = retiredAt > 0
		list = append(list, r)
	}
	return list, rows.Err()
}

// all returns a key and its others.
func all(key *seal.Key) []*seal.Key { return append([]*seal.Key{key}, key.Others()...) }

// find returns the key with an id, nil if there is none.
func find(keys []*seal.Key, id string) *seal.Key {
	i := slices.IndexFunc(keys, func(k *seal.Key) bool { return k.ID().String() == id })
	if i < 0 {
		return nil
	}
	return keys[i]
}

// Load returns the key with the root of the deployment, and changes nothing. It fails with
// [seal.ErrWrongKey], [ErrRetired] or, if the file lacks a key that is not retired, [ErrMissing].
func Load(ctx context.Context, q queries, key *seal.Key) (*seal.Key, error) {
	list, err := records(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return key, nil // no process has been started since the table exists
	}
	rooted, err := withRoot(key, list)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if !r.retired && find(all(key), r.id) == nil {
			return nil, fmt.Errorf("%w: %s is not retired", ErrMissing, r.id)
		}
	}
	return rooted, nil
}

// withRoot opens the root with one of the keys.
func withRoot(key *seal.Key, list []record) (*seal.Key, error) {
	keys := all(key)
	if i := slices.IndexFunc(list, func(r record) bool { return r.id == key.ID().String() }); i >= 0 && list[i].retired {
		return nil, fmt.Errorf("%w: %s was replaced by %s", ErrRetired, key.ID(), list[0].id)
	}
	for _, r := range list {
		k := find(keys, r.id)
		if k == nil || r.retired {
			continue
		}
		raw, err := k.Open(noTenant, rootID, r.root)
		if err != nil {
			return nil, fmt.Errorf("open root of derived values: %w", err)
		}
		root, err := seal.NewKey(raw)
		if err != nil {
			return nil, fmt.Errorf("open root of derived values: %w", err)
		}
		return key.WithRoot(root), nil
	}
	return nil, seal.ErrWrongKey
}

// Open prepares a database for a process that has the keys of a file, and returns its key with the
// root of the deployment. It records the first key if it is new, and retires the keys that are no
// longer in the file, if nothing is sealed under them. It fails with [seal.ErrWrongKey], [ErrRetired] or
// [ErrMissing].
func Open(ctx context.Context, db *sqldb.DB, key *seal.Key, now time.Time) (*seal.Key, error) {
	for {
		before, err := records(ctx, db)
		if err != nil {
			return nil, err
		}
		plan, err := compare(ctx, db, key, before)
		if err != nil {
			return nil, err
		}
		done := true
		err = db.Tx(ctx, func(tx *sqldb.Tx) error {
			present, err := records(ctx, tx)
			if err != nil {
				return err
			}
			// Another process may have been started in between.
			if done = slices.EqualFunc(before, present, func(a, b record) bool { return a.id == b.id && a.retired == b.retired }); !done {
				return nil
			}
			return plan.apply(ctx, tx, now.UnixMicro())
		})
		if err != nil {
			return nil, fmt.Errorf("record master key: %w", err)
		}
		if done {
			return plan.key, nil
		}
	}
}

// plan has the changes of a start.
type plan struct {
	key      *seal.Key // with the root
	add      bool      // the key is new
	position int64     // of the key that is new
	retire   []string
}

func (p plan) apply(ctx context.Context, tx *sqldb.Tx, now int64) error {
	if p.add {
		_, err := tx.Exec(ctx, `INSERT INTO master_keys (key_id, position, root, created_at, retired_at) VALUES ($1, $2, $3, $4, 0)`,
			p.key.ID().String(), p.position, p.key.Seal(noTenant, rootID, p.key.Root().Bytes()), now)
		if err != nil {
			return err
		}
	}
	for _, id := range p.retire {
		if _, err := tx.Exec(ctx, `UPDATE master_keys SET root = $2, retired_at = $3 WHERE key_id = $1`, id, []byte{}, now); err != nil {
			return err
		}
	}
	return nil
}

// compare plans the changes of a start of a process with a key.
func compare(ctx context.Context, db *sqldb.DB, key *seal.Key, list []record) (p plan, err error) {
	if len(list) == 0 {
		root, err := firstRoot(ctx, db, key)
		return plan{key: key.WithRoot(root), add: true, position: 1}, err
	}
	if p.key, err = withRoot(key, list); err != nil {
		return p, err
	}
	if !slices.ContainsFunc(list, func(r record) bool { return r.id == key.ID().String() }) {
		p.add, p.position = true, list[0].position+1
	}
	keys := all(key)
	for _, r := range list {
		if r.retired || find(keys, r.id) != nil {
			continue
		}
		// Only a process that seals under the newest key knows that others are of no more use.
		if !p.add && list[0].id != key.ID().String() {
			return p, fmt.Errorf("%w: processes seal under %s; add it to the file", ErrMissing, r.id)
		}
		id, err := seal.ParseKeyID(r.id)
		if err != nil {
			return p, err
		}
		where, err := holds(ctx, db, id)
		if err != nil {
			return p, err
		}
		if where != "" {
			return p, fmt.Errorf("%w: values in %s are sealed under %s; put it back into the file, after the first key, until they are sealed again", ErrMissing, where, r.id)
		}
		p.retire = append(p.retire, r.id)
	}
	return p, nil
}

// firstRoot returns the root of a database whose keys are not recorded yet: the key under which
// its values are sealed, since what was derived before derives from it; a random one if there are
// none.
func firstRoot(ctx context.Context, db *sqldb.DB, key *seal.Key) (*seal.Key, error) {
	for _, k := range all(key) {
		where, err := holds(ctx, db, k.ID())
		if err != nil || where != "" {
			return k, err
		}
	}
	switch found, err := exists(ctx, db, `SELECT tenant_id FROM signing_keys LIMIT 1`); {
	case err != nil:
		return nil, err
	case found:
		return nil, seal.ErrWrongKey
	}
	return seal.GenerateKey()
}

// holds returns a table with a value that is sealed under a key; empty if there is none.
func holds(ctx context.Context, db *sqldb.DB, id seal.KeyID) (table string, err error) {
	low, high := id.Range()
	for _, c := range sealed {
		found, err := exists(ctx, db, `SELECT tenant_id FROM "`+c.table+`" WHERE "`+c.name+`" >= $1 AND "`+c.name+`" < $2 LIMIT 1`, low, high)
		if err != nil {
			return "", err
		}
		if found {
			return c.table, nil
		}
	}
	return "", nil
}

// exists reports whether a query for tenants returns a row.
func exists(ctx context.Context, db *sqldb.DB, query string, args ...any) (bool, error) {
	err := db.QueryRow(ctx, query, args...).Scan(new(string))
	if errors.Is(err, sqldb.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for sealed values: %w", err)
	}
	return true, nil
}
