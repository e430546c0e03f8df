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
	// An ID is as long as the identity provider makes it.
	sum := sha256.Sum256([]byte(i.AssertionID))
	n, err := s.DB.Exec(ctx, insertAssertion, c.TenantID, c.ID, base64.RawURLEncoding.EncodeToString(sum[:]), i.NotOnOrAfter.UnixMicro())
	if err != nil {
		return fmt.Errorf("record assertion: %w", err)
	}
	if n == 0 {
		return &serviceprovider.Error{Class: serviceprovider.Stale, Detail: "the assertion was used before"}
	}
	return nil
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
