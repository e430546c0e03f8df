package pgtest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"stonetown/internal/netline"
)

// Fault is an injected error between a client and its database, at one batch of statements:
// all messages that the client sends before it waits.
type Fault string

const (
	// For any batch. The statements are not run.
	SerializationFailure Fault = "40001"          // the transaction must start over
	AdminShutdown        Fault = "57P01"          // the server closes the connection
	Dropped              Fault = "dropped"        // the connection breaks before anything arrives
	Stalled              Fault = "stalled"        // the answer takes a while
	Torn                 Fault = "torn"           // the answer arrives in small pieces
	Unanswered           Fault = "unanswered"     // the batch is executed, and the connection breaks
	CommitUnknown        Fault = "40003 applied"  // a commit is applied and reported as unknown
	CommitLost           Fault = "40003 lost"     // a commit is not applied and reported as unknown
	CommitLate           Fault = "commit is late" // a commit arrives long after the connection broke
)

// Faults for batches without and with a commit.
var (
	AnyFaults    = []Fault{SerializationFailure, AdminShutdown, Dropped, Stalled, Torn, Unanswered}
	CommitFaults = []Fault{SerializationFailure, AdminShutdown, Dropped, Stalled, Torn, Unanswered, CommitUnknown, CommitLost, CommitLate}
)

// Faulty is a proxy of a database that injects faults. It parses the wire protocol to find the
// ends of batches and the commits. It is safe for concurrent use.
type Faulty struct {
	URL string // of the database through this line
	// Delay is how long Stalled and CommitLate take.
	Delay time.Duration

	network, address string
	working          sync.WaitGroup

	mu       sync.Mutex
	choose   func(commits bool) Fault // nil: nothing goes wrong
	injected map[Fault]int
	conns    map[net.Conn]bool
	closed   bool
}

// NewFaulty starts a proxy of the database at rawURL, without faults. It is closed when the
// test ends.
func NewFaulty(t testing.TB, rawURL string) *Faulty {
	t.Helper()
	network, address, err := netline.PostgresServer(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &Faulty{Delay: 300 * time.Millisecond, network: network, address: address, injected: map[Fault]int{}, conns: map[net.Conn]bool{}}
	f.working.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed below
			}
			f.working.Go(func() { f.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		f.mu.Lock()
		f.closed = true
		for c := range f.conns {
			_ = c.Close()
		}
		f.mu.Unlock()
		f.working.Wait()
	})
	if f.URL, err = netline.PostgresThrough(rawURL, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	return f
}

// Randomly injects faults into a share of the batches, chosen from those given for batches with
// and without a commit.
func (f *Faulty) Randomly(r *rand.Rand, share float64, commits, others []Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.choose = func(isCommit bool) Fault {
		if from := map[bool][]Fault{true: commits, false: others}[isCommit]; len(from) > 0 && r.Float64() < share {
			return from[r.IntN(len(from))]
		}
		return ""
	}
}

// Next injects a fault into the next batch that commits, or that does not.
func (f *Faulty) Next(commits bool, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.choose = func(is bool) Fault {
		if is != commits {
			return ""
		}
		f.choose = nil
		return fault
	}
}

// DropAfter drops the connections at every batch after the next n ones, so that the database sees a
// client die. The channel is closed when that happens.
func (f *Faulty) DropAfter(n int) (dropped <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := make(chan struct{})
	f.choose = func(bool) Fault {
		if n--; n >= 0 {
			return ""
		}
		if n == -1 {
			close(first)
		}
		return Dropped
	}
	return first
}

// Heal ends the injection of faults.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.choose = nil
}

// Injected returns the number of injections of each fault.
func (f *Faulty) Injected() map[Fault]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := make(map[Fault]int, len(f.injected))
	for fault, n := range f.injected {
		counts[fault] = n
	}
	return counts
}

// meet is the fault that a batch meets, if any.
func (f *Faulty) meet(commits bool) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.choose == nil {
		return ""
	}
	fault := f.choose(commits)
	if fault != "" {
		f.injected[fault]++
	}
	return fault
}

