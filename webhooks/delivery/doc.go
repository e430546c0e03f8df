// Package delivery delivers events to webhook subscriptions.
//
// # From the log to the receiver
//
// A reader of the event log ([stonetown/internal/eventlog.Reader]) compares each event with the
// enabled subscriptions of its tenant and adds a row for each [Delivery] (fanout.go). The rows
// commit with the new position of the reader, so that no event is omitted and none is
// fanned out twice, however many processes there are.
//
// The deliveries of one subscription are its lane (lane.go, window.go). One process at a time
// holds a lane, by a lease, and sends the deliveries that are due, up to [Concurrency] at the same time.
// The process that adds deliveries to a free lane takes it in the same transaction, so that the
// first attempt needs no further read. A process sends nothing unless its lease lasts longer
// than the attempt can take; if it dies, another process takes the lane when the lease ends,
// and repeats the attempts that have no result. On SQLite the next process takes it at once.
// Delivery is therefore at least once.
//
// # Attempts
//
// An attempt (attempt.go) is successful if the receiver responds with a 2xx status within ten
// seconds. Otherwise the next one follows after the delay of the schedule (schedule.go), six in all.
// Then the delivery is a [DeadLetter] for seven days, and can be replayed.
//
// # Fairness
//
// Attempts need one of a bounded number of places, which tenants share fairly. A receiver that
// has failed repeatedly gets one place instead of eight, from a pool of its own, so that
// receivers that hang delay each other and not the healthy ones.
//
// The fan-out serves tenants in turn too. What subscriptions may see can take long to find out, so
// such tenants have workers of their own (ahead.go).
//
// # Time
//
// The clock of a lane stops while its tenant is suspended. Stored times of deliveries and dead
// letters are by that clock (see the table webhook_lanes).
package delivery
