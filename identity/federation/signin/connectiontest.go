package signin

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stonetown/identity/federation"
	"stonetown/identity/federation/claims"
	"stonetown/identity/onetime"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("federation_signin", migrations) }

// ErrTestNotFound is returned for an unknown test, and for one that was deleted after [ReportFor].
var ErrTestNotFound = errors.New("the test was not found")

const (
	// TestFor is how long a test waits for its browser.
	TestFor = 10 * time.Minute
	// ReportFor is how long a report is kept.
	ReportFor = 24 * time.Hour

	kindTest onetime.Kind = "federation_test"
)

// TestState is the state of a test.
type TestState string

// The states.
const (
	TestPending   TestState = "pending"
	TestCompleted TestState = "completed"
	TestExpired   TestState = "expired"
)

// Report is the result of a test of a connection.
type Report struct {
	Success bool
	// Duration is the time from the start at the provider to the end of the test.
	Duration time.Duration
	// Claims are what the provider sent; for tests that did not fail before.
	Claims   map[string]any
	Warnings []claims.Warning
}

// Test is a test of a connection.
type Test struct {
	ID        string
	State     TestState
	ExpiresAt time.Time // UTC
	Report    *Report   // of a completed test
}

// Document is the representation of a test in responses.
type Document struct {
	State      TestState        `json:"state"`
	Success    *bool            `json:"success"`
	DurationMS *int64           `json:"duration_ms"`
	Claims     any              `json:"claims_received"` // an object; nil: the provider sent none
	Warnings   []claims.Warning `json:"warnings"`
}

// Document returns the representation of a test.
func (t Test) Document() Document {
	d := Document{State: t.State, Warnings: []claims.Warning{}}
	if r := t.Report; r != nil {
		ms := r.Duration.Milliseconds()
		d.Success, d.DurationMS, d.Warnings = &r.Success, &ms, append(d.Warnings, r.Warnings...)
		if r.Claims != nil {
			d.Claims = r.Claims
		}
	}
	return d
}

// report is the stored form.
type report struct {
	Success    bool             `json:"success"`
	DurationMS int64            `json:"duration_ms"`
	Claims     map[string]any   `json:"claims,omitempty"`
	Warnings   []claims.Warning `json:"warnings,omitempty"`
}

// NewTest creates a test of a connection, enabled or not, and returns the secret with which one
// browser can begin it. It fails with [federation.ErrNotFound].
func (s *Service) NewTest(ctx context.Context, tenantID, connectionID string) (test Test, secret string, c federation.Connection, err error) {
	if c, err = s.Connections.Get(ctx, tenantID, connectionID); err != nil {
		return Test{}, "", c, err
	}
	test = Test{ID: id.New(id.ConnectionTest), State: TestPending, ExpiresAt: s.now().Add(TestFor)}
	err = s.DB.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		b.Queue(insertTest, []any{tenantID, test.ID, connectionID, []byte{}, int64(0), test.ExpiresAt.UnixMicro()}, nil)
		secret, _ = s.tokens.Issue(&b, onetime.New{Kind: kindTest, TenantID: tenantID, Payload: pending{ConnectionID: connectionID, TestID: test.ID}, For: TestFor})
		return tx.Send(ctx, &b)
	})
	return test, secret, c, err
}

// BeginTest is [Service.Begin] for a test. It fails with [ErrTestExpired], or as Begin does. A test
// that fails at the provider is completed.
func (s *Service) BeginTest(ctx context.Context, t federation.Tenant, slug, secret string) (Begun, error) {
	token, err := s.tokens.Find(ctx, t.ID, kindTest, secret)
	var p pending
	if err == nil {
		err = token.Read(&p)
	}
	if err == nil {
		err = s.DB.Tx(ctx, func(tx *sqldb.Tx) error {
			if err := onetime.Use(ctx, tx, token); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, beginTest, t.ID, p.TestID, s.now().UnixMicro())
			return err
		})
	}
	if errors.Is(err, onetime.ErrInvalid) {
		return Begun{}, ErrTestExpired
	}
	if err != nil {
		return Begun{}, err
	}
	c, err := s.Connections.Get(ctx, t.ID, p.ConnectionID)
	if errors.Is(err, federation.ErrNotFound) || err == nil && c.Slug != slug {
		err = ErrTestExpired
	}
	if err != nil {
		return Begun{}, err
	}
	b, err := s.begin(ctx, t, c, pending{TestID: p.TestID}, "", Demands{})
	if failed, ok := errors.AsType[*Failure](err); ok {
		if _, err := s.report(ctx, t, c, p.TestID, statement{}, failed); err != nil {
			return Begun{}, err
		}
	}
	return b, err
}

