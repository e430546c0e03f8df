package readlease

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"
)

// A world is a simulation of the protocol: processes that hold leases and write, a database, and a
// network between them, in one thread and on a simulated time. All that is left to chance comes
// from one seed, so a run can be repeated. The decisions are those of the package; this file has
// what surrounds them: time, faults and delivery. Database and processes are in files of their own.
type world struct {
	*rand.Rand
	flaw      flaw
	durations Durations
	faults    faults
	pause     time.Duration // between the writes of a writer to a tenant
	now       time.Duration
	events    events
	database  *database
	processes []*process
	moved     map[*process]*process // addresses at which there is another process
	holders   []*holder
	writers   []*writer
	wrong     string // the first violation
	counts    *counts
}

// counts shows what the runs consisted of.
type counts struct {
	events, fromMemory, fromDatabase, commits, groups, revoked, struck, unknown, acquired, crashes, stops int
}

// faults are how often something goes wrong in a run, each a probability or a mean time between
// two; 0 is never.
type faults struct {
	slow, lost, doubled    float64 // messages between processes
	slowSQL, lostSQL       float64 // statements: late, or with an unknown outcome
	crash, stop, partition time.Duration
	stall, failover, move  time.Duration
	think                  time.Duration // the longest time between two steps of a check
}

// somewhere returns a time that is usually short and sometimes very long.
func (w *world) somewhere(slow float64, usual time.Duration) time.Duration {
	if w.Float64() < slow {
		return time.Duration(w.Int64N(int64(2 * w.durations.Lease)))
	}
	return 1 + time.Duration(w.Int64N(int64(usual)))
}

// around returns an exponentially distributed time.
func (w *world) around(mean time.Duration) time.Duration {
	return 1 + time.Duration(w.ExpFloat64()*float64(mean))
}

type event struct {
	at   time.Duration
	turn float64 // decides among events of one instant
	run  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].turn < e[j].turn
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// after runs an event in some time.
func (w *world) after(d time.Duration, run func()) {
	heap.Push(&w.events, event{w.now + d, w.Float64(), run})
}

// run simulates some time, or until a violation.
func (w *world) run(until time.Duration) {
	for len(w.events) > 0 && w.wrong == "" {
		e := heap.Pop(&w.events).(event)
		if e.at > until {
			return
		}
		w.now = e.at
		w.counts.events++
		e.run()
		for _, h := range w.holders {
			for t := range tenants {
				h.verify(t)
			}
		}
	}
}

func (w *world) violated(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf("at %v: ", w.now) + fmt.Sprintf(format, args...)
	}
}

// process is a process with its clock. It can be stopped and continued, and killed and started
// again at the same address.
type process struct {
	*world
	number       int
	life         int // events of an earlier life have no effect
	up           bool
	stoppedUntil time.Duration
	rate         float64 // of its clock
	cut          map[*process]bool
	start        []func() // what runs in it
}

func (p *process) clock() Instant { return Instant(float64(p.now) * p.rate) }

// later runs something in this life of the process, when it is not stopped.
func (p *process) later(d time.Duration, run func()) { p.inLife(p.life, d, run) }

// inLife is later for the response to a request of some life.
func (p *process) inLife(life int, d time.Duration, run func()) {
	var turn func()
	turn = func() {
		switch {
		case p.life != life:
		case p.now < p.stoppedUntil: // what is due when it continues has no order
			p.after(p.stoppedUntil-p.now+time.Duration(p.Int64N(int64(2*time.Millisecond))), turn)
		default:
			run()
		}
	}
	p.after(d, turn)
}

// at runs something at an instant of the clock of the process.
func (p *process) at(i Instant, run func()) {
	p.later(max(0, time.Duration(float64(i-p.clock())/p.rate)+1), run)
}

func (p *process) boot() {
	p.life++
	p.up = true
	p.stoppedUntil = 0
	for _, start := range p.start {
		start()
	}
}

func (p *process) crash() {
	p.counts.crashes++
	p.life++
	p.up = false
	p.database.lose(p)
	p.after(p.somewhere(0.3, 50*time.Millisecond), p.boot)
}

func (p *process) stop() {
	p.counts.stops++
	p.stoppedUntil = max(p.stoppedUntil, p.now+time.Duration(p.Int64N(int64(5*p.durations.Lease/2))))
}

