package signin

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"stonetown/identity/federation"
	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/jobs"
)

// useAssertion records an assertion until it expires, so that it is accepted once, by all processes.
func (s *Service) useAssertion(ctx context.Context, c federation.Connection, i serviceprovider.Identity) error {
	first, err := once(ctx, s.DB, c, i.AssertionID, i.NotOnOrAfter)
	if err == nil && !first {
		err = &serviceprovider.Error{Class: serviceprovider.Stale, Detail: "the assertion was used before"}
	}
	return err
}

// once records a message of a provider until it expires, and reports whether it was not recorded
// before. The ids of assertions have no spaces; those of other messages have one.
func once(ctx context.Context, by interface {
	Exec(ctx context.Context, statement string, args ...any) (int64, error)
}, c federation.Connection, id string, expires time.Time,
) (bool, error) {
	sum := sha256.Sum256([]byte(id)) // an id is as long as the provider makes it
	n, err := by.Exec(ctx, insertAssertion, c.TenantID, c.ID, base64.RawURLEncoding.EncodeToString(sum[:]), expires.UnixMicro())
	if err != nil {
		return false, fmt.Errorf("record a message of a provider: %w", err)
	}
	return n > 0, nil
}

// deleteEvery is the interval of deleting expired rows.
const deleteEvery = time.Hour

// Run deletes expired assertions and reports, until ctx ends. Several processes may run it.
func (s *Service) Run(ctx context.Context) {
	jobs.Loop{Name: "delete expired assertions and reports", Every: deleteEvery, Logger: s.Logger}.Run(ctx, jobs.Once(s.deleteExpired))
}

func (s *Service) deleteExpired(ctx context.Context) error {
	now := s.now()
	if _, err := s.DB.Exec(ctx, deleteAssertions, now.UnixMicro()); err != nil {
		return err
	}
	_, err := s.DB.Exec(ctx, deleteReports, now.Add(-ReportFor).UnixMicro())
	return err
}

const (
	insertAssertion = `
		INSERT INTO federation_assertions (tenant_id, connection_id, id, expires_at) VALUES ($1, $2, $3, $4) ON CONFLICT (tenant_id, connection_id, id) DO NOTHING`
	deleteAssertions = `DELETE FROM federation_assertions WHERE expires_at <= $1`
)
