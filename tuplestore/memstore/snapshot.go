package memstore

import (
	"context"
	"iter"
	"maps"
	"slices"

	"stonetown/tuplestore"
)

// snapshot reads a tenant at one revision.
type snapshot struct {
	tenant *tenant
	rev    tuplestore.Revision
}

func (s *snapshot) Revision() tuplestore.Revision { return s.rev }

// check refuses future revisions. The tenant must be locked.
func (s *snapshot) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.rev > tuplestore.Revision(len(s.tenant.commits)) {
		return tuplestore.ErrRevisionUnknown
	}
	return nil
}

func (s *snapshot) Find(ctx context.Context, l tuplestore.Lookup) ([]tuplestore.Fact, error) {
	t := s.tenant
	t.mu.RLock()
	defer t.mu.RUnlock()
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	found := make(map[tuplestore.Fact]struct{})
	t.each(l, func(l *timeline) {
		if interval, exists := l.at(s.rev); exists {
			found[tuplestore.Fact{Tuple: l.tuple, Qualifier: interval.qualifier}] = struct{}{}
		}
	})
	return slices.Collect(maps.Keys(found)), nil
}

var _ tuplestore.WholeFinder = (*snapshot)(nil)

// FindWhole implements [tuplestore.WholeFinder].
func (s *snapshot) FindWhole(ctx context.Context, l tuplestore.Lookup, objects []tuplestore.Object) (tuplestore.Whole, error) {
	found, err := s.Find(ctx, l)
	if err != nil {
		return tuplestore.Whole{}, err
	}
	t := s.tenant
	t.mu.RLock()
	defer t.mu.RUnlock()
	if s.rev != tuplestore.Revision(len(t.commits)) { // history does not change, so Find is right if it is the newest now
		return tuplestore.Whole{}, nil
	}
	whole := tuplestore.Whole{Newest: true, Found: found, Objects: make([]tuplestore.WholeObject, len(objects))}
	for i, object := range objects {
		o := &whole.Objects[i]
		for _, l := range t.objects[object] {
			if interval, exists := l.at(s.rev); exists {
				o.Facts = append(o.Facts, tuplestore.Fact{Tuple: l.tuple, Qualifier: interval.qualifier})
			}
		}
		if len(o.Facts) > tuplestore.MaxWhole {
			*o = tuplestore.WholeObject{Larger: true}
		}
	}
	return whole, nil
}

func (s *snapshot) Touched(ctx context.Context, l tuplestore.Lookup) (rev tuplestore.Revision, err error) {
	t := s.tenant
	t.mu.RLock()
	defer t.mu.RUnlock()
	if err := s.check(ctx); err != nil {
		return 0, err
	}
	t.each(l, func(l *timeline) {
		for _, interval := range l.intervals {
			for _, at := range []tuplestore.Revision{interval.created, interval.deleted} {
				if at <= s.rev {
					rev = max(rev, at)
				}
			}
		}
	})
	return rev, nil
}

// each calls add with every timeline of a tuple that l requests, at least once.
func (t *history) each(l tuplestore.Lookup, add func(*timeline)) {
	for _, tuple := range l.Tuples {
		if timeline := t.timelines[tuple]; timeline != nil {
			add(timeline)
		}
	}
	for _, n := range l.Usersets {
		for _, timeline := range t.usersets[n] {
			add(timeline)
		}
	}
	for _, n := range l.All {
		for _, timeline := range t.nodes[n] {
			add(timeline)
		}
	}
	for _, o := range l.Naming {
		for _, timeline := range t.subjects[o] {
			add(timeline)
		}
	}
}

func (s *snapshot) List(ctx context.Context, f tuplestore.Filter, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	records, err := s.records(ctx, f)
	if err != nil {
		return nil, err
	}
	if after != nil {
		next, found := slices.BinarySearchFunc(records, *after, f.Compare)
		if found {
			next++
		}
		records = records[next:]
	}
	return records[:min(limit, len(records))], nil
}

func (s *snapshot) Scan(ctx context.Context, f tuplestore.Filter) iter.Seq2[tuplestore.Record, error] {
	return func(yield func(tuplestore.Record, error) bool) {
		f.Newest = false
		records, err := s.records(ctx, f)
		if err != nil {
			yield(tuplestore.Record{}, err)
			return
		}
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (s *snapshot) Schema(ctx context.Context) ([]byte, tuplestore.Revision, error) {
	s.tenant.mu.RLock()
	err := s.check(ctx)
	s.tenant.mu.RUnlock()
	if err != nil {
		return nil, 0, err
	}
	document, put := s.tenant.schema(s.rev)
	return document, put, nil
}

// records returns the records that f selects, in its order.
func (s *snapshot) records(ctx context.Context, f tuplestore.Filter) ([]tuplestore.Record, error) {
	s.tenant.mu.RLock()
	defer s.tenant.mu.RUnlock()
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	return slices.SortedFunc(s.tenant.matching(f, s.rev), f.Compare), nil
}

// crowded reports whether a node has more than one tuple at rev.
func (h *history) crowded(n tuplestore.Node, rev tuplestore.Revision) bool {
	tuples := 0
	for _, l := range h.nodes[n] {
		if _, exists := l.at(rev); exists {
			tuples++
		}
	}
	return tuples > 1
}

// matching yields the records that f selects at rev, in no particular order, by the most
// selective index.
func (h *history) matching(f tuplestore.Filter, rev tuplestore.Revision) iter.Seq[tuplestore.Record] {
	var candidates iter.Seq[*timeline]
	object := tuplestore.Object{Type: f.ObjectType, ID: f.ObjectID}
	switch {
	case object.Type != "" && object.ID != "" && f.Relation != "":
		candidates = slices.Values(h.nodes[tuplestore.Node{Object: object, Relation: f.Relation}])
	case object.Type != "" && object.ID != "":
		candidates = slices.Values(h.objects[object])
	case f.SubjectType != "" && f.SubjectID != "":
		candidates = slices.Values(h.subjects[tuplestore.Object{Type: f.SubjectType, ID: f.SubjectID}])
	default:
		candidates = maps.Values(h.timelines)
	}
	return func(yield func(tuplestore.Record) bool) {
		for l := range candidates {
			interval, exists := l.at(rev)
			fact := tuplestore.Fact{Tuple: l.tuple, Qualifier: interval.qualifier}
			if !exists || !f.Matches(fact) || f.Crowded && !h.crowded(l.tuple.Node(), rev) {
				continue
			}
			commit := h.commits[interval.created-1]
			if !yield(tuplestore.Record{
				Fact:            fact,
				CreatedRevision: interval.created,
				CreatedAt:       commit.At,
				CreatedBy:       commit.Actor,
			}) {
				return
			}
		}
	}
}
