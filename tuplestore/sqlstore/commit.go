package sqlstore

import (
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

const (
	// maxRestarts bounds the retries of a group that the database requires.
	maxRestarts = 20
	// maxReconnects bounds the retries of a group after failed connections.
	maxReconnects = 5
)

// commit commits a group of writes and returns each its outcome. If the group was prepared ahead,
// that is its first attempt.
func (s *Store) commit(l *tenantQueue, group []*request, prepared *ahead) {
	tenant := l.tenant
	var ambiguous error // a commit was sent and its outcome is unknown
	told := &revocations{store: s, tenant: tenant}
	defer func() {
		if ambiguous == nil { // nothing was applied, or all is released
			told.release(0)
		}
	}()
	supposeNew := s.suggestsNew(group)
	var at tip
	var facts []tuplestore.Fact
	known := false
	if prepared == nil {
		at, facts, known = s.recent.known(tenant, group)
	}
	for restarts := 0; ; {
		var outcomes []outcome
		var err error
		ahead := prepared
		if prepared = nil; ahead != nil {
			outcomes, err = s.finish(ahead, told)
		} else if known {
			outcomes, err = s.attemptKnown(l, group, at, facts, told)
		} else {
			outcomes, err = s.attempt(l, group, supposeNew, told)
		}
		if err == nil {
			s.committed(l)
			for i, r := range group {
				r.deliver(outcomes[i])
			}
			return
		}
		s.dropAhead(l)
		if known {
			known = false
			if errors.Is(err, errOvertaken) {
				s.recent.pauseKnown(tenant)
			}
			if !asAmbiguous(err) {
				continue // the next attempt reads
			}
		}
		if ahead != nil && !asAmbiguous(err) && !sqldb.IsUniqueViolation(err) {
			continue // its state, its time or its connection may be over, those of the group are not
		}
		if supposeNew && sqldb.IsUniqueViolation(err) {
			supposeNew = false
			continue
		}
		if also, ok := errors.AsType[*alsoError](err); ok && !sqldb.IsRetryable(also.err) {
			also.request.deliver(outcome{err: also.err})
			if group = slices.DeleteFunc(group, func(r *request) bool { return r == also.request }); len(group) == 0 {
				return
			}
			continue
		}
		restarts++
		switch {
		case asAmbiguous(err):
			ambiguous = err
			s.Logger.Warn("outcome of a commit is unknown; reading it back", "tenant", tenant, "writes", len(group), "error", err)
		case ambiguous != nil && s.stop.Err() == nil:
			// The outcomes are unknown until the database answers.
		case ambiguous != nil:
			fail(group, ambiguous)
			return
		case sqldb.IsUnavailable(err) && restarts <= maxReconnects:
			// Nothing was applied, and another connection may work.
		case !sqldb.IsRetryable(err) || restarts >= maxRestarts:
			fail(group, fmt.Errorf("write to tenant %s: %w", tenant, err))
			return
		}
		select {
		case <-time.After(backoff(restarts)):
		case <-s.stop.Done():
		}
	}
}

// manyCreates is the number of ops from which a group counts as a bulk load.
const manyCreates = 100

// suggestsNew reports whether to assume that no relation of a group exists, which saves a
// quarter of the work of a bulk load. If one exists, the primary key is violated, and the
// group is attempted again with a read of the existing tuples. On a server that leaves dead
// rows, so the writes themselves must say that their relations are likely new.
func (s *Store) suggestsNew(group []*request) bool {
	n := 0
	for _, r := range group {
		if s.DB.Dialect() != sqldb.SQLite && !r.write.LikelyNew {
			return false
		}
		for _, op := range r.write.Ops {
			if op.Kind != tuplestore.Create || op.Others != tuplestore.KeepOthers {
				return false
			}
		}
		if len(r.write.Absent)+len(r.write.Preconditions) > 0 {
			return false
		}
		n += len(r.write.Ops)
	}
	return n >= manyCreates
}

func asAmbiguous(err error) bool {
	_, ok := errors.AsType[*sqldb.AmbiguousCommitError](err)
	return ok
}

// backoff returns a time that grows from about a millisecond to about a second.
func backoff(n int) time.Duration {
	return mathrand.N(2*time.Millisecond<<min(n, 9)) + time.Millisecond
}

func fail(group []*request, err error) {
	for _, r := range group {
		r.deliver(outcome{err: err})
	}
}
