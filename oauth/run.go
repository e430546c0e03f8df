package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"stonetown/internal/jobs"
	"stonetown/oauth/internal/storage"
)

// tidy deletes expired rows: an hour after their expiry, so that a late request gets a precise
// error, and proofs and assertions, which are many, at once.
func (s *Service) tidy(ctx context.Context) error {
	for table, later := range map[string]time.Duration{
		"authorization_requests": time.Hour, "codes": time.Hour, "device_codes": time.Hour, "refresh_tokens": time.Hour, "grants": time.Hour, "revocations": time.Hour, "dpop_proofs": 0, "saml_logouts": 0,
		"client_assertions": time.Minute, // for clocks that are late
	} {
		if _, err := s.db.Exec(ctx, `DELETE FROM `+table+` WHERE expires_at < $1`, storage.Now(s.clock).Add(-later).UnixMicro()); err != nil {
			return fmt.Errorf("delete %s that are over: %w", table, err)
		}
	}
	return s.Keys.DeleteRecords(ctx)
}

// upkeepEvery is the interval of [Service.Run].
const upkeepEvery = time.Minute

// Run deletes expired rows and unused unvetted applications, and rotates signing keys,
// periodically, until ctx ends. Any number of processes may run it.
func (s *Service) Run(ctx context.Context, log *slog.Logger) {
	jobs.Loop{Name: "look after tokens and keys", Every: upkeepEvery, Logger: log}.Run(ctx, jobs.Once(func(ctx context.Context) error {
		return errors.Join(s.tidy(ctx), s.Clients.ForgetUnvetted(ctx), s.Keys.RotateDue(ctx))
	}))
}
