package federation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

const (
	// RefreshEvery is how often metadata is read again, and the expiry of certificates
	// examined.
	RefreshEvery = 24 * time.Hour
	// RetryEvery is how often it is tried after a failure.
	RetryEvery = time.Hour
	// MinRefresh is the minimum age of metadata that a sign-in has read again.
	MinRefresh = 5 * time.Minute
	// ExpiryNotice is how long before the last signing certificate expires the event comes.
	ExpiryNotice = 30 * 24 * time.Hour

	dueEvery = time.Minute // between steps of the loop
)

// refreshJob is the kind of the jobs that refresh a connection.
const refreshJob = "refresh federation metadata"

type refreshPayload struct {
	ConnectionID string `json:"connection_id"`
}

func (r *Registry) registerJob() {
	r.jobs.Register(jobs.Kind{Name: refreshJob, Concurrency: 8, Attempts: 5, Handle: func(ctx context.Context, job jobs.Job) error {
		var p refreshPayload
		if err := job.Read(&p); err != nil {
			return errors.Join(err, jobs.ErrDrop)
		}
		return r.refresh(ctx, job.TenantID, p.ConnectionID)
	}})
}

// Run refreshes metadata until ctx ends. Every process may run it.
func (r *Registry) Run(ctx context.Context) {
	jobs.Loop{Name: "refresh federation metadata", Every: dueEvery, Logger: r.log}.Run(ctx, r.RefreshDue)
}

// RefreshDue queues a job for each connection whose metadata is due, some at a time. It reports
// whether there may be more.
func (r *Registry) RefreshDue(ctx context.Context) (more bool, err error) {
	return r.jobs.EnqueueDue(ctx, r.now(), jobs.Due{
		Table: "federation_connections", Kind: refreshJob, Payload: func(id string) any { return refreshPayload{id} }, Again: RetryEvery,
	})
}

// checkAt returns when the metadata of a connection is due, in microseconds since 1970. The time
// varies, so that connections that were created together are not due together for ever.
func (r *Registry) checkAt(c Connection) int64 {
	switch {
	case !c.hasMetadata() || c.State == Disabled:
		return jobs.Never
	case !c.Metadata.FailingSince.IsZero():
		return r.now().Add(RetryEvery).UnixMicro()
	}
	pause := RefreshEvery - rand.N(RefreshEvery/8)
	return c.Metadata.RefreshedAt.Add(pause).UnixMicro()
}

// Refresh reads the metadata of a provider again, at a sign-in with a key that is not in it. It
// returns the connection with what was read, or as it is if the metadata was read, or could not be
// read, less than [MinRefresh] ago. It fails with [ErrNotFound].
func (r *Registry) Refresh(ctx context.Context, tenantID, connectionID string) (Connection, error) {
	c, err := r.Get(ctx, tenantID, connectionID)
	since := r.now().Add(-MinRefresh)
	recent := func(c Connection) bool {
		return c.source() == "" || c.Metadata.RefreshedAt.After(since) || c.Metadata.FailedAt.After(since)
	}
	if err != nil || recent(c) {
		return c, err
	}
	// Concurrent sign-ins wait for one request to the provider, which the first of them must not
	// cancel.
	_, err, _ = r.refreshes.Do(tenantID+"/"+connectionID, func() (any, error) {
		ctx := context.WithoutCancel(ctx)
		// One that has read the connection before the request of another ended comes here after it.
		if c, err := r.Get(ctx, tenantID, connectionID); err != nil || recent(c) {
			return nil, err
		}
		return nil, r.refresh(ctx, tenantID, connectionID)
	})
	if err != nil {
		return Connection{}, err
	}
	return r.Get(ctx, tenantID, connectionID)
}

// refresh reads the metadata of a connection again and stores it, with its events. That a
// provider fails is stored, and is no error.
func (r *Registry) refresh(ctx context.Context, tenantID, connectionID string) error {
	t, err := r.tenants.FederationTenant(ctx, tenantID)
	if err != nil {
		return fmt.Errorf("refresh federation metadata: %w", err)
	}
	before, err := r.Get(ctx, tenantID, connectionID)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil // deleted meanwhile
	case err != nil:
		return err
	case !before.hasMetadata() || before.State == Disabled:
		return nil
	}
	after := before.clone()
	var events []eventlog.Event
	if before.source() != "" {
		m, err := r.fetch(ctx, before)
		if err == nil {
			err = sameProvider(before.Metadata, m)
		}
		var failed *MetadataError
		switch {
		case errors.As(err, &failed):
			r.log.WarnContext(ctx, "metadata of an identity provider", "tenant", tenantID, "connection", connectionID, "host", failed.URLHost, "reason", failed.Reason, "error", failed.Message)
			after.Metadata.FailedAt = r.now()
			if after.Metadata.FailingSince.IsZero() {
				after.Metadata.FailingSince = after.Metadata.FailedAt
			}
		case err != nil:
			return err
		default:
			after.Metadata = m
			if !before.Metadata.equal(m) {
				events = append(events, refreshed(ctx, t, before, after))
			}
		}
	} else {
		after.Metadata.RefreshedAt = r.now() // what was sent is as it was
	}
	if last, ok := after.expiring(r.now()); ok {
		after.warned = last.NotAfter
		events = append(events, certificateExpiring(ctx, t, after, last))
	}
	err = r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := record(ctx, tx, tenantID, events...); err != nil {
			return err
		}
		return update(ctx, tx, after, r.checkAt(after))
	})
	if errors.Is(err, errChanged) {
		return nil // by a request, which has read the metadata if the provider is another one
	}
	if err != nil {
		return fmt.Errorf("refresh federation metadata: %w", err)
	}
	return nil
}

// sameProvider fails with [*MetadataError] if metadata is of another identity provider than
// before: its subjects would be those of other users.
func sameProvider(before, after Metadata) error {
	if a, b := before.IdentityProvider, after.IdentityProvider; a != nil && b != nil && a.EntityID != b.EntityID {
		return &MetadataError{"", invalidMetadata, "the metadata is of another identity provider than before"}
	}
	return nil
}

// equal reports whether two readings are of equal metadata. The end of its validity, which is new in
// each reading of some, does not matter.
func (m Metadata) equal(other Metadata) bool {
	return reflect.DeepEqual(m.Provider, other.Provider) && reflect.DeepEqual(lasting(m.IdentityProvider), lasting(other.IdentityProvider))
}

func lasting(p *serviceprovider.IdentityProvider) *serviceprovider.IdentityProvider {
	if p == nil {
		return nil
	}
	c := *p
	c.ValidUntil = time.Time{}
	return &c
}

// expiring returns the signing certificate that expires last, if that is soon and there was no
// event about it.
func (c Connection) expiring(now time.Time) (last serviceprovider.Certificate, ok bool) {
	if c.Metadata.IdentityProvider == nil {
		return last, false
	}
	last = lastCertificate(c.Metadata.IdentityProvider)
	return last, now.Add(ExpiryNotice).After(last.NotAfter) && !c.warned.Equal(last.NotAfter)
}
