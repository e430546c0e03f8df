package resources

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/tuplestore"
)

const (
	// maxImportLine is the maximum length of a line of an import, in bytes.
	maxImportLine = 64 << 10
	// The maximum size of a chunk: the lines of a revision.
	usualChunk    = 10_000
	maxChunk      = 20_000
	maxChunkBytes = 4 << 20
	// maxFirstLine keeps line numbers far from overflow.
	maxFirstLine = 1_000_000_000_000
)

// ImportRelations stores relations, one of each line, chunk by chunk.
func (h *Handlers) ImportRelations(ctx context.Context, request ImportRelationsRequestObject) (ImportRelationsResponseObject, error) {
	info := web.InfoOf(ctx)
	i := &relationImport{ctx: ctx, handlers: h, info: info, lines: bufio.NewReaderSize(request.Body, maxImportLine+2), next: 1, size: usualChunk}
	var v validation
	if first := request.Params.FirstLine; first != nil {
		i.next = *first
	}
	if size := request.Params.ChunkSize; size != nil {
		i.size = *size
	}
	if i.next < 1 || i.next > maxFirstLine {
		v.Add("first_line", "out_of_range", fmt.Sprintf("must be between 1 and %d", int64(maxFirstLine)))
	}
	if i.size < 1 || i.size > maxChunk {
		v.Add("chunk_size", "out_of_range", fmt.Sprintf("must be between 1 and %d", maxChunk))
	}
	i.total.Line = i.next - 1
	return i, v.Err()
}

// importAtOnce is the number of chunks that are stored at the same time, in order.
const importAtOnce = 3

// relationImport is an import in progress, and its response. One goroutine reads chunks, some store
// one each, and the one of the request acknowledges them in order: the next chunk is read, and the
// ones after it prepared, while one is committed.
type relationImport struct {
	ctx      context.Context
	handlers *Handlers
	info     *web.RequestInfo
	lines    *bufio.Reader
	next     int64 // the number of the next line
	size     int   // the lines of a chunk
	ops      int   // of the chunk before
	total    ImportLine
}

// importChunk is some lines of an import.
type importChunk struct {
	ops         []engine.WriteOp
	lines       []int64 // of the ops
	first, last int64
	expired     int
	hash        hash.Hash // of the lines
}

// VisitImportRelationsResponse implements [ImportRelationsResponseObject].
func (i *relationImport) VisitImportRelationsResponse(w http.ResponseWriter) error {
	to := web.NewLines(w)
	to.ReportErrors()
	ctx, cancel := context.WithCancel(i.ctx)
	defer cancel()
	chunks, unread := make(chan *importChunk), make(chan error, 1)
	go func() {
		err := i.read(ctx, chunks)
		close(chunks)
		unread <- err
	}()
	stores := stores{sequence: tuplestore.NewSequence()}
	err := stores.all(i, to, chunks)
	stores.wait()
	if err != nil {
		cancel()
		// Wakes a reader that waits for the client. Where that is not supported, it waits
		// until the time of a part of an upload is over.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	}
	if reading := <-unread; err == nil {
		err = reading
	}
	if err != nil {
		return err
	}
	i.total.Event, i.total.RequestID = "done", i.info.RequestID
	if err := to.Write(i.total); err != nil {
		return err
	}
	return to.Flush()
}

// read sends the chunks of the body until its end. The chunks before a line that is refused are
// sent, that line's chunk is not. A panic is an error, because it is not in the goroutine of the
// request.
func (i *relationImport) read(ctx context.Context, chunks chan<- *importChunk) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while an import was read: %v", p)
		}
	}()
	for {
		c, err := i.chunk(ctx)
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return err
		}
		if c.last >= c.first {
			select {
			case chunks <- c:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if end {
			return nil
		}
	}
}