// keep remembers a connection until it is closed; false if it is too late.
func (f *Faulty) keep(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		_ = c.Close()
		return false
	}
	f.conns[c] = true
	return true
}

// session is one connection of a client.
type session struct {
	line           *Faulty
	client, server net.Conn
	fromClient     *pgproto3.Backend
	toServer       *pgproto3.Frontend

	statements map[string]string // by name: what was prepared
	portals    map[string]string // by name: the statement that was bound
	executed   []string          // by the batch
	status     atomic.Int32      // the status of the transaction in the last answer; 'I' outside

	writing sync.Mutex   // of toClient, by both directions
	toWrite io.Writer    // the client, perhaps in pieces
	answer  atomic.Value // of func(pgproto3.BackendMessage) verdict: what happens to answers
}

type verdict int

const (
	pass verdict = iota
	swallow
	hangUp
)

func (f *Faulty) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial(f.network, f.address)
	if err != nil {
		return
	}
	defer server.Close()
	if !f.keep(client) || !f.keep(server) {
		return
	}
	s := &session{
		line: f, client: client, server: server, fromClient: pgproto3.NewBackend(client, client),
		toServer: pgproto3.NewFrontend(server, server), statements: map[string]string{}, portals: map[string]string{}, toWrite: client,
	}
	s.status.Store('I')
	s.answer.Store(func(pgproto3.BackendMessage) verdict { return pass })
	startup, err := s.fromClient.ReceiveStartupMessage()
	if err != nil {
		return
	}
	text, err := startup.Encode(nil)
	if err != nil {
		return
	}
	if _, err := server.Write(text); err != nil {
		return
	}
	if _, cancel := startup.(*pgproto3.CancelRequest); cancel {
		_, _ = io.Copy(io.Discard, server)
		return
	}
	f.working.Go(s.answers)
	s.requests()
}

// requests forwards the messages of the client, a batch at a time.
func (s *session) requests() {
	var batch []byte
	for {
		message, err := s.fromClient.Receive()
		if err != nil {
			_ = s.server.Close()
			return
		}
		s.follow(message)
		if batch, err = message.Encode(batch); err != nil {
			return
		}
		switch message.(type) {
		case *pgproto3.Sync, *pgproto3.Query, *pgproto3.Terminate, *pgproto3.Flush, *pgproto3.CopyDone, *pgproto3.CopyFail:
		default:
			continue
		}
		if !s.deliver(batch, s.commits()) {
			return
		}
		batch, s.executed = batch[:0], s.executed[:0]
	}
}

// follow tracks which statements are prepared, and executed by the batch.
func (s *session) follow(message pgproto3.FrontendMessage) {
	switch m := message.(type) {
	case *pgproto3.Parse:
		s.statements[m.Name] = m.Query
	case *pgproto3.Bind:
		s.portals[m.DestinationPortal] = s.statements[m.PreparedStatement]
	case *pgproto3.Execute:
		s.executed = append(s.executed, normalized(s.portals[m.Portal]))
	case *pgproto3.Query:
		s.executed = append(s.executed, normalized(m.String))
	}
}

// normalized returns a statement in lower case, without space around it.
func normalized(sql string) string { return strings.ToLower(strings.TrimSpace(sql)) }

// commits reports whether the batch commits: by a statement, or because it writes without BEGIN.
func (s *session) commits() bool {
	if slices.ContainsFunc(s.executed, isCommit) {
		return true
	}
	return s.status.Load() == 'I' && len(s.executed) > 0 && !strings.HasPrefix(s.executed[0], "begin") && slices.ContainsFunc(s.executed, func(sql string) bool {
		return strings.HasPrefix(sql, "insert") || strings.HasPrefix(sql, "update") || strings.HasPrefix(sql, "delete")
	})
}

// isCommit reports whether a normalized statement commits, by itself or, on CockroachDB, by releasing
// the savepoint of retries.
func isCommit(sql string) bool {
	return strings.HasPrefix(sql, "commit") || sql == "release savepoint cockroach_restart"
}