// Test reads a test of a connection. It fails with [ErrTestNotFound].
func (s *Service) Test(ctx context.Context, tenantID, connectionID, testID string) (Test, error) {
	test := Test{ID: testID}
	if !sqldb.IsText(connectionID) || !sqldb.IsText(testID) {
		return Test{}, ErrTestNotFound
	}
	var sealed []byte
	var expires int64
	err := s.DB.QueryRow(ctx, selectTest, tenantID, testID, connectionID).Scan(&sealed, &expires)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Test{}, ErrTestNotFound
	}
	if err != nil {
		return Test{}, fmt.Errorf("read test of a connection: %w", err)
	}
	test.ExpiresAt = time.UnixMicro(expires).UTC()
	switch {
	case len(sealed) > 0:
		text, err := s.Seal.Open(tenantID, testID, sealed)
		var r report
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			return Test{}, fmt.Errorf("read report of a test: %w", err)
		}
		test.State, test.Report = TestCompleted, &Report{r.Success, time.Duration(r.DurationMS) * time.Millisecond, r.Claims, r.Warnings}
	case s.now().Before(test.ExpiresAt):
		test.State = TestPending
	default:
		test.State = TestExpired
	}
	return test, nil
}

// report stores the report of a test, with its event.
func (s *Service) report(ctx context.Context, t federation.Tenant, c federation.Connection, testID string, i statement, failed error) (*Report, error) {
	r := report{Success: failed == nil, Claims: i.Claims}
	if failed == nil {
		user, warnings, err := c.User(i.Claims)
		if err != nil {
			return nil, err
		}
		r.Warnings = append(warnings, i.Warnings...)
		if user.Email != "" && !user.EmailVerified {
			r.Warnings = append(r.Warnings, claims.Warning{Target: "email_verified", Code: "unverified", Message: "the provider has not verified the address, so accounts are linked only with a proof"})
		}
	} else {
		failure, ok := errors.AsType[*Failure](failed)
		if !ok {
			return nil, failed
		}
		// The detail is for the administrator, who runs the test.
		r.Warnings = []claims.Warning{{Code: failure.Reason, Message: failure.Detail}}
		if failure.Detail == "" {
			r.Warnings[0].Message = failure.Error()
		}
		_ = s.logged(ctx, c, failed)
	}
	now := s.now()
	err := s.DB.Tx(ctx, func(tx *sqldb.Tx) error {
		var begun int64
		err := tx.QueryRow(ctx, selectBegun, t.ID, testID).Scan(&begun)
		if errors.Is(err, sqldb.ErrNoRows) {
			return ErrExpired
		}
		if err != nil {
			return err
		}
		r.DurationMS = now.Sub(time.UnixMicro(begun)).Milliseconds()
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		b.Queue(completeTest, []any{t.ID, testID, s.Seal.Seal(t.ID, testID, text)}, nil)
		eventlog.Append(&b, t.ID, tested(ctx, t, c, testID, r.Success))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return nil, err
	}
	return &Report{r.Success, time.Duration(r.DurationMS) * time.Millisecond, r.Claims, r.Warnings}, nil
}

// testedEvent is the data of federation.connection_tested.
type testedEvent struct {
	Connection federation.Document `json:"connection"`
	TestID     string              `json:"test_id"`
	Success    bool                `json:"success"`
}

func tested(ctx context.Context, t federation.Tenant, c federation.Connection, testID string, success bool) eventlog.Event {
	return eventlog.Of(ctx, eventlog.FederationConnectionTested, testedEvent{c.Document(t), testID, success})
}

const (
	insertTest    = `INSERT INTO federation_tests (tenant_id, id, connection_id, report, begun_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`
	beginTest     = `UPDATE federation_tests SET begun_at = $3 WHERE tenant_id = $1 AND id = $2`
	selectBegun   = `SELECT begun_at FROM federation_tests WHERE tenant_id = $1 AND id = $2`
	completeTest  = `UPDATE federation_tests SET report = $3 WHERE tenant_id = $1 AND id = $2`
	selectTest    = `SELECT report, expires_at FROM federation_tests WHERE tenant_id = $1 AND id = $2 AND connection_id = $3`
	deleteReports = `DELETE FROM federation_tests WHERE expires_at < $1`
)
