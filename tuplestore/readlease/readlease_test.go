package readlease

import (
	"flag"
	"testing"
	"time"
)

var (
	runs = flag.Int("runs", 250, "runs of the simulation, each with another seed")
	seed = flag.Uint64("seed", 1, "the first seed")
)

// flaw is a part of the protocol that is left out. Each has to lead to a violation, which shows
// that the part is needed, and that the simulation would find its absence in the product.
type flaw string

const (
	none flaw = ""

	noMargin            flaw = "the usable time is a whole term"
	renewalFromReply    flaw = "the usable time counts from the reply to the renewal"
	renewalWithoutRow   flaw = "a renewal that finds no row counts"
	registrationKeeps   flaw = "a new registration keeps what was held"
	answerOfAnotherNode flaw = "a process answers for another one that had its address"

	acquisitionWithoutHead  flaw = "an acquisition does not lock the head"
	unknownAcquisitionHolds flaw = "an acquisition with an unknown outcome counts"
	acquiringForgets        flaw = "revocations that arrive during an acquisition are forgotten"
	givenUpButAcquiring     flaw = "a holding that was given up is acquired all the same"
	overdueCloses           flaw = "a revocation that is overdue is closed and the tenant kept"

	holdersBeforeHead    flaw = "the writer reads the holders before it locks the head"
	commitBeforeAnswers  flaw = "the writer commits before holders have answered"
	waitWithoutStriking  flaw = "the writer waits without striking out the node"
	struckWithoutWaiting flaw = "the writer strikes out the node without waiting"
	struckAtOnce         flaw = "that a node was struck out is visible before the commit"
	lateAnswerCounts     flaw = "an answer ends the wait for a node that was struck out"

	releaseBeforeCommit    flaw = "the release is sent before the commit"
	releaseWithoutRevision flaw = "a release does not raise the floor"
	releaseOfAll           flaw = "a release closes the revocations of other writers"
	unknownIsReleased      flaw = "a commit with an unknown outcome is released"
)

var flaws = []flaw{
	noMargin, renewalFromReply, renewalWithoutRow, registrationKeeps, answerOfAnotherNode,
	acquisitionWithoutHead, unknownAcquisitionHolds, acquiringForgets, givenUpButAcquiring, overdueCloses,
	holdersBeforeHead, commitBeforeAnswers, waitWithoutStriking, struckWithoutWaiting, struckAtOnce, lateAnswerCounts,
	releaseBeforeCommit, releaseWithoutRevision, releaseOfAll, unknownIsReleased,
}

const simulated = 20 * time.Second

// In no run does a process answer from an earlier revision than the one that is visible, whatever
// happens to processes, the network and the database.
func TestSimulation(t *testing.T) {
	var c counts
	for i := range *runs {
		w := newWorld(*seed+uint64(i), none, &c)
		if w.run(simulated); w.wrong != "" {
			t.Fatalf("seed %d: %s", *seed+uint64(i), w.wrong)
		}
	}
	t.Logf("%d runs: %+v", *runs, c)
	if c.fromMemory < c.fromDatabase/10 || min(c.commits, c.struck, c.unknown, c.acquired, c.crashes, c.stops) < *runs {
		t.Error("this shows too little")
	}
}

// Without any one of its parts, the protocol fails in some run.
func TestEachPartIsNeeded(t *testing.T) {
	for _, f := range flaws {
		t.Run(string(f), func(t *testing.T) {
			for i := range *runs {
				w := newWorld(*seed+uint64(i), f, new(counts))
				if w.run(simulated); w.wrong != "" {
					t.Logf("run %d: %s", i+1, w.wrong)
					return
				}
			}
			t.Errorf("no violation in %d runs", *runs)
		})
	}
}