// deliver forwards a batch or injects its fault. It reports whether the connection continues.
func (s *session) deliver(batch []byte, commits bool) bool {
	switch fault := s.line.meet(commits); fault {
	case SerializationFailure:
		// As a database does: the transaction, if there is one, is failed.
		return s.refuse("ERROR", string(fault), 'E')
	case AdminShutdown:
		s.refuse("FATAL", string(fault), 'I')
		return s.hangUp()
	case CommitLost:
		s.refuse("ERROR", "40003", 'I')
		return s.hangUp()
	case Dropped:
		return s.hangUp()
	case CommitLate:
		_ = s.client.Close()
		time.Sleep(s.line.Delay)
		_, _ = s.server.Write(batch)
		// The response is discarded.
		s.answer.Store(func(m pgproto3.BackendMessage) verdict {
			if _, done := m.(*pgproto3.ReadyForQuery); done {
				return hangUp
			}
			return swallow
		})
		return false
	case Unanswered:
		s.answer.Store(func(m pgproto3.BackendMessage) verdict {
			if _, done := m.(*pgproto3.ReadyForQuery); done {
				return hangUp
			}
			return swallow
		})
	case CommitUnknown:
		committed, failed := false, false
		s.answer.Store(func(m pgproto3.BackendMessage) verdict {
			switch m := m.(type) {
			case *pgproto3.CommandComplete:
				tag := string(m.CommandTag)
				if committed = tag == "COMMIT" || tag == "RELEASE"; committed {
					s.refuse("ERROR", "40003", 0)
				}
			case *pgproto3.ErrorResponse:
				failed = true
			case *pgproto3.ReadyForQuery:
				if !committed && !failed { // a transaction without COMMIT
					s.refuse("ERROR", "40003", 0)
				}
				s.answer.Store(func(pgproto3.BackendMessage) verdict { return pass })
				return pass
			}
			if committed {
				return swallow
			}
			return pass
		})
	case Stalled:
		time.Sleep(s.line.Delay)
	case Torn:
		s.writing.Lock()
		s.toWrite = pieces{s.client}
		s.writing.Unlock()
	}
	_, err := s.server.Write(batch)
	return err == nil
}

// refuse answers in the server's place; status 0 leaves the end of the answer to
// the server.
func (s *session) refuse(severity, code string, status byte) bool {
	text, err := (&pgproto3.ErrorResponse{
		Severity: severity, SeverityUnlocalized: severity, Code: code, Message: "injected by the test",
	}).Encode(nil)
	if err == nil && status != 0 {
		text, err = (&pgproto3.ReadyForQuery{TxStatus: status}).Encode(text)
	}
	return err == nil && s.write(text) == nil
}

func (s *session) hangUp() bool {
	_ = s.client.Close()
	_ = s.server.Close()
	return false
}

func (s *session) write(text []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	_, err := s.toWrite.Write(text)
	return err
}

// answers forwards the messages of the server.
func (s *session) answers() {
	defer s.client.Close()
	for {
		message, err := s.toServer.Receive()
		if err != nil {
			return
		}
		if ready, ok := message.(*pgproto3.ReadyForQuery); ok {
			s.status.Store(int32(ready.TxStatus))
		}
		switch s.answer.Load().(func(pgproto3.BackendMessage) verdict)(message) {
		case hangUp:
			s.hangUp()
			return
		case swallow:
			continue
		}
		text, err := message.Encode(nil)
		if err != nil || s.write(text) != nil {
			_ = s.server.Close()
			return
		}
	}
}

// pieces writes a few bytes at a time.
type pieces struct{ w io.Writer }

func (p pieces) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		var m int
		m, err = p.w.Write(b[:min(7, len(b))])
		n, b = n+m, b[m:]
		if n%70 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return n, err
}

// String lists how often each fault was met.
func (f *Faulty) String() string {
	var parts []string
	total := 0
	for _, fault := range CommitFaults {
		if n := f.Injected()[fault]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", fault, n))
			total += n
		}
	}
	return fmt.Sprintf("%d faults (%s)", total, strings.Join(parts, ", "))
}
