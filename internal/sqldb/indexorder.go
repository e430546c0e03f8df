package sqldb

// IndexOrder is the statement by which PostgreSQL does not sort until the end of the transaction.
const IndexOrder = `SELECT set_config('enable_sort', 'off', TRUE)`

// InIndexOrder adds the statements that queue adds. They read the next rows of an index in its
// order: while PostgreSQL's statistics do not know the range, a plan that reads and sorts all of
// it seems as good. Other databases have no such setting.
func (b *Batch) InIndexOrder(d Dialect, queue func()) {
	if d != Postgres {
		queue()
		return
	}
	b.Queue(IndexOrder, nil, nil)
	queue()
	b.Queue(`SELECT set_config('enable_sort', 'on', TRUE)`, nil, nil)
}