// chunk reads the next chunk. At the end of the body the error is io.EOF. Where a chunk ends
// depends only on the line with which it begins, so that it is the same when it is sent again.
func (i *relationImport) chunk(ctx context.Context) (*importChunk, error) {
	c := &importChunk{
		ops: make([]engine.WriteOp, 0, i.ops), lines: make([]int64, 0, i.ops),
		first: i.next, last: i.next - 1, hash: sha256.New(),
	}
	defer func() { i.ops = len(c.ops) }()
	size := 0
	for n := 0; n < i.size && size < maxChunkBytes; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text, err := i.lines.ReadSlice('\n')
		end := err == io.EOF
		switch {
		case end && len(text) == 0:
			return c, io.EOF
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, atLine(web.ValidationFailed(web.FieldError{
				Field: "body", Code: "too_long", Message: fmt.Sprintf("a line must have at most %d bytes", maxImportLine),
			}), i.next)
		case err != nil && !end:
			return nil, i.unread(err)
		}
		size += len(text)
		c.hash.Write(text)
		if err := c.add(bytes.TrimSpace(text), i.next); err != nil {
			return nil, err
		}
		c.last = i.next
		i.next++
		if end {
			return c, io.EOF
		}
	}
	return c, nil
}

// unread returns the reason for which the body could not be read.
func (i *relationImport) unread(err error) error {
	if ended := i.ctx.Err(); ended != nil { // the client has disconnected, or its token has expired
		return ended
	}
	if _, ok := errors.AsType[*web.Error](err); ok {
		return err
	}
	return web.BodyError(err)
}

// add validates a line.
func (c *importChunk) add(text []byte, line int64) error {
	if len(text) == 0 {
		return nil
	}
	var in ContextualRelation
	if err := web.Decode(text, &in); err != nil {
		return located(err, line)
	}
	var v validation
	op := engine.WriteOp{
		Resource: v.resource("resource/", in.Resource.Type, in.Resource.ExternalID),
		Relation: in.Relation,
		Subject:  v.subject("", in.Subject),
	}
	v.Text("", "relation", in.Relation)
	v.qualifier("", in.ExpiresAt, in.Condition, &op)
	if err := v.Err(); err != nil {
		return located(err, line)
	}
	if err := managed(op.Resource, op.Relation); err != nil {
		return located(err, line)
	}
	if !op.ExpiresAt.IsZero() && !op.ExpiresAt.After(time.Now()) {
		c.expired++
		return nil
	}
	c.ops, c.lines = append(c.ops, op), append(c.lines, line)
	return nil
}

// stores are the chunks that are being stored, in order.
type stores struct {
	sequence *tuplestore.Sequence
	begun    []*chunkStore
}

// chunkStore is the storage of a chunk.
type chunkStore struct {
	chunk   *importChunk
	done    chan struct{} // closed when the rest is set
	written engine.WriteResponse
	err     error
}

