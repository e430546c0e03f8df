package tuplestore

// Tx and Batch stand for transactions and statements of a database. A browser has none, and the
// database drivers are not built for it: the types have no values and no methods.
type (
	Tx    struct{ _ never }
	Batch struct{ _ never }
)

type never interface{ never() }
