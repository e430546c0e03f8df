package keys

import (
	"context"
	"errors"
	"fmt"

	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

// firstKind is the kind of jobs that make the first key of an algorithm.
const firstKind = "signing_key"

type firstJob struct {
	Alg Alg `json:"alg"`
}

// Require queues, in a transaction, the first keys of algorithms that a tenant will sign with,
// unless it has them. The ES256 key is made where it is needed, because that takes less time than
// a job. [Service.Wake] after the commit starts the jobs at once.
func (k *Service) Require(ctx context.Context, tx *sqldb.Tx, tenantID string, algs ...Alg) error {
	var b sqldb.Batch
	for _, alg := range algs {
		if alg == ES256 {
			continue
		}
		exists, err := hasActive(ctx, tx, tenantID, alg)
		if err != nil {
			return fmt.Errorf("require %s key of tenant %s: %w", alg, tenantID, err)
		}
		if !exists {
			k.jobs.Enqueue(&b, tenantID, firstKind, firstJob{Alg: alg})
		}
	}
	return tx.Send(ctx, &b)
}

// Wake starts the jobs of [Service.Require] without waiting for the next poll.
func (k *Service) Wake() { k.jobs.Wake() }

func (k *Service) makeFirst(ctx context.Context, job jobs.Job) error {
	var j firstJob
	if err := job.Read(&j); err != nil || !j.Alg.Valid() {
		return errors.Join(err, jobs.ErrDrop)
	}
	return k.first(ctx, job.TenantID, j.Alg)
}

// first makes the first key of an algorithm, unless there is one. When it returns, all processes
// accept its signatures.
func (k *Service) first(ctx context.Context, tenantID string, alg Alg) error {
	if _, err := k.advance(ctx, tenantID, missing(ES256, alg), false); err != nil {
		return fmt.Errorf("first %s key of tenant %s: %w", alg, tenantID, err)
	}
	k.revoked.Settle(ctx)
	return nil
}
