package userimport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

const (
	// MaxRows is the maximum number of rows of an import.
	MaxRows = 200_000
	// MaxLine is the maximum length of a line, in bytes. A row with a longer line fails.
	MaxLine = 64 << 10
	// MaxErrors is the maximum number of errors that are stored for a job.
	MaxErrors = 1000
	// MaxUnfinished is the maximum number of unfinished imports of a tenant.
	MaxUnfinished = 20

	// The maximum size of a chunk, the unit of a transaction.
	chunkRows  = 250
	chunkBytes = 256 << 10
)

var (
	// ErrNotFound is returned for an id that no import has.
	ErrNotFound = errors.New("import not found")
	// ErrTooLong is returned for an import of more than [MaxRows] rows.
	ErrTooLong = fmt.Errorf("an import can have at most %d rows", MaxRows)
	// ErrEmpty is returned for an import without rows.
	ErrEmpty = errors.New("an import must have at least one row")
	// ErrReceiving is returned for an import that another request is still sending.
	ErrReceiving = errors.New("the import is still being received")
)

// State is the state of a job.
type State string

// The states of a job. Clients do not see a job before it is queued.
const (
	Receiving State = "receiving"
	Queued    State = "queued"
	Running   State = "running"
	Completed State = "completed"
	Cancelled State = "cancelled"
)

// Job is an import.
type Job struct {
	ID       string
	TenantID string
	State    State
	// Origin is the origin of the request, which the events of the job have.
	Origin eventlog.Origin
	// SendVerification sends a mail to each user whose address is not verified.
	SendVerification        bool
	Total, Imported, Failed int // rows
	Errors                  []RowError
	CreatedAt               time.Time // UTC
	StartedAt, FinishedAt   time.Time // zero: not yet

	chunks, next int
	caller       []byte // an [authority.Caller] as JSON; empty for internal jobs
}

// Row is a parsed row.
type Row struct {
	identity.BulkUser
	Password string // hashed when the row is imported; empty: none
}

// RowError is the error of a row that failed.
type RowError struct {
	Line    int // from 1
	Email   string
	Code    string
	Message string
}

func (e *RowError) Error() string { return e.Message }

// retryAfter is the Retry-After of a request that exceeds [MaxUnfinished].
const retryAfter = 10 * time.Second

// refusedFor is how long the requests of a tenant that exceeded [MaxUnfinished] are refused
// without a query.
const refusedFor = time.Second

// Config contains the dependencies of an importer. All fields but Clock are required.
type Config struct {
	DB    *sqldb.DB
	Seal  *seal.Key
	Users *identity.Directory
	// Jobs runs the imports.
	Jobs *jobs.Queue
	// Parse parses a line. It sets the code and the message of an error.
	Parse func(line []byte) (Row, *RowError)
	// Clock returns the time. Default: time.Now.
	Clock  func() time.Time
	Logger *slog.Logger
}

// Importer imports users. It is safe for concurrent use.
type Importer struct {
	db      *sqldb.DB
	seal    *seal.Key
	users   *identity.Directory
	parse   func(line []byte) (Row, *RowError)
	clock   func() time.Time
	log     *slog.Logger
	jobs    *jobs.Queue
	refused *lru.Cache[string, time.Time] // when requests of tenants were last refused
}

