package userimport

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// importRequest is the stored part of the request.
type importRequest struct {
	eventlog.Origin
	SendVerification bool `json:"send_verification,omitempty"`
}

func insertJob(ctx context.Context, db *sqldb.DB, job Job) error {
	origin, err := json.Marshal(importRequest{job.Origin, job.SendVerification})
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, `
		INSERT INTO user_imports (tenant_id, id, state, origin, caller, total, imported, failed, chunks, next_chunk, created_at, started_at, finished_at)
		VALUES ($1, $2, $3, $4, $5, 0, 0, 0, 0, 0, $6, 0, 0)`,
		job.TenantID, job.ID, string(job.State), string(origin), string(job.caller), job.CreatedAt.UnixMicro())
	return err
}

func insertChunk(ctx context.Context, db *sqldb.DB, job Job, n int, sealed []byte) error {
	_, err := db.Exec(ctx, `INSERT INTO user_import_chunks (tenant_id, import_id, chunk, sealed) VALUES ($1, $2, $3, $4)`,
		job.TenantID, job.ID, int64(n), sealed)
	return err
}

func queueJob(ctx context.Context, tx *sqldb.Tx, job Job) error {
	_, err := tx.Exec(ctx, `UPDATE user_imports SET state = 'queued', total = $3, chunks = $4 WHERE tenant_id = $1 AND id = $2 AND state = 'receiving'`,
		job.TenantID, job.ID, int64(job.Total), int64(job.chunks))
	return err
}

// deleteUnreceived deletes a job whose rows were not received completely.
func deleteUnreceived(ctx context.Context, db *sqldb.DB, job Job) error {
	return db.Tx(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec(ctx, `DELETE FROM user_imports WHERE tenant_id = $1 AND id = $2 AND state = 'receiving'`, job.TenantID, job.ID)
		if err == nil && n > 0 {
			_, err = tx.Exec(ctx, deleteChunks, job.TenantID, job.ID)
		}
		return err
	})
}

const deleteChunks = `DELETE FROM user_import_chunks WHERE tenant_id = $1 AND import_id = $2`

const columns = `tenant_id, id, state, origin, caller, total, imported, failed, chunks, next_chunk, created_at, started_at, finished_at`

func scan(row interface{ Scan(...any) error }) (Job, error) {
	var job Job
	var origin, caller string
	var total, imported, failed, chunks, next, created, started, finished int64
	err := row.Scan(&job.TenantID, &job.ID, (*string)(&job.State), &origin, &caller, &total, &imported, &failed, &chunks, &next, &created, &started, &finished)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Job{}, ErrNotFound
	}
	if err != nil {
		return Job{}, fmt.Errorf("read import: %w", err)
	}
	var from importRequest
	if err := json.Unmarshal([]byte(origin), &from); err != nil {
		return Job{}, fmt.Errorf("read origin of import: %w", err)
	}
	job.Origin, job.SendVerification, job.caller = from.Origin, from.SendVerification, []byte(caller)
	job.Total, job.Imported, job.Failed, job.chunks, job.next = int(total), int(imported), int(failed), int(chunks), int(next)
	job.CreatedAt, job.StartedAt, job.FinishedAt = sqldb.Instant(created), sqldb.Instant(started), sqldb.Instant(finished)
	return job, nil
}

func selectJob(ctx context.Context, db *sqldb.DB, tenantID, jobID string) (Job, error) {
	if !sqldb.IsText(jobID) {
		return Job{}, ErrNotFound
	}
	return scan(db.QueryRow(ctx, `SELECT `+columns+` FROM user_imports WHERE tenant_id = $1 AND id = $2`, tenantID, jobID))
}

// selectJobs selects the jobs of a tenant that are older than an instant or, of those of the instant,
// have a smaller id; the newest first.
func selectJobs(ctx context.Context, db *sqldb.DB, tenantID string, before time.Time, id string, limit int) (found []Job, err error) {
	rows, err := db.Query(ctx, `
		SELECT `+columns+` FROM user_imports
		WHERE tenant_id = $1 AND (created_at < $2 OR created_at = $2 AND id < $3) AND state <> 'receiving'
		ORDER BY created_at DESC, id DESC LIMIT $4`, tenantID, before.UnixMicro(), id, int64(limit))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		job, err := scan(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, job)
	}
	return found, rows.Err()
}

func selectErrors(ctx context.Context, db *sqldb.DB, job Job) (found []RowError, err error) {
	rows, err := db.Query(ctx, `
		SELECT line, email, code, message FROM user_import_errors
		WHERE tenant_id = $1 AND import_id = $2 ORDER BY line LIMIT $3`, job.TenantID, job.ID, int64(MaxErrors))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var e RowError
		var n int64
		if err := rows.Scan(&n, &e.Email, &e.Code, &e.Message); err != nil {
			return nil, err
		}
		e.Line = int(n)
		found = append(found, e)
	}
	return found, rows.Err()
}

