// Package readlease has the decisions of the protocol of read leases, which docs/leases.md
// describes: when a process may answer from memory, and when a writer may commit.
//
// A [Holding] is the side of a process that answers checks, for one tenant, and a [Term] is its
// registration, for all tenants. A [Revocation] is the side of a writer, for one transaction. None
// of them sends a message, reads the clock or the database: callers do so and report what happened.
// The simulation in the tests of this package is such a caller, so what it shows about these
// types holds for every caller that keeps the same order.
package readlease

import "time"

// NodeID identifies a registration of a process. A process has a new one whenever it registers.
type NodeID string

// RevocationID identifies a revocation. It is random.
type RevocationID string

// Durations are those of the protocol. All processes on one database have the same.
type Durations struct {
	Lease time.Duration // the longest time that a holder can delay a write
}

// Patience is how long a writer waits for the answers of holders.
func (d Durations) Patience() time.Duration { return d.Lease / 5 }

// Term is how long a writer waits after it has struck out a node.
func (d Durations) Term() time.Duration { return d.Lease - d.Patience() }

// Usable is how long a node may use its leases after it has sent a renewal. It is shorter than a
// term, so that clocks may run up to 5 % fast or slow, each.
func (d Durations) Usable() time.Duration { return d.Term() * 9 / 10 }

// RenewEvery is the time between two renewals.
func (d Durations) RenewEvery() time.Duration { return d.Lease / 4 }
