package identity

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"stonetown/engine/authority"
	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

const (
	// MaxImportRows is how many rows one import may have.
	MaxImportRows = 200_000
	// MaxImportLine is how long a line may be, in bytes. A longer one fails as a row.
	MaxImportLine = 64 << 10
	// MaxImportErrors is how many failed rows are remembered one by one.
	MaxImportErrors = 1000

	// A chunk is what is imported in one transaction.
	chunkRows  = 250
	chunkBytes = 256 << 10
)

var (
	// ErrImportNotFound is returned for an id that no import has.
	ErrImportNotFound = errors.New("import not found")
	// ErrImportTooLong is returned for an import of more than [MaxImportRows] rows.
	ErrImportTooLong = fmt.Errorf("an import can have at most %d rows", MaxImportRows)
	// ErrImportEmpty is returned for an import without rows.
	ErrImportEmpty = errors.New("an import must have at least one row")
	// ErrImportUnderWay is returned for an import that is still being received.
	ErrImportUnderWay = errors.New("the import is still being received")
)

// ImportState is how far an import has come.
type ImportState string

// The states of an import. Nobody sees one that is being received.
const (
	Receiving ImportState = "receiving"
	Queued    ImportState = "queued"
	Running   ImportState = "running"
	Completed ImportState = "completed"
	Cancelled ImportState = "cancelled"
)

// Import is a job that creates many users.
type Import struct {
	ID       string
	TenantID string
	State    ImportState
	// Origin is that of the request that asked for it; events have it.
	Origin eventlog.Origin
	// SendVerification has a mail sent to those users whose address is not verified.
	SendVerification        bool
	Total, Imported, Failed int // rows
	Errors                  []RowError
	CreatedAt               time.Time // UTC, as are all
	StartedAt, FinishedAt   time.Time // zero: not yet

	chunks, next int
	caller       []byte // an [authority.Caller] as JSON; empty: the product itself
}

// ImportRow is a row that was read.
type ImportRow struct {
	NewUser
	Password string   // if there is one; hashed when the row is imported
	Groups   []string // slugs
}

// RowError is why a row failed.
type RowError struct {
	Line    int // from 1
	Email   string
	Code    string
	Message string
}

func (e *RowError) Error() string { return e.Message }

// MaxImportsWaiting is how many imports of a tenant may be received or wait to be done.
const MaxImportsWaiting = 20

// importRetryAfter is the Retry-After of a tenant with too many imports.
const importRetryAfter = 10 * time.Second

// refusedFor is how long a tenant with too many imports is refused without a query.
const refusedFor = time.Second

// Importer imports users in the background. The rows of an import wait in the
// database, encrypted, and each chunk of them is imported in one transaction with the
// counters of the job: whatever process dies, no row is lost or done twice. It is safe
// for concurrent use.
type Importer struct {
	directory *Directory
	seal      *seal.Key
	parse     func(line []byte) (ImportRow, *RowError)
	kicked    jobs.Signal
	// refused is when tenants were last found to have too many imports.
	refused *lru.Cache[string, time.Time]
}

// NewImporter returns an importer. parse reads a line; it gives an error its code and
// message.
func NewImporter(d *Directory, key *seal.Key, parse func(line []byte) (ImportRow, *RowError)) *Importer {
	refused, err := lru.New[string, time.Time](1000)
	if err != nil {
		panic(err) // of a size that is not positive
	}
	return &Importer{directory: d, seal: key, parse: parse, kicked: jobs.NewSignal(), refused: refused}
}

// line is a line of a chunk.
type line struct {
	Number  int    `json:"n"`
	Text    []byte `json:"t,omitempty"`
	TooLong bool   `json:"l,omitempty"`
}