// insertError queues the error of a row.
func insertError(b *sqldb.Batch, job Job, c candidate) {
	b.Queue(`INSERT INTO user_import_errors (tenant_id, import_id, line, email, code, message) VALUES ($1, $2, $3, $4, $5, $6)`,
		[]any{job.TenantID, job.ID, int64(c.line), cmp.Or(c.failed.Email, c.row.Email), c.failed.Code, c.failed.Message}, nil)
}

// begin records that the import of the first chunk has begun.
func begin(ctx context.Context, db *sqldb.DB, job Job, now time.Time) error {
	_, err := db.Exec(ctx, `UPDATE user_imports SET state = 'running', started_at = $3 WHERE tenant_id = $1 AND id = $2 AND state = 'queued'`,
		job.TenantID, job.ID, now.UnixMicro())
	return err
}

// countUnfinished counts the imports of a tenant that have not ended.
func countUnfinished(ctx context.Context, db *sqldb.DB, tenantID string) (n int64, err error) {
	err = db.QueryRow(ctx, `SELECT COUNT(*) FROM user_imports WHERE tenant_id = $1 AND finished_at = 0`, tenantID).Scan(&n)
	return n, err
}

// advance records that the next chunk is imported, in the transaction that imports it. It fails
// with errSuperseded if the import was canceled or another process has imported the chunk.
func advance(ctx context.Context, tx *sqldb.Tx, job Job, imported, failed int) error {
	n, err := tx.Exec(ctx, `
		UPDATE user_imports SET next_chunk = next_chunk + 1, imported = imported + $4, failed = failed + $5
		WHERE tenant_id = $1 AND id = $2 AND next_chunk = $3 AND state = 'running'`,
		job.TenantID, job.ID, int64(job.next), int64(imported), int64(failed))
	if err == nil && n == 0 {
		err = errSuperseded
	}
	if err == nil {
		_, err = tx.Exec(ctx, `DELETE FROM user_import_chunks WHERE tenant_id = $1 AND import_id = $2 AND chunk = $3`, job.TenantID, job.ID, int64(job.next))
	}
	return err
}

func finish(ctx context.Context, tx *sqldb.Tx, job Job) error {
	n, err := tx.Exec(ctx, `UPDATE user_imports SET state = 'completed', finished_at = $3 WHERE tenant_id = $1 AND id = $2 AND state = 'running'`,
		job.TenantID, job.ID, job.FinishedAt.UnixMicro())
	if err == nil && n == 0 {
		err = errSuperseded
	}
	return err
}

func cancelJob(ctx context.Context, db *sqldb.DB, job Job, now time.Time) error {
	return db.Tx(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE user_imports SET state = 'cancelled', finished_at = $3 WHERE tenant_id = $1 AND id = $2 AND state IN ('queued', 'running')`,
			job.TenantID, job.ID, now.UnixMicro())
		if err == nil && n > 0 {
			_, err = tx.Exec(ctx, deleteChunks, job.TenantID, job.ID)
		}
		return err
	})
}

func selectChunk(ctx context.Context, db *sqldb.DB, job Job) (sealed []byte, err error) {
	err = db.QueryRow(ctx, `SELECT sealed FROM user_import_chunks WHERE tenant_id = $1 AND import_id = $2 AND chunk = $3`,
		job.TenantID, job.ID, int64(job.next)).Scan(&sealed)
	if errors.Is(err, sqldb.ErrNoRows) {
		err = errSuperseded
	}
	return sealed, err
}

// deleteJobs deletes jobs that were begun before an instant and not received completely, and
// those that ended before another.
func deleteJobs(ctx context.Context, db *sqldb.DB, begun, ended time.Time) error {
	const old = `(i.state = 'receiving' AND i.created_at < $1 OR i.finished_at <> 0 AND i.finished_at < $2)`
	return db.Tx(ctx, func(tx *sqldb.Tx) error {
		for _, statement := range []string{
			`DELETE FROM user_import_chunks WHERE EXISTS (SELECT 1 FROM user_imports AS i
				WHERE i.tenant_id = user_import_chunks.tenant_id AND i.id = user_import_chunks.import_id AND ` + old + `)`,
			`DELETE FROM user_import_errors WHERE EXISTS (SELECT 1 FROM user_imports AS i
				WHERE i.tenant_id = user_import_errors.tenant_id AND i.id = user_import_errors.import_id AND ` + old + `)`,
			`DELETE FROM user_imports AS i WHERE ` + old,
		} {
			if _, err := tx.Exec(ctx, statement, begun.UnixMicro(), ended.UnixMicro()); err != nil {
				return err
			}
		}
		return nil
	})
}
