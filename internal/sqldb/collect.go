package sqldb

// Collector collects rows of several users of a batch, which a few statements write together.
type Collector interface {
	// Queue queues the statements, in the SQL of a dialect.
	Queue(d Dialect, b *Batch)
}

// Collect returns the collector that all callers with the same key share; create makes it for
// the first. Its statements are sent after the others of the batch. Collect must be called for
// each addition of rows.
func (b *Batch) Collect(key any, create func() Collector) Collector {
	b.collected++
	if c, ok := b.collectors[key]; ok {
		return c
	}
	if b.collectors == nil {
		b.collectors = make(map[any]Collector)
	}
	c := create()
	b.collectors[key], b.keys = c, append(b.keys, key)
	return c
}

// complete queues the statements of the collectors.
func (b *Batch) complete(d Dialect) {
	for _, key := range b.keys {
		b.collectors[key].Queue(d, b)
	}
	b.collectors, b.keys, b.collected = nil, nil, 0
}
