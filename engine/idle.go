package engine

import "time"

// idleLooks is how often a tenant is looked at until it counts as idle.
const idleLooks = 4

// dropIdle forgets the tenants without requests for [Config.IdleAfter], until the engine is closed.
// So the memory of a deployment depends on the tenants in use, and not on all that ever were. It also
// frees the memory that lists use again.
func (e *Engine) dropIdle() {
	tick := time.NewTicker(max(e.idleAfter/idleLooks, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-e.background.Done():
			return
		case <-tick.C:
		}
		e.dropListings()
		e.tenants.Range(func(_, t any) bool {
			t.(*tenant).look()
			return true
		})
	}
}

// look forgets the tenant if it was not used since the last looks.
func (t *tenant) look() {
	if t.unused.Add(1) <= idleLooks {
		return
	}
	t.mu.Lock()
	idle := t.unused.Load() > idleLooks // no request was first
	if idle {
		t.graph, t.program, t.position = nil, nil, position{}
		t.endEra()
	}
	t.mu.Unlock()
	if idle {
		t.lease.Forget()
		t.engine.resident.set(t, 0)
		t.engine.mapped.set(t, 0)
		t.cold.Store(nil)
	}
}

// use notes that a request uses the tenant. It rarely writes, because all requests of a tenant
// share the value.
func (t *tenant) use() {
	if t.unused.Load() != 0 {
		t.unused.Store(0)
	}
}
