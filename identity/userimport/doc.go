// Package userimport imports users in the background, by jobs of [jobs.Queue].
//
// [Importer.Receive] stores the rows of an import as a job: one JSON object on each line,
// encrypted, in chunks. Each chunk is imported in one transaction together with the progress of
// the job, so that the failure of a process neither loses a row nor imports it twice.
//
//	receiving  the rows are being stored
//	queued     no process has begun
//	running    a background job imports a chunk, and enqueues the job of the next chunk
//	completed  every row was imported or has failed
//	cancelled  the remaining rows were deleted
//
// A row that fails, such as one with the address of an existing user, does not affect the
// others. A job has the rights of the caller that requested it. The tables are part of
// [identity.Migrations].
package userimport
