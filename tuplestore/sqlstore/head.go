package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// KnownHead implements [tuplestore.Store].
func (s *Store) KnownHead(tenant string) (tuplestore.Head, bool) {
	if head, ok := s.known.Load(tenant); ok {
		return head.(tuplestore.Head), true
	}
	return tuplestore.Head{}, false
}

// remember keeps a head that was read, so that a reader that sees a commit before its
// committer has published it finds it in the head, too. A later commit may have been
// published since the read: heads only move forward.
func (s *Store) remember(tenant string, head tuplestore.Head) {
	if !s.onlyWriter() {
		return
	}
	for {
		known, ok := s.known.LoadOrStore(tenant, head)
		if !ok || known.(tuplestore.Head).Revision >= head.Revision || s.known.CompareAndSwap(tenant, known, head) {
			return
		}
	}
}

// Head implements [tuplestore.Store].
func (s *Store) Head(ctx context.Context, tenant string) (tuplestore.Head, error) {
	if head, ok := s.KnownHead(tenant); ok {
		return head, nil
	}
	var head tuplestore.Head
	err := s.DB.QueryRow(ctx, `SELECT epoch, rev, schema_rev FROM tenant_heads WHERE tenant_id = $1`, tenant).
		Scan(&head.Epoch, &head.Revision, &head.SchemaRevision)
	if errors.Is(err, sqldb.ErrNoRows) {
		return tuplestore.Head{}, nil
	}
	if err != nil {
		return tuplestore.Head{}, fmt.Errorf("read head of tenant %s: %w", tenant, err)
	}
	s.remember(tenant, head)
	return head, nil
}

// Latest implements [tuplestore.Store].
func (s *Store) Latest(ctx context.Context, tenant string) (tuplestore.Head, []byte, error) {
	var head tuplestore.Head
	var document []byte
	err := s.DB.QueryRow(ctx, `
		SELECT h.epoch, h.rev, h.schema_rev, s.document
		FROM tenant_heads h
		LEFT JOIN tenant_schemas s ON s.tenant_id = h.tenant_id AND s.rev = h.schema_rev
		WHERE h.tenant_id = $1`, tenant).
		Scan(&head.Epoch, &head.Revision, &head.SchemaRevision, &document)
	if errors.Is(err, sqldb.ErrNoRows) {
		return tuplestore.Head{}, nil, nil
	}
	if err != nil {
		return tuplestore.Head{}, nil, fmt.Errorf("read newest of tenant %s: %w", tenant, err)
	}
	s.remember(tenant, head)
	if head.SchemaRevision > 0 {
		document = notNil(document)
	}
	return head, document, nil
}

// KnownChanges implements [tuplestore.Store].
func (s *Store) KnownChanges(tenant, epoch string, after tuplestore.Revision) ([]tuplestore.Commit, bool) {
	return s.recent.after(tenant, epoch, after)
}

// Changes implements [tuplestore.Store].
func (s *Store) Changes(ctx context.Context, tenant string, after tuplestore.Revision, limit int) ([]tuplestore.Commit, error) {
	if head, ok := s.KnownHead(tenant); limit <= 0 || ok && head.Revision <= after {
		return nil, nil
	}
	var commits []tuplestore.Commit
	for changes := 0; ; {
		n := min(limit-len(commits), changesAtOnce)
		page, err := s.changes(ctx, tenant, after, n)
		if err != nil {
			return nil, fmt.Errorf("read changes of tenant %s after %d: %w", tenant, after, err)
		}
		commits = append(commits, page...)
		if len(page) < n || len(commits) == limit {
			return commits, nil
		}
		last := &commits[len(commits)-1]
		after = last.Revision
		for _, c := range page {
			changes += len(c.Changes)
		}
		if last.More = changes >= s.ReadChanges; last.More {
			return commits, nil
		}
	}
}

// changesAtOnce is the number of commits in one statement.
const changesAtOnce = 16

