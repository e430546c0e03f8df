package reporting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
)

// querier is a [*sqldb.DB] or a [*sqldb.Tx].
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) *sqldb.Row
	Query(ctx context.Context, query string, args ...any) (*sqldb.Rows, error)
}

// encoded returns values as JSON; nil pointers are empty.
func encoded(values ...any) (texts []any, err error) {
	for _, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if string(text) == "null" {
			text = nil
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// decode reads what encoded returned.
func decode(text string, to any) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), to)
}

const reportColumns = `id, kind, name, parameters, schedule, next_run_at, created_at, created_by_type, created_by, updated_at`

func insertReport(b *sqldb.Batch, r Report) error {
	texts, err := encoded(r.Parameters, r.Schedule)
	if err != nil {
		return err
	}
	b.Queue(`INSERT INTO reports (tenant_id, `+reportColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`, []any{
		r.TenantID, r.ID, string(r.Kind), r.Name, texts[0], texts[1], sqldb.Micros(r.NextRunAt),
		sqldb.Micros(r.CreatedAt), r.CreatedBy.Type, r.CreatedBy.ID, sqldb.Micros(r.UpdatedAt),
	}, nil)
	return nil
}

func updateReport(b *sqldb.Batch, r Report) error {
	texts, err := encoded(r.Parameters, r.Schedule)
	if err != nil {
		return err
	}
	b.Queue(`UPDATE reports SET name = $3, parameters = $4, schedule = $5, next_run_at = $6, updated_at = $7 WHERE tenant_id = $1 AND id = $2`,
		[]any{r.TenantID, r.ID, r.Name, texts[0], texts[1], sqldb.Micros(r.NextRunAt), sqldb.Micros(r.UpdatedAt)}, nil)
	return nil
}

// selectReport reads a report. It fails with [ErrNotFound].
func selectReport(ctx context.Context, q querier, tenantID, reportID string) (Report, error) {
	if !sqldb.IsText(reportID) {
		return Report{}, ErrNotFound
	}
	r, err := scanReport(q.QueryRow(ctx, `SELECT tenant_id, `+reportColumns+` FROM reports WHERE tenant_id = $1 AND id = $2`, tenantID, reportID))
	if errors.Is(err, sqldb.ErrNoRows) {
		return Report{}, ErrNotFound
	}
	return r, err
}

// lockReport reads a report that the transaction changes or runs. It fails with [ErrNotFound].
func lockReport(ctx context.Context, tx *sqldb.Tx, tenantID, reportID string) (Report, error) {
	if !sqldb.IsText(reportID) {
		return Report{}, ErrNotFound
	}
	if _, err := tx.Exec(ctx, `UPDATE reports SET updated_at = updated_at WHERE tenant_id = $1 AND id = $2`, tenantID, reportID); err != nil {
		return Report{}, err
	}
	return selectReport(ctx, tx, tenantID, reportID)
}

func scanReport(row interface{ Scan(...any) error }) (r Report, err error) {
	var next, created, updated int64
	var parameters, schedule string
	if err := row.Scan(&r.TenantID, &r.ID, (*string)(&r.Kind), &r.Name, &parameters, &schedule, &next, &created, &r.CreatedBy.Type, &r.CreatedBy.ID, &updated); err != nil {
		return Report{}, fmt.Errorf("read report: %w", err)
	}
	if err := errors.Join(decode(parameters, &r.Parameters), decode(schedule, &r.Schedule)); err != nil {
		return Report{}, fmt.Errorf("read report %s: %w", r.ID, err)
	}
	r.NextRunAt, r.CreatedAt, r.UpdatedAt = sqldb.Instant(next), sqldb.Instant(created), sqldb.Instant(updated)
	return r, nil
}

func selectReports(ctx context.Context, db *sqldb.DB, tenantID, before string, limit int) ([]Report, error) {
	query, args := `SELECT tenant_id, `+reportColumns+` FROM reports WHERE tenant_id = $1`, []any{tenantID, int64(limit)}
	if before != "" {
		query += ` AND id < $3`
		args = append(args, before)
	}
	return readReports(db.Query(ctx, query+` ORDER BY id DESC LIMIT $2`, args...))
}

// selectDue reads the reports of all tenants that are due, the oldest first.
func selectDue(ctx context.Context, db *sqldb.DB, now time.Time, limit int) ([]Report, error) {
	return readReports(db.Query(ctx, `SELECT tenant_id, `+reportColumns+` FROM reports WHERE next_run_at > 0 AND next_run_at <= $1 ORDER BY next_run_at LIMIT $2`,
		now.UnixMicro(), int64(limit)))
}

func readReports(rows *sqldb.Rows, err error) (found []Report, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanReport(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, rows.Err()
}

const runColumns = `report_id, id, kind, name, parameters, recipients, state, scheduled, row_count, truncated, figures, failure, created_at, created_by_type, created_by, started_at, finished_at`

func insertRun(b *sqldb.Batch, r Run) error {
	texts, err := encoded(r.Parameters, r.Recipients)
	if err != nil {
		return err
	}
	b.Queue(`INSERT INTO report_runs (tenant_id, claim, `+runColumns+`) VALUES ($1, '', $2, $3, $4, $5, $6, $7, $8, $9, 0, FALSE, '', '', $10, $11, $12, 0, 0)`, []any{
		r.TenantID, r.ReportID, r.ID, string(r.Kind), r.Name, texts[0], texts[1], string(r.State), r.Scheduled,
		sqldb.Micros(r.CreatedAt), r.CreatedBy.Type, r.CreatedBy.ID,
	}, nil)
	return nil
}

// claimRun makes a run that did not end belong to an attempt, which begins anew. It fails with
// [ErrRunNotFound].
func claimRun(ctx context.Context, tx *sqldb.Tx, tenantID, reportID, runID, claim string, now time.Time) (Run, error) {
	n, err := tx.Exec(ctx, `UPDATE report_runs SET state = 'running', claim = $4, row_count = 0, started_at = $5
		WHERE tenant_id = $1 AND report_id = $2 AND id = $3 AND state IN ('queued', 'running')`, tenantID, reportID, runID, claim, now.UnixMicro())
	if err == nil && n == 0 {
		err = ErrRunNotFound
	}
	if err == nil {
		_, err = tx.Exec(ctx, `DELETE FROM report_chunks WHERE tenant_id = $1 AND run_id = $2`, tenantID, runID)
	}
	if err != nil {
		return Run{}, err
	}
	return selectRun(ctx, tx, tenantID, reportID, runID)
}

// countRows adds rows to a run that belongs to an attempt. It fails with errLost.
func countRows(ctx context.Context, tx *sqldb.Tx, r Run, claim string, rows int) error {
	n, err := tx.Exec(ctx, `UPDATE report_runs SET row_count = row_count + $5 WHERE tenant_id = $1 AND report_id = $2 AND id = $3 AND claim = $4 AND state = 'running'`,
		r.TenantID, r.ReportID, r.ID, claim, int64(rows))
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

// endRun stores the end of a run that belongs to an attempt (empty: to any). It fails with errLost.
func endRun(ctx context.Context, tx *sqldb.Tx, r Run, claim string) error {
	texts, err := encoded(r.Figures, r.Failure)
	if err != nil {
		return err
	}
	n, err := tx.Exec(ctx, `UPDATE report_runs SET state = $5, truncated = $6, figures = $7, failure = $8, finished_at = $9
		WHERE tenant_id = $1 AND report_id = $2 AND id = $3 AND (claim = $4 OR $4 = '') AND state IN ('queued', 'running')`,
		r.TenantID, r.ReportID, r.ID, claim, string(r.State), r.Truncated, texts[0], texts[1], sqldb.Micros(r.FinishedAt))
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

// selectRun reads a run. It fails with [ErrRunNotFound].
func selectRun(ctx context.Context, q querier, tenantID, reportID, runID string) (Run, error) {
	if !sqldb.IsText(reportID) || !sqldb.IsText(runID) {
		return Run{}, ErrRunNotFound
	}
	r, err := scanRun(q.QueryRow(ctx, `SELECT tenant_id, `+runColumns+` FROM report_runs WHERE tenant_id = $1 AND report_id = $2 AND id = $3`, tenantID, reportID, runID))
	if errors.Is(err, sqldb.ErrNoRows) {
		return Run{}, ErrRunNotFound
	}
	return r, err
}

func selectRuns(ctx context.Context, q querier, tenantID, reportID, before string, limit int) ([]Run, error) {
	query, args := `SELECT tenant_id, `+runColumns+` FROM report_runs WHERE tenant_id = $1 AND report_id = $2`, []any{tenantID, reportID, int64(limit)}
	if before != "" {
		query += ` AND id < $4`
		args = append(args, before)
	}
	return readRuns(q.Query(ctx, query+` ORDER BY id DESC LIMIT $3`, args...))
}

func selectRunIDs(ctx context.Context, tx *sqldb.Tx, tenantID, reportID string) ([]string, error) {
	return sqldb.Texts(tx.Query(ctx, `SELECT id FROM report_runs WHERE tenant_id = $1 AND report_id = $2`, tenantID, reportID))
}

// selectOldRuns reads runs of all tenants that were created before an instant.
func selectOldRuns(ctx context.Context, db *sqldb.DB, before time.Time, limit int) ([]Run, error) {
	return readRuns(db.Query(ctx, `SELECT tenant_id, `+runColumns+` FROM report_runs WHERE created_at < $1 ORDER BY created_at LIMIT $2`, before.UnixMicro(), int64(limit)))
}

func readRuns(rows *sqldb.Rows, err error) (found []Run, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanRun(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, rows.Err()
}

func scanRun(row interface{ Scan(...any) error }) (r Run, err error) {
	var rows, created, started, finished int64
	var parameters, recipients, figures, failure string
	err = row.Scan(&r.TenantID, &r.ReportID, &r.ID, (*string)(&r.Kind), &r.Name, &parameters, &recipients, (*string)(&r.State), &r.Scheduled,
		&rows, &r.Truncated, &figures, &failure, &created, &r.CreatedBy.Type, &r.CreatedBy.ID, &started, &finished)
	if err != nil {
		return Run{}, fmt.Errorf("read run of report: %w", err)
	}
	err = errors.Join(decode(parameters, &r.Parameters), decode(recipients, &r.Recipients), decode(figures, &r.Figures), decode(failure, &r.Failure))
	if err != nil {
		return Run{}, fmt.Errorf("read run %s: %w", r.ID, err)
	}
	r.Rows, r.CreatedAt, r.StartedAt, r.FinishedAt = int(rows), sqldb.Instant(created), sqldb.Instant(started), sqldb.Instant(finished)
	return r, nil
}

// deleteRun queues the deletion of a run with its rows and mails.
func deleteRun(b *sqldb.Batch, tenantID, reportID, runID string) {
	b.Queue(`DELETE FROM report_chunks WHERE tenant_id = $1 AND run_id = $2`, []any{tenantID, runID}, nil)
	b.Queue(`DELETE FROM report_mails WHERE tenant_id = $1 AND run_id = $2`, []any{tenantID, runID}, nil)
	b.Queue(`DELETE FROM report_runs WHERE tenant_id = $1 AND report_id = $2 AND id = $3`, []any{tenantID, reportID, runID}, nil)
}

// selectRows reads rows of a run, from one, counted from 0, at most limit.
func selectRows(ctx context.Context, db *sqldb.DB, r Run, from, limit int) (found [][]any, err error) {
	chunks, err := sqldb.Texts(db.Query(ctx, `SELECT chunk_rows FROM report_chunks WHERE tenant_id = $1 AND run_id = $2 AND chunk >= $3 AND chunk <= $4 ORDER BY chunk`,
		r.TenantID, r.ID, int64(from/chunkRows), int64((from+limit-1)/chunkRows)))
	if err != nil {
		return nil, err
	}
	for _, text := range chunks {
		var rows [][]any
		if err := json.Unmarshal([]byte(text), &rows); err != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	skip := min(from%chunkRows, len(found))
	return found[skip:min(skip+limit, len(found))], nil
}

func insertMail(b *sqldb.Batch, r Run, userID string) {
	b.Queue(`INSERT INTO report_mails (tenant_id, run_id, user_id, state, reason) VALUES ($1, $2, $3, 'queued', '')`, []any{r.TenantID, r.ID, userID}, nil)
}

// updateMail stores that a mail was sent or, with a reason, skipped.
func updateMail(ctx context.Context, db *sqldb.DB, r Run, userID, reason string) error {
	state := "sent"
	if reason != "" {
		state = "skipped"
	}
	_, err := db.Exec(ctx, `UPDATE report_mails SET state = $4, reason = $5 WHERE tenant_id = $1 AND run_id = $2 AND user_id = $3`, r.TenantID, r.ID, userID, state, reason)
	return err
}

func selectMails(ctx context.Context, db *sqldb.DB, tenantID, runID string) (found []Mail, err error) {
	rows, err := db.Query(ctx, `SELECT user_id, state, reason FROM report_mails WHERE tenant_id = $1 AND run_id = $2 ORDER BY user_id`, tenantID, runID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var m Mail
		if err := rows.Scan(&m.UserID, &m.State, &m.Reason); err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, rows.Err()
}
