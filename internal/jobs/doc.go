// Package jobs runs work in the background.
//
// A [Loop] repeats a step in every process, such as deleting expired rows.
//
// A [Queue] is a transactional outbox: it stores jobs in the database and runs each of them
// after the transaction that enqueued it has committed. Each job is of a [Kind], which has
// the handler, the number of jobs that a process runs at the same time, and the policy of
// retries.
//
// # At least once
//
// A process that takes a job has a lease on it, which it renews while the handler runs. If
// the process dies, the lease expires and another process runs the job. A handler can
// therefore run more than once for one job. If a process loses a lease because it could not
// renew it in time, the context of the handler ends with [ErrLeaseLost], and the result of
// the handler is ignored.
//
// A job that fails is run again after the backoff of its kind. A job that has failed in
// all its attempts is dead: it is moved to the table dead_jobs and counted in [Stats].
//
// # Fairness
//
// While more jobs of a kind are due than can run, a free place goes to the next tenant in
// turn that has one. Ten thousand jobs of one tenant delay a job of another tenant by one
// job for each place, not by ten thousand.
package jobs