func (s *Store) changes(ctx context.Context, tenant string, after tuplestore.Revision, limit int) ([]tuplestore.Commit, error) {
	// Revisions have no gaps, so the limit is a range.
	rows, err := s.DB.Query(ctx, `
		SELECT h.epoch, h.rev, h.schema_rev, h.min_rev, c.rev, c.committed_at, c.actor, c.changes, s.rev, s.document
		FROM tenant_heads h
		LEFT JOIN tenant_commits c ON c.tenant_id = h.tenant_id AND c.rev > $2 AND c.rev <= $3
		LEFT JOIN tenant_schemas s ON s.tenant_id = c.tenant_id AND s.rev = c.rev
		WHERE h.tenant_id = $1
		ORDER BY c.rev`, tenant, int64(after), int64(after)+int64(limit))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var commits []tuplestore.Commit
	var head tuplestore.Head // the same in every row
	for rows.Next() {
		var minRev tuplestore.Revision
		var rev, at, schemaRev *int64
		var actor, changes *string
		var document []byte
		if err := rows.Scan(&head.Epoch, &head.Revision, &head.SchemaRevision, &minRev, &rev, &at, &actor, &changes, &schemaRev, &document); err != nil {
			return nil, err
		}
		if after < minRev {
			return nil, tuplestore.ErrRevisionCollected
		}
		if rev == nil {
			continue // only the head: no commit is newer
		}
		c := tuplestore.Commit{Revision: tuplestore.Revision(*rev), At: instant(*at), Actor: *actor}
		if c.Changes, err = decodeChanges(*changes); err != nil {
			return nil, fmt.Errorf("revision %d: %w", *rev, err)
		}
		if schemaRev != nil {
			c.Schema = notNil(document)
		}
		commits = append(commits, c)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if head.Epoch != "" {
		s.remember(tenant, head)
	}
	return commits, nil
}

// Bounds of what Since reads.
const (
	sinceCommits = 128
	sinceBytes   = 1 << 16 // of the changes of one commit
)

// Since implements [tuplestore.Store].
func (s *Store) Since(ctx context.Context, tenant string, after tuplestore.Revision) (head tuplestore.Head, changed []tuplestore.Tuple, complete bool, err error) {
	if head, ok := s.KnownHead(tenant); ok && head.Revision == after {
		return head, nil, true, nil
	}
	head, changed, complete, err = s.since(ctx, tenant, after)
	if err != nil {
		return tuplestore.Head{}, nil, false, fmt.Errorf("read what changed in tenant %s after %d: %w", tenant, after, err)
	}
	return head, changed, complete, nil
}

func (s *Store) since(ctx context.Context, tenant string, after tuplestore.Revision) (head tuplestore.Head, changed []tuplestore.Tuple, complete bool, err error) {
	rows, err := s.DB.Query(ctx, `
		SELECT h.epoch, h.rev, h.schema_rev, h.min_rev, CASE WHEN LENGTH(c.changes) <= $4 THEN c.changes END
		FROM tenant_heads h
		LEFT JOIN tenant_commits c ON c.tenant_id = h.tenant_id AND c.rev > $2 AND h.rev <= $3
		WHERE h.tenant_id = $1`, tenant, int64(after), int64(after)+sinceCommits, sinceBytes)
	if err != nil {
		return head, nil, false, err
	}
	defer rows.Close()
	var floor tuplestore.Revision
	commits := tuplestore.Revision(0)
	for rows.Next() {
		var changes *string
		if err := rows.Scan(&head.Epoch, &head.Revision, &head.SchemaRevision, &floor, &changes); err != nil {
			return head, nil, false, err
		}
		if changes == nil {
			continue // too large, too many, or none
		}
		commits++
		list, err := decodeChanges(*changes)
		if err != nil {
			return head, nil, false, err
		}
		for _, c := range list {
			changed = append(changed, c.Tuple)
		}
	}
	if err := rows.Err(); err != nil {
		return head, nil, false, err
	}
	if head.Epoch != "" {
		s.remember(tenant, head)
	}
	if after < floor || after+commits != head.Revision {
		return head, nil, false, nil
	}
	return head, changed, true, nil
}

// searchRevision finds the newest revision with a time of at most $2, or the retention floor if
// that is later, and returns the head, the revision and its time. It is a binary search, because
// revisions have no gaps: of at most more revisions after rev, one half can still be meant.
const searchRevision = `
	WITH RECURSIVE search (rev, more) AS (
		SELECT h.min_rev, h.rev - h.min_rev FROM tenant_heads AS h WHERE h.tenant_id = $1
		UNION ALL
		SELECT CASE WHEN (SELECT c.committed_at FROM tenant_commits AS c WHERE c.tenant_id = $1 AND c.rev = s.rev + s.more - (s.more >> 1)) <= $2
			THEN s.rev + s.more - (s.more >> 1) ELSE s.rev END, s.more >> 1
		FROM search AS s WHERE s.more > 0)
	SELECT h.epoch, h.rev, h.schema_rev, s.rev, (SELECT c.committed_at FROM tenant_commits AS c WHERE c.tenant_id = $1 AND c.rev = s.rev)
	FROM search AS s CROSS JOIN tenant_heads AS h WHERE s.more = 0 AND h.tenant_id = $1`

// RevisionAt implements [tuplestore.Store].
func (s *Store) RevisionAt(ctx context.Context, tenant string, at time.Time) (rev tuplestore.Revision, epoch string, err error) {
	var head tuplestore.Head
	var micros *int64
	err = s.DB.QueryRow(ctx, searchRevision, tenant, at.UnixMicro()).Scan(&head.Epoch, &head.Revision, &head.SchemaRevision, &rev, &micros)
	switch {
	case errors.Is(err, sqldb.ErrNoRows):
		return 0, "", nil
	case err != nil:
		return 0, "", fmt.Errorf("find revision of tenant %s at %v: %w", tenant, at, err)
	case rev > 0 && (micros == nil || *micros > at.UnixMicro()):
		return 0, "", tuplestore.ErrRevisionCollected
	}
	s.remember(tenant, head)
	return rev, head.Epoch, nil
}

// CommittedAt implements [tuplestore.Store].
func (s *Store) CommittedAt(ctx context.Context, tenant string, rev tuplestore.Revision) (time.Time, error) {
	var head, floor tuplestore.Revision
	var at *int64
	err := s.DB.QueryRow(ctx, `
		SELECT h.rev, h.min_rev, c.committed_at FROM tenant_heads h
		LEFT JOIN tenant_commits c ON c.tenant_id = h.tenant_id AND c.rev = $2
		WHERE h.tenant_id = $1`, tenant, int64(rev)).Scan(&head, &floor, &at)
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return time.Time{}, fmt.Errorf("read time of revision %d of tenant %s: %w", rev, tenant, err)
	}
	switch {
	case rev > head:
		return time.Time{}, tuplestore.ErrRevisionUnknown
	case rev < floor:
		return time.Time{}, tuplestore.ErrRevisionCollected
	case rev == 0:
		return time.Time{}, nil
	case at == nil: // of the floor, collected by an earlier version of the product
		return time.Time{}, tuplestore.ErrRevisionCollected
	}
	return instant(*at), nil
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// instant returns the time in a column of microseconds.
func instant(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
