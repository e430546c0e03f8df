package engine

import (
	"context"

	"stonetown/engine/internal/nodecache"
	"stonetown/engine/internal/view"
	"stonetown/tuplestore"
)

// A tenant that is not resident has an era while all changes of its tuples are known. The era
// ends, and what was kept is of no use, when the tenant is loaded or idle, when its types or its
// history change, and after more changes than are worth reading. The next request begins another.

// presentEra returns the tenant's era, which may begin at its position; nil if nothing is kept.
// mu is held for reading, and the tenant is not resident.
func (t *tenant) presentEra() *nodecache.Era {
	if t.engine.parts == nil {
		return nil
	}
	if era := t.era.Load(); era != nil {
		return era
	}
	era := t.engine.parts.NewEra()
	if !t.era.CompareAndSwap(nil, era) {
		era.End()
	}
	return t.era.Load()
}

// endEra ends the tenant's era. mu is held.
func (t *tenant) endEra() { t.era.Swap(nil).End() }

// moveEra prepares the era for a newer position, given the tuples that have changed after an
// earlier one, if these are known completely. mu is held.
func (t *tenant) moveEra(from, to position, changed []tuplestore.Tuple, complete bool) {
	era := t.era.Load()
	switch {
	case era == nil:
	case complete && from.epoch == t.position.epoch && from.epoch == to.epoch && from.revision <= t.position.revision:
		era.Touch(changed, to.revision)
	default:
		t.endEra()
	}
}

// keep makes a view of the tenant's position use what is kept of an era.
func (v *readView) keep(era *nodecache.Era) {
	snapshot, ok := v.snapshot.(tuplestore.WholeFinder)
	if era == nil || !ok {
		return
	}
	reads := &v.engine.stats.coldReads
	v.view.Reader.UseCache(view.Parts{
		Cache: era.At(v.at.revision),
		Find: func(ctx context.Context, l tuplestore.Lookup, objects []tuplestore.Object) (tuplestore.Whole, error) {
			reads.Add(1)
			found, err := snapshot.FindWhole(ctx, l, objects)
			return found, expired(err)
		},
	})
}
