package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// candidates is how many due jobs of a tenant are read for one free place. Other
	// processes may take the first of them.
	candidates = 4
	// noteFor is how long taking a job, and storing the result of an attempt, may take.
	noteFor = 10 * time.Second

	collectEvery = time.Hour
	// deadFor is how long dead jobs are stored.
	deadFor = 30 * 24 * time.Hour
)

// Run runs jobs until ctx ends. Handlers that run then may go on for [Config.Grace]; jobs
// of those that take longer are returned to the queue. Any number of processes can run the
// queue of one database.
func (q *Queue) Run(ctx context.Context) {
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var collecting, working sync.WaitGroup
	collecting.Go(func() {
		Loop{Name: "delete dead jobs", Every: collectEvery, Logger: q.log}.Run(ctx, Once(func(ctx context.Context) error {
			return q.deleteDead(ctx, q.clock().Add(-deadFor))
		}))
	})
	Loop{Name: "read due jobs", Every: Poll, Wake: q.wake, Logger: q.log}.Run(ctx, Once(func(ctx context.Context) error {
		return q.start(ctx, func(l *lane, job Job) {
			working.Go(func() { q.work(work, l, job) })
		})
	}))
	collecting.Wait()
	grace := time.AfterFunc(q.grace, func() { stop(errStopped) })
	working.Wait()
	grace.Stop()
}

// start takes due jobs of all kinds that have free places, and passes them to run.
func (q *Queue) start(ctx context.Context, run func(*lane, Job)) error {
	free := make(map[*lane]int)
	q.mu.Lock()
	for _, l := range q.kinds {
		if n := l.Concurrency - l.running; n > 0 {
			free[l] = n
		}
		l.behind = l.Concurrency == l.running
	}
	q.mu.Unlock()
	due, err := q.due(ctx, free)
	if err != nil {
		return err
	}
	for l, n := range free {
		var err error
		if len(due[l]) <= n {
			_, err = q.take(ctx, l, due[l], len(due[l]), run)
		} else {
			err = q.startFairly(ctx, l, n, run)
		}
		if err != nil {
			return fmt.Errorf("start jobs %s: %w", l.Name, err)
		}
	}
	return nil
}

// startFairly starts up to n jobs of a kind of which more are due, one for each tenant in
// turn.
func (q *Queue) startFairly(ctx context.Context, l *lane, n int, run func(*lane, Job)) error {
	q.mu.Lock()
	l.behind = true
	q.mu.Unlock()
	for idle := 0; n > 0 && idle < 2; {
		found, err := q.dueAfter(ctx, l, l.tenant)
		if err != nil {
			return err
		}
		if len(found) == 0 { // of the tenants after the last one; begin with the first one
			idle++
			l.tenant = ""
			continue
		}
		l.tenant = found[0].TenantID
		started, err := q.take(ctx, l, found, 1, run)
		if err != nil {
			return err
		}
		if started > 0 {
			idle = 0
		}
		n -= started
	}
	return nil
}

// take takes up to n of some jobs that no other process has taken, and runs them.
func (q *Queue) take(ctx context.Context, l *lane, due []Job, n int, run func(*lane, Job)) (taken int, err error) {
	for _, job := range due {
		if taken == n || ctx.Err() != nil {
			break
		}
		claimed, err := q.claim(ctx, l, &job)
		if err != nil {
			return taken, err
		}
		if !claimed {
			continue
		}
		taken++
		q.mu.Lock()
		l.running++
		q.mu.Unlock()
		run(l, job)
	}
	return taken, nil
}

// work runs a job that this process has taken, and stores the result.
func (q *Queue) work(ctx context.Context, l *lane, job Job) {
	defer func() {
		q.mu.Lock()
		l.running--
		behind := l.behind
		q.mu.Unlock()
		if behind {
			q.wake.Send()
		}
	}()
	var err error
	switch job.payload, err = q.seal.Open(job.TenantID, job.ID, job.payload); {
	case err != nil:
		err = fmt.Errorf("open payload: %w", err)
	case job.Attempt > l.Attempts:
		err = errAttemptLost
	default:
		err = q.attempt(ctx, l, &job)
	}
	if errors.Is(err, ErrLeaseLost) {
		q.log.WarnContext(ctx, "job lost", "job", job.ID, "tenant", job.TenantID, "kind", job.Kind, "attempt", job.Attempt)
		return
	}
	// A stop of the process does not prevent that the result is stored.
	stopped := errors.Is(context.Cause(ctx), errStopped)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteFor)
	defer cancel()
	if err := q.note(ctx, l, job, err, stopped); err != nil {
		q.log.ErrorContext(ctx, "store result of job", "job", job.ID, "tenant", job.TenantID, "kind", job.Kind, "error", err)
	}
}

// attempt runs the handler, and renews the lease meanwhile.
func (q *Queue) attempt(ctx context.Context, l *lane, job *Job) (err error) {
	handed := *job
	held, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	held, stop := context.WithTimeoutCause(held, l.Timeout, ErrTimeout)
	defer stop()
	done := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() { q.renewWhile(held, l, job, done, lose) })
	defer func() {
		close(done)
		renewing.Wait() // renewing changes job.due
		if err == nil {
			return
		}
		if cause := context.Cause(held); cause != nil && !errors.Is(err, cause) {
			err = errors.Join(cause, err)
		}
	}()
	traced, span := q.tracer.Job(held, "job "+job.Kind)
	span.String("stonetown.tenant", job.TenantID)
	span.Int("stonetown.attempt", job.Attempt)
	err = l.Handle(traced, handed)
	span.End(err)
	return err
}

// renewWhile renews the lease of a job until the handler is done. If another process has
// taken the job, or may have because the lease could not be renewed in time, it calls lost.
func (q *Queue) renewWhile(ctx context.Context, l *lane, job *Job, done <-chan struct{}, lost func(error)) {
	tick := time.NewTicker(l.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		// The end of the handler's context does not end the renewal: the handler still runs.
		renewing, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Lease/3)
		held, err := q.renew(renewing, l, job)
		cancel()
		switch {
		case err == nil && !held:
			lost(ErrLeaseLost)
			return
		case err != nil && q.clock().UnixMicro() >= job.due:
			lost(fmt.Errorf("%w: %w", ErrLeaseLost, err))
			return
		}
	}
}

// note stores the result of an attempt.
func (q *Queue) note(ctx context.Context, l *lane, job Job, err error, stopped bool) error {
	switch {
	case err == nil:
		q.done.Add(1)
		return q.remove(ctx, job)
	case stopped:
		return q.again(ctx, job, job.Attempt-1, 0)
	}
	dropped, last := errors.Is(err, ErrDrop), job.Attempt >= l.Attempts
	q.failed.Add(1)
	q.log.WarnContext(ctx, "job failed", "job", job.ID, "tenant", job.TenantID, "kind", job.Kind, "attempt", job.Attempt,
		"given_up", dropped || last, "error", err)
	switch {
	case dropped:
		return q.remove(ctx, job)
	case last:
		q.dead.Add(1)
		return q.bury(ctx, l, job, err)
	}
	return q.again(ctx, job, job.Attempt, l.Backoff(job.Attempt))
}
