package readlease

import (
	"slices"
	"time"

	"stonetown/tuplestore"
)

// tenants is how many tenants the simulation has. A node is registered for all of them, so one
// does not show all.
const tenants = 2

// database is what the protocol needs of one: rows with locks, at READ COMMITTED.
type database struct {
	*world
	stalledUntil time.Duration
	heads        [tenants]head
	nodes        map[NodeID]*nodeRow
	committed    map[int]bool // the groups, as receipts show them
	sessions     map[*process][]*transaction
}

// head is the head of a tenant and the rows of its holders.
type head struct {
	lock
	revision tuplestore.Revision
	holders  map[NodeID]bool
}

// nodeRow is a row of lease_nodes. One that was deleted has gone.
type nodeRow struct {
	lock
	address *process
	gone    bool
}

func newDatabase(w *world) *database {
	d := &database{world: w, nodes: map[NodeID]*nodeRow{}, committed: map[int]bool{}, sessions: map[*process][]*transaction{}}
	for t := range d.heads {
		d.heads[t].holders = map[NodeID]bool{}
	}
	return d
}

// lock is the lock of a row.
type lock struct {
	owner   *transaction
	waiting []*waiter
}

type waiter struct {
	by  *transaction
	run func()
}

// transaction is a transaction of one session.
type transaction struct {
	*database
	of       *process
	life     int // of the process
	ended    bool
	locks    []*lock
	onCommit []func()
}

func (d *database) begin(p *process) *transaction {
	t := &transaction{database: d, of: p, life: p.life}
	open := slices.DeleteFunc(d.sessions[p], func(t *transaction) bool { return t.ended })
	d.sessions[p] = append(open, t)
	return t
}

// take runs something when the transaction has the lock.
func (t *transaction) take(l *lock, run func()) {
	switch l.owner {
	case nil:
		l.owner = t
		t.locks = append(t.locks, l)
		run()
	case t:
		run()
	default:
		l.waiting = append(l.waiting, &waiter{t, run})
	}
}

func (t *transaction) commit() {
	for _, effect := range t.onCommit {
		effect()
	}
	t.end()
}

// end ends a transaction and gives its locks to others, in the order in which they came.
func (t *transaction) end() {
	t.ended = true
	for _, l := range t.locks {
		l.owner = nil
		for l.owner == nil && len(l.waiting) > 0 {
			next := l.waiting[0]
			l.waiting = l.waiting[1:]
			if !next.by.ended {
				next.by.take(l, next.run)
			}
		}
	}
}

// lose ends the sessions of a process.
func (d *database) lose(p *process) {
	for _, t := range d.sessions[p] {
		t.rollBack()
	}
	d.sessions[p] = nil
}

// rollBack ends a transaction some time later, as the database finds that its session has ended.
// What was sent before may still be executed.
func (t *transaction) rollBack() {
	t.after(t.somewhere(0.2, 20*time.Millisecond), func() {
		if !t.ended {
			t.end()
		}
	})
}

// send sends a statement of a transaction. exec runs in the database and calls its argument when it
// is done, with what then runs in the process. If the outcome is unknown, failed runs there, and
// exec may have run, may never run, or may run later; the transaction ends.
func (t *transaction) send(exec func(done func(func())), failed func()) {
	p, d := t.of, t.database
	lost := d.Float64() < d.faults.lostSQL
	execute := !lost || d.IntN(2) == 0
	answered := false
	fail := func() {
		if answered {
			return
		}
		answered = true
		t.rollBack()
		failed()
	}
	if lost {
		p.inLife(t.life, d.somewhere(0.5, 20*time.Millisecond), fail)
	} else {
		p.inLife(t.life, 5*d.durations.Lease, fail) // a time limit
	}
	if !execute {
		return
	}
	var arrive func()
	arrive = func() {
		switch {
		case t.ended:
			if !lost {
				p.inLife(t.life, 0, fail)
			}
		case d.now < d.stalledUntil:
			d.after(d.stalledUntil-d.now+time.Duration(d.Int64N(int64(time.Millisecond))), arrive)
		default:
			exec(func(then func()) {
				if lost {
					return
				}
				p.inLife(t.life, d.somewhere(d.faults.slowSQL, 2*time.Millisecond), func() {
					if !answered {
						answered = true
						then()
					}
				})
			})
		}
	}
	d.after(d.somewhere(d.faults.slowSQL, 2*time.Millisecond), arrive)
}

// lockNode locks the row of a node, if there is one.
func (t *transaction) lockNode(node NodeID, found func(*nodeRow)) {
	row := t.nodes[node]
	if row == nil || row.gone {
		found(nil)
		return
	}
	t.take(&row.lock, func() {
		if row.gone { // while it waited
			found(nil)
			return
		}
		found(row)
	})
}

// register deletes the row of a node, if there is one, and inserts another.
func (t *transaction) register(before, node NodeID, done func()) {
	t.lockNode(before, func(row *nodeRow) {
		if row != nil {
			row.gone = true
		}
		t.nodes[node] = &nodeRow{address: t.of}
		t.commit()
		done()
	})
}

// holdersOf returns the nodes with a row for a tenant, other than those that are gone.
func (d *database) holdersOf(tenant int) (nodes []NodeID) {
	for node := range d.heads[tenant].holders {
		if !d.nodes[node].gone {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes) // so that a run can be repeated
	return nodes
}