// all stores chunks until there are no more, and acknowledges each when it is stored.
func (s *stores) all(i *relationImport, to *web.Lines, chunks <-chan *importChunk) error {
	for chunks != nil || len(s.begun) > 0 {
		next := chunks
		if len(s.begun) == importAtOnce {
			next = nil
		}
		var stored <-chan struct{}
		if len(s.begun) > 0 {
			stored = s.begun[0].done
		}
		select {
		case c, more := <-next:
			if more {
				s.begin(i, c)
			} else {
				chunks = nil
			}
		case <-stored:
			if err := s.acknowledge(i, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin starts to store a chunk, after those that have begun.
func (s *stores) begin(i *relationImport, c *importChunk) {
	store := &chunkStore{chunk: c, done: make(chan struct{})}
	s.begun = append(s.begun, store)
	turn, likelyNew := s.sequence.Next(), i.likelyNew()
	go func() {
		defer close(store.done)
		defer func() {
			if p := recover(); p != nil {
				turn.Fail()
				store.err = fmt.Errorf("panic while a chunk was stored: %v", p)
			}
		}()
		if store.written, store.err = i.write(c, turn, likelyNew); store.err != nil {
			turn.Fail()
		}
	}()
}

// acknowledge waits for the first chunk. If the types have changed since it was validated, it is
// stored again, and so are those after it, before any new chunk.
func (s *stores) acknowledge(i *relationImport, to *web.Lines) error {
	first := s.begun[0]
	<-first.done
	rest := s.begun[1:]
	if errors.Is(first.err, tuplestore.ErrSchemaChanged) {
		s.wait()
		if first.written, first.err = i.write(first.chunk, nil, i.likelyNew()); first.err == nil {
			s.begun, s.sequence = nil, tuplestore.NewSequence()
			for _, store := range rest {
				s.begin(i, store.chunk)
			}
			rest = s.begun
		}
	}
	if first.err != nil {
		return i.refused(first.err, first.chunk)
	}
	s.begun = rest
	return i.stored(to, first.chunk, first.written)
}

// wait returns when nothing is being stored.
func (s *stores) wait() {
	for _, store := range s.begun {
		<-store.done
	}
}

// likelyNew reports whether no relation of the import has existed so far.
func (i *relationImport) likelyNew() bool {
	return i.total.Updated+i.total.Replaced+i.total.Existed == 0
}

// write commits a chunk.
func (i *relationImport) write(c *importChunk, turn *tuplestore.Turn, likelyNew bool) (engine.WriteResponse, error) {
	origin := origin(i.info)
	if origin.CommitID != "" {
		origin.CommitID += "." + strconv.FormatInt(c.first, 10)
	}
	return i.handlers.Engine.Import(i.ctx, i.info.Tenant.ID, engine.WriteRequest{
		Origin: origin, Ops: c.ops, Request: "import " + hex.EncodeToString(c.hash.Sum(nil)), LikelyNew: likelyNew, Turn: turn,
	}, c.first, c.last)
}

// stored acknowledges a chunk.
func (i *relationImport) stored(to *web.Lines, c *importChunk, written engine.WriteResponse) error {
	line := ImportLine{Event: "stored", Line: c.last, Expired: c.expired}
	if i.total.ConsistencyToken == "" { // the head is sent with the first chunk
		i.handlers.warnOfWrites(i.info, c.ops)
	}
	for _, status := range written.Statuses {
		switch status {
		case tuplestore.Created:
			line.Created++
		case tuplestore.Updated:
			line.Updated++
		case tuplestore.Replaced:
			line.Replaced++
		default:
			line.Existed++
		}
	}
	line.ConsistencyToken = written.Token
	i.total.add(line)
	if err := to.Write(line); err != nil {
		return err
	}
	return to.Flush()
}

// add counts a chunk.
func (total *ImportLine) add(chunk ImportLine) {
	total.Line = chunk.Line
	total.Created += chunk.Created
	total.Updated += chunk.Updated
	total.Replaced += chunk.Replaced
	total.Existed += chunk.Existed
	total.Expired += chunk.Expired
	total.ConsistencyToken = chunk.ConsistencyToken
}

// refused adds the number of the line to the error of a chunk, if one is the reason.
func (i *relationImport) refused(err error, c *importChunk) error {
	var failed *engine.OpError
	switch {
	case errors.Is(err, tuplestore.ErrCommitIDReused):
		return &web.Error{
			Status: http.StatusUnprocessableEntity, Code: "idempotency_key_reused",
			Message: fmt.Sprintf("the idempotency key was used for other lines from %d on", c.first), Details: web.Details{"line": c.first},
		}
	case errors.As(err, &failed):
		if e := translate(withSubject(i.info, failed.Err)); e != nil {
			return atLine(e, c.lines[failed.Index])
		}
	}
	return err
}

// located adds the number of a line to an error that is a response.
func located(err error, line int64) error {
	if e, ok := errors.AsType[*web.Error](err); ok {
		return atLine(e, line)
	}
	return err
}

func atLine(e *web.Error, line int64) *web.Error {
	located := *e
	located.Details = web.Details{"line": line}
	maps.Copy(located.Details, e.Details)
	return &located
}