// New returns an importer.
func New(c Config) (*Importer, error) {
	if c.DB == nil || c.Seal == nil || c.Users == nil || c.Jobs == nil || c.Parse == nil || c.Logger == nil {
		return nil, errors.New("userimport: Config.DB, Seal, Users, Jobs, Parse and Logger are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	refused, err := lru.New[string, time.Time](1000)
	if err != nil {
		return nil, fmt.Errorf("userimport: %w", err)
	}
	i := &Importer{db: c.DB, seal: c.Seal, users: c.Users, parse: c.Parse, clock: c.Clock, log: c.Logger, jobs: c.Jobs, refused: refused}
	i.register()
	return i, nil
}

func (i *Importer) now() time.Time { return i.clock().UTC().Truncate(time.Microsecond) }

// line is a line of a chunk, as it is stored.
type line struct {
	Number  int    `json:"n"`
	Text    []byte `json:"t,omitempty"`
	TooLong bool   `json:"l,omitempty"`
}

// Receive stores the rows of an import, one JSON object on each line, for background jobs that
// import them with the rights and the origin of the context's caller. With sendVerification,
// each user whose address is not verified gets a mail. A commit id that is not empty makes the
// call idempotent. Receive fails with [*fair.ExhaustedError] if the tenant has [MaxUnfinished]
// unfinished imports, with [ErrTooLong], [ErrEmpty] or [ErrReceiving], or as reading body does;
// it then leaves nothing behind.
func (i *Importer) Receive(ctx context.Context, tenantID, commitID string, sendVerification bool, body io.Reader) (_ Job, err error) {
	job := Job{
		ID: id.New(id.Import), TenantID: tenantID, State: Receiving, Origin: eventlog.OriginOf(ctx), SendVerification: sendVerification,
		CreatedAt: i.now(),
	}
	if caller, ok := authority.Of(ctx); ok {
		if job.caller, err = json.Marshal(caller); err != nil {
			return Job{}, fmt.Errorf("receive import: %w", err)
		}
	}
	if commitID != "" {
		job.ID = id.Of(id.Import, tenantID, commitID)
	}
	tooMany := &fair.ExhaustedError{Of: "imports", Share: fair.OfTenant, Limit: MaxUnfinished, RetryAfter: retryAfter}
	hasRoom := func(besides int64) error {
		unfinished, err := countUnfinished(ctx, i.db, tenantID)
		if err == nil && unfinished-besides >= MaxUnfinished {
			i.refused.Add(tenantID, i.now())
			err = tooMany
		}
		return err
	}
	if commitID == "" { // a request with a commit id may repeat an earlier one
		if last, ok := i.refused.Get(tenantID); ok && i.now().Sub(last) < refusedFor {
			return Job{}, fmt.Errorf("receive import: %w", tooMany)
		}
		if err := hasRoom(0); err != nil {
			return Job{}, fmt.Errorf("receive import: %w", err)
		}
	}
	if err := insertJob(ctx, i.db, job); sqldb.IsUniqueViolation(err) {
		earlier, err := i.Job(ctx, tenantID, job.ID)
		if errors.Is(err, ErrNotFound) {
			err = ErrReceiving
		}
		return earlier, err
	} else if err != nil {
		return Job{}, fmt.Errorf("receive import: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, deleteUnreceived(context.WithoutCancel(ctx), i.db, job))
		}
	}()
	if err := hasRoom(1); err != nil {
		return Job{}, fmt.Errorf("receive import: %w", err)
	}
	var chunk []line
	size := 0
	flush := func() error {
		if len(chunk) == 0 {
			return nil
		}
		text, err := json.Marshal(chunk)
		if err == nil {
			err = insertChunk(ctx, i.db, job, job.chunks, i.seal.Seal(tenantID, job.ID, text))
		}
		chunk, size, job.chunks = nil, 0, job.chunks+1
		return err
	}
	lines := bufio.NewReaderSize(body, MaxLine+1)
	for number := 1; ; number++ {
		text, tooLong, err := readLine(lines)
		if err != nil && err != io.EOF {
			return Job{}, err
		}
		if len(bytes.TrimSpace(text)) > 0 {
			if job.Total++; job.Total > MaxRows {
				return Job{}, ErrTooLong
			}
			l := line{Number: number, Text: bytes.Clone(text)}
			if tooLong {
				l = line{Number: number, TooLong: true}
			}
			chunk = append(chunk, l)
			size += len(l.Text)
		}
		if len(chunk) == chunkRows || size >= chunkBytes || err == io.EOF {
			if err := flush(); err != nil {
				return Job{}, fmt.Errorf("receive import: %w", err)
			}
		}
		if err == io.EOF {
			break
		}
	}
	if job.Total == 0 {
		return Job{}, ErrEmpty
	}
	job.State = Queued
	err = i.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := queueJob(ctx, tx, job); err != nil {
			return err
		}
		var b sqldb.Batch
		i.jobs.Enqueue(&b, tenantID, kind, chunkJob{job.ID, 0})
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Job{}, fmt.Errorf("receive import: %w", err)
	}
	i.jobs.Wake()
	return job, nil
}

// readLine reads a line without its line break. It returns a placeholder for a line that is too
// long.
func readLine(r *bufio.Reader) (text []byte, tooLong bool, err error) {
	text, err = r.ReadSlice('\n')
	for errors.Is(err, bufio.ErrBufferFull) {
		tooLong = true
		_, err = r.ReadSlice('\n')
	}
	if tooLong {
		text = []byte("...")
	}
	return bytes.TrimRight(text, "\r\n"), tooLong, err
}

// Job returns a job with the errors of its rows. It fails with [ErrNotFound].
func (i *Importer) Job(ctx context.Context, tenantID, jobID string) (Job, error) {
	job, err := selectJob(ctx, i.db, tenantID, jobID)
	if err == nil && job.State == Receiving {
		err = ErrNotFound
	}
	if err == nil {
		job.Errors, err = selectErrors(ctx, i.db, job)
	}
	return job, err
}

// Jobs returns at most limit jobs of a tenant, the newest first and without the errors of their rows:
// those after a job that was created at an instant and has an id; the zero time: from the newest.
func (i *Importer) Jobs(ctx context.Context, tenantID string, after time.Time, id string, limit int) ([]Job, error) {
	if after.IsZero() {
		after = i.now().AddDate(1, 0, 0) // servers have different clocks
	}
	found, err := selectJobs(ctx, i.db, tenantID, after, id, limit)
	if err != nil {
		return nil, fmt.Errorf("list imports: %w", err)
	}
	return found, nil
}

// Cancel stops a job and deletes its remaining rows. It has no effect on a job that has ended.
// It fails with [ErrNotFound].
func (i *Importer) Cancel(ctx context.Context, tenantID, jobID string) (Job, error) {
	job, err := i.Job(ctx, tenantID, jobID)
	if err != nil {
		return job, err
	}
	if err := cancelJob(ctx, i.db, job, i.now()); err != nil {
		return job, fmt.Errorf("cancel import: %w", err)
	}
	return i.Job(ctx, tenantID, jobID)
}
