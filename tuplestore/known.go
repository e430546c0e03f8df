package tuplestore

// Known is what the caller of a write knows of the tuples of its ops: which of them existed at a
// revision, and with which qualifiers.
type Known struct {
	Epoch    string
	Revision Revision
	Facts    []Fact // those of the tuples that existed
}

// DependsOnTuples reports whether nothing but the tuples of its ops, and the schema, decides what
// becomes of the write.
func (w *Write) DependsOnTuples() bool {
	if len(w.Absent)+len(w.Preconditions) > 0 || w.PutSchema != nil || w.Also != nil {
		return false
	}
	for i := range w.Ops {
		if w.Ops[i].Kind == DeleteMatching || w.Ops[i].Others != KeepOthers {
			return false
		}
	}
	return true
}