// call sends a request to an address, at which usually a process is that was there before. serve
// runs in the process there and returns the response, or nil, which runs here. refused runs here if
// nothing accepts connections. Both may not run at all, and serve may run twice.
func (p *process) call(address *process, serve func(*process) func(), refused func()) {
	if address == p { // without a message
		if response := serve(p); response != nil {
			response()
		}
		return
	}
	to := address
	if other := p.moved[address]; other != nil {
		to = other
	}
	life := p.life
	send := func(respond bool) {
		if p.cut[to] || p.Float64() < p.faults.lost {
			return
		}
		p.after(p.somewhere(p.faults.slow, time.Millisecond), func() {
			if !to.up {
				if respond {
					p.inLife(life, p.somewhere(0, time.Millisecond), refused)
				}
				return
			}
			to.later(0, func() {
				response := serve(to)
				if response == nil || !respond || to.cut[p] || p.Float64() < p.faults.lost {
					return
				}
				p.inLife(life, p.somewhere(p.faults.slow, time.Millisecond), response)
			})
		})
	}
	send(true)
	if p.Float64() < p.faults.doubled {
		send(false)
	}
}

// repeatedly runs something with a mean time between two, unless that is 0.
func (w *world) repeatedly(mean time.Duration, run func()) {
	if mean == 0 {
		return
	}
	w.after(w.around(mean), func() {
		run()
		w.repeatedly(mean, run)
	})
}

// disturb begins the faults.
func (w *world) disturb() {
	any := func() *process { return w.processes[w.IntN(len(w.processes))] }
	w.repeatedly(w.faults.crash, func() {
		if p := any(); p.up {
			p.crash()
		}
	})
	w.repeatedly(w.faults.stop, func() { any().stop() })
	w.repeatedly(w.faults.partition, func() {
		from, to := any(), any()
		from.cut[to] = true
		if w.IntN(2) == 0 {
			to.cut[from] = true
		}
		w.after(w.around(2*w.durations.Lease), func() { delete(from.cut, to); delete(to.cut, from) })
	})
	w.repeatedly(w.faults.move, func() {
		one, other := w.IntN(len(w.holders)), w.IntN(len(w.holders))
		clear(w.moved)
		w.moved[w.processes[one]], w.moved[w.processes[other]] = w.processes[other], w.processes[one]
		w.after(w.around(2*w.durations.Lease), func() { clear(w.moved) })
	})
	w.repeatedly(w.faults.stall, func() {
		w.database.stalledUntil = w.now + w.somewhere(0.5, w.durations.Lease/2)
	})
	w.repeatedly(w.faults.failover, func() {
		for _, p := range w.processes {
			w.database.lose(p)
		}
		w.database.stalledUntil = w.now + w.somewhere(0.5, w.durations.Lease/2)
	})
}

// newWorld returns a world of three holders and two writers. They are five processes, or three of
// which two also write.
func newWorld(seed uint64, f flaw, c *counts) *world {
	r := rand.New(rand.NewPCG(seed, 21))
	w := &world{Rand: r, flaw: f, counts: c, durations: Durations{Lease: time.Second}, moved: map[*process]*process{}}
	often := func(chance float64) float64 { // in half of the runs
		return float64(r.IntN(2)) * chance * r.Float64()
	}
	every := func(mean time.Duration) time.Duration {
		if r.IntN(2) == 0 {
			return 0
		}
		return w.around(mean)
	}
	w.faults = faults{
		slow: often(0.2), lost: often(0.1), doubled: often(0.2),
		slowSQL: often(0.1), lostSQL: often(0.1),
		crash: every(4 * time.Second), stop: every(2 * time.Second), partition: every(4 * time.Second),
		stall: every(6 * time.Second), failover: every(10 * time.Second), move: every(8 * time.Second),
		think: w.around(2 * time.Millisecond),
	}
	w.pause = w.around(200 * time.Millisecond)
	w.database = newDatabase(w)
	separate := r.IntN(2) == 0
	n := 3
	if separate {
		n = 5
	}
	for i := range n {
		rate := 1.0
		switch r.IntN(3) { // the extremes, which the margin is made for
		case 0:
			rate = 0.95
		case 1:
			rate = 1.05
		}
		w.processes = append(w.processes, &process{world: w, number: i, rate: rate, cut: map[*process]bool{}})
	}
	for i := range 3 {
		newHolder(w.processes[i])
	}
	for i := range 2 {
		newWriter(w.processes[n-2+i])
	}
	for _, p := range w.processes {
		p.boot()
	}
	w.disturb()
	return w
}