// Receive takes the rows of an import, lines of JSON, and leaves them to [Importer.Run],
// which imports them with the rights of the context's caller and with its origin. With
// sendVerification, users whose address is not verified get a mail to do so.
// A commit id, if it is not empty, makes it safe to send the same again: the second
// time nothing is received. It fails with [*fair.ExhaustedError] if the tenant has
// [MaxImportsWaiting] that are not finished, with [ErrImportTooLong], [ErrImportEmpty], [ErrImportUnderWay] or
// as reading does; nothing is left then.
func (i *Importer) Receive(ctx context.Context, tenantID, commitID string, sendVerification bool, body io.Reader) (_ Import, err error) {
	job := Import{
		ID: id.New(id.Import), TenantID: tenantID, State: Receiving, Origin: eventlog.OriginOf(ctx), SendVerification: sendVerification,
		CreatedAt: i.directory.now(),
	}
	if caller, ok := authority.Of(ctx); ok {
		if job.caller, err = json.Marshal(caller); err != nil {
			return Import{}, fmt.Errorf("receive import: %w", err)
		}
	}
	if commitID != "" {
		job.ID = id.Of(id.Import, tenantID, commitID)
	}
	db := i.directory.db
	tooMany := &fair.ExhaustedError{Of: "imports", Share: fair.OfTenant, Limit: MaxImportsWaiting, RetryAfter: importRetryAfter}
	hasRoom := func(besides int64) error {
		waiting, err := countUnfinished(ctx, db, tenantID)
		if err == nil && waiting-besides >= MaxImportsWaiting {
			i.refused.Add(tenantID, i.directory.now())
			err = tooMany
		}
		return err
	}
	if commitID == "" { // else it may have been received before
		if last, ok := i.refused.Get(tenantID); ok && i.directory.now().Sub(last) < refusedFor {
			return Import{}, fmt.Errorf("receive import: %w", tooMany)
		}
		if err := hasRoom(0); err != nil {
			return Import{}, fmt.Errorf("receive import: %w", err)
		}
	}
	if err := insertImport(ctx, db, job); sqldb.IsUniqueViolation(err) {
		earlier, err := i.Import(ctx, tenantID, job.ID)
		if errors.Is(err, ErrImportNotFound) {
			err = ErrImportUnderWay
		}
		return earlier, err
	} else if err != nil {
		return Import{}, fmt.Errorf("receive import: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, forgetImport(context.WithoutCancel(ctx), db, job))
		}
	}()
	if err := hasRoom(1); err != nil {
		return Import{}, fmt.Errorf("receive import: %w", err)
	}
	var chunk []line
	size := 0
	flush := func() error {
		if len(chunk) == 0 {
			return nil
		}
		text, err := json.Marshal(chunk)
		if err == nil {
			err = insertChunk(ctx, db, job, job.chunks, i.seal.Seal(tenantID, job.ID, text))
		}
		chunk, size, job.chunks = nil, 0, job.chunks+1
		return err
	}
	lines := bufio.NewReaderSize(body, MaxImportLine+1)
	for number := 1; ; number++ {
		text, tooLong, err := readLine(lines)
		if err != nil && err != io.EOF {
			return Import{}, err
		}
		if len(bytes.TrimSpace(text)) > 0 {
			if job.Total++; job.Total > MaxImportRows {
				return Import{}, ErrImportTooLong
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
				return Import{}, fmt.Errorf("receive import: %w", err)
			}
		}
		if err == io.EOF {
			break
		}
	}
	if job.Total == 0 {
		return Import{}, ErrImportEmpty
	}
	job.State = Queued
	if err := queueImport(ctx, db, job); err != nil {
		return Import{}, fmt.Errorf("receive import: %w", err)
	}
	i.kicked.Send()
	return job, nil
}

// readLine reads a line without its end. Of one that is too long it returns a part.
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

// Import reads a job. It fails with [ErrImportNotFound].
func (i *Importer) Import(ctx context.Context, tenantID, importID string) (Import, error) {
	job, err := selectImport(ctx, i.directory.db, tenantID, importID)
	if err == nil && job.State == Receiving {
		err = ErrImportNotFound
	}
	if err == nil {
		job.Errors, err = selectImportErrors(ctx, i.directory.db, job)
	}
	return job, err
}

// Cancel stops a job; what was imported stays. One that has ended is left as it is. It
// fails with [ErrImportNotFound].
func (i *Importer) Cancel(ctx context.Context, tenantID, importID string) (Import, error) {
	job, err := i.Import(ctx, tenantID, importID)
	if err != nil {
		return job, err
	}
	if err := cancelImport(ctx, i.directory.db, job, i.directory.now()); err != nil {
		return job, fmt.Errorf("cancel import: %w", err)
	}
	return i.Import(ctx, tenantID, importID)
}
