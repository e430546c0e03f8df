package fair

import (
	"sync/atomic"
	"time"
)

// CommitThread is a thread for the commits of a database in the process. Beside heavy work they are
// made on it, and it uses the processors of heavy work, so that light requests have the others. Much
// of a commit is done in the kernel, which may not be preempted: a light request whose processor has
// a commit waits, even if another processor is idle. It is safe for concurrent use.
type CommitThread struct {
	threads *Threads
	busy    atomic.Bool
	recent  duty // used only while busy is set
}

// maxDuty is the part of the time that commits may take on the processors of heavy work, in percent.
// More of them would leave little to heavy work, and light requests need not be as quick beside a
// bulk load.
const maxDuty = 75

// NewCommitThread returns a thread, which exists from the first use on until ended is closed.
func NewCommitThread(ended <-chan struct{}) *CommitThread {
	light.mayBeShort.Store(true)
	prepare := func() {
		lengthenSlice() // a light request on these processors does not wait for a commit
		bind()
	}
	return &CommitThread{threads: &Threads{n: 1, prepare: prepare, jobs: make(chan func()), ended: ended}}
}

// Do does work as [Threads.Do] does, on the thread if there is heavy work or was some lately, and
// otherwise on that of the caller, which is faster. Until it returns, other calls do their work on
// the threads of their callers, also calls within the work.
func (c *CommitThread) Do(work func()) {
	if !c.busy.CompareAndSwap(false, true) {
		work()
		return
	}
	defer c.busy.Store(false)
	began := time.Now()
	defer func() { c.recent.add(began, time.Now()) }()
	if heavyLately() && c.recent.percent < maxDuty {
		c.threads.Do(work)
	} else {
		work()
	}
}

// duty is the part of the time that was spent with something, lately.
type duty struct {
	percent int // of the last window
	start   time.Time
	spent   time.Duration // in this window
}

// window is how long a duty is measured, at least.
const window = 100 * time.Millisecond

// add adds what took from one time to another.
func (d *duty) add(from, to time.Time) {
	d.spent += to.Sub(from)
	if passed := to.Sub(d.start); passed >= window {
		*d = duty{percent: int(100 * d.spent / passed), start: to}
	}
}
