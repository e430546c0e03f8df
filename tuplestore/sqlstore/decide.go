package sqlstore

import (
	"bytes"
	"slices"

	"stonetown/tuplestore"
)

// decide determines the outcomes of all writes, in order. The error, if any, is that of the
// transaction.
func (a *attempt) decide() error {
	a.outcomes = make([]outcome, len(a.group))
	a.now = a.store.Clock().UnixMicro()
	changed := false // by a write without a commit ID
	for i, r := range a.group {
		o, writes, err := a.decideOne(r)
		if err != nil {
			return err
		}
		a.outcomes[i] = o
		changed = changed || writes && r.write.CommitID == ""
	}
	if changed && !a.store.onlyWriter() { // only with a server can the outcome of a commit be unknown
		first := !slices.ContainsFunc(a.group, func(r *request) bool { return len(r.sent) > 0 })
		a.mark = a.effects.mark(first, a.view.Head().Revision, a.now)
	}
	return nil
}

// decideOne determines the outcome of one write after those before it, and whether this attempt
// writes something for it.
func (a *attempt) decideOne(r *request) (_ outcome, writes bool, err error) {
	if o, ok := a.earlier(r); ok {
		return o, false, nil
	}
	if err := a.ended(r); err != nil {
		return outcome{err: err}, false, nil
	}
	effect, err := a.view.Validate(r.write)
	if err != nil {
		a.end(r)
		return outcome{err: err}, false, nil
	}
	if err := r.runAlso(a); err != nil {
		return outcome{}, false, &alsoError{r, err}
	}
	result := a.view.Accept(effect)
	if effect.TakesRevision() {
		event, err := r.runEvent(result)
		if err != nil {
			return outcome{}, false, &alsoError{r, err}
		}
		a.committedAt = max(a.committedAt, a.now)
		a.effects.commit(a.store.DB.Dialect(), result.Revision, a.committedAt, r.write, effect, event)
	}
	attached := a.effects.attached.Len()
	if err := r.runAttach(result, &a.effects.attached); err != nil {
		return outcome{}, false, &alsoError{r, err}
	}
	writes = effect.TakesRevision() || r.write.Also != nil || a.effects.attached.Len() > attached
	if r.write.CommitID != "" {
		a.receipts[r.write.CommitID] = receipt{r.hash, result}
		a.effects.receipt(r, result, a.now)
	}
	if r.write.Also != nil {
		a.effects.others = true
	}
	return outcome{result: result}, writes, nil
}

// earlier returns the outcome of a write that an earlier transaction decided and committed.
func (a *attempt) earlier(r *request) (outcome, bool) {
	for _, s := range slices.Backward(r.sent) {
		if a.found[s.mark] {
			if s.outcome.err != nil {
				a.end(r)
			}
			return s.outcome, true
		}
	}
	earlier, ok := a.receipts[r.write.CommitID]
	if !ok {
		return outcome{}, false
	}
	if !bytes.Equal(earlier.hash, r.hash) {
		a.end(r)
		return outcome{err: tuplestore.ErrCommitIDReused}, true
	}
	earlier.result.Epoch = a.head.Epoch
	return outcome{result: earlier.result}, true
}

// ended reports whether an earlier write of the sequence was not applied, in this group or before.
func (a *attempt) ended(r *request) error {
	if a.sequences[r.write.Turn.Key()] {
		return tuplestore.ErrSequenceEnded
	}
	return r.write.Turn.Err()
}

// end ends the sequence of a write for the group. Another attempt may apply the write.
func (a *attempt) end(r *request) {
	if key := r.write.Turn.Key(); key != "" {
		if a.sequences == nil {
			a.sequences = make(map[string]bool)
		}
		a.sequences[key] = true
	}
}
