// Package reporting has the saved reports of a tenant, their schedules, and the results of their runs.
//
// A report has a [Kind], which says what its rows are, and [Parameters]. A run of it goes
//
//	queued -> running -> completed or failed
//
// and is a background job, so that a page that waits for it can be left. The rows are stored in chunks
// while they are found: a run has at most [MaxRows] of them and takes at most [MaxTime]. The results
// of the last [KeptRuns] runs of a report are kept, for [KeptFor]. An attempt of a run that another
// process has taken over writes nothing more, because each chunk commits only if the run still belongs
// to the attempt.
//
// # Schedules
//
// The instant at which a report runs next is a column of it. Every process looks for reports that are
// due; the one that moves the column forward starts the run, in the same transaction. The next instant
// follows the present one, so a schedule that was missed several times runs once. Mails to recipients
// are jobs that commit with the end of the run. They have figures and a link, and no rows. A recipient
// who may not read the run when the mail is sent gets none, and the run says why.
//
// # Rights
//
// The rows of a report may not tell more than its reader could read otherwise. [Scopes] returns what
// each kind requires, and is the only place that says so: for saving, running and reading, and of the
// recipients of mails.
package reporting
