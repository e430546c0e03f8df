package sqlstore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// A commit's changes are stored as a JSON array with an array for each change: the six
// parts of the tuple and, if it was deleted, "-" or, if it has a qualifier, its expiry,
// condition and context.
//
//	[["doc","1","viewer","user","ann",""],
//	 ["doc","1","viewer","user","bob","","-"],
//	 ["doc","1","viewer","user","cid","",1767225600000000,"on_call","{\"team\":7}"]]

const deletedMark = "-"

// encodeChanges requires that all parts are valid UTF-8.
func encodeChanges(changes []tuplestore.Change) (string, error) {
	size := len("[]")
	for _, c := range changes {
		for _, part := range fields(c.Tuple) {
			size += len(part) + len(`"",`)
		}
		size += len("[],")
	}
	b := append(make([]byte, 0, size), '[')
	var err error
	for i, c := range changes {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		for i, part := range fields(c.Tuple) {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = jsontext.AppendQuote(b, part); err != nil {
				return "", err
			}
		}
		switch {
		case c.Deleted:
			b = append(b, `,"`+deletedMark+`"`...)
		case c.Qualifier != tuplestore.Qualifier{}:
			b = strconv.AppendInt(append(b, ','), c.Qualifier.ExpiresAt, 10)
			for _, text := range []string{c.Qualifier.Condition, c.Qualifier.Context} {
				if b, err = jsontext.AppendQuote(append(b, ','), text); err != nil {
					return "", err
				}
			}
		}
		b = append(b, ']')
	}
	return string(append(b, ']')), nil
}

var errNotChanges = errors.New("malformed list of changes")

func decodeChanges(text string) ([]tuplestore.Change, error) {
	var changes []tuplestore.Change
	d := jsontext.NewDecoder(strings.NewReader(text))
	if err := expect(d, jsontext.KindBeginArray); err != nil {
		return nil, err
	}
	for d.PeekKind() == jsontext.KindBeginArray {
		if err := expect(d, jsontext.KindBeginArray); err != nil {
			return nil, err
		}
		c, err := decodeChange(d)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	return changes, expect(d, jsontext.KindEndArray)
}

// decodeChange reads the elements of a change's array, and its end.
func decodeChange(d *jsontext.Decoder) (c tuplestore.Change, err error) {
	var parts [6]string
	for i := range parts {
		if parts[i], err = text(d); err != nil {
			return c, err
		}
	}
	c.Tuple = tupleOf(parts)
	switch d.PeekKind() {
	case jsontext.KindString:
		mark, err := text(d)
		if err != nil {
			return c, err
		}
		if mark != deletedMark {
			return c, errNotChanges
		}
		c.Deleted = true
	case jsontext.KindNumber:
		number, err := d.ReadToken()
		if err != nil {
			return c, fmt.Errorf("%w: %w", errNotChanges, err)
		}
		if c.Qualifier.ExpiresAt, err = strconv.ParseInt(number.String(), 10, 64); err != nil {
			return c, fmt.Errorf("%w: %w", errNotChanges, err)
		}
		if c.Qualifier.Condition, err = text(d); err != nil {
			return c, err
		}
		if c.Qualifier.Context, err = text(d); err != nil {
			return c, err
		}
	}
	return c, expect(d, jsontext.KindEndArray)
}

func text(d *jsontext.Decoder) (string, error) {
	token, err := d.ReadToken()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNotChanges, err)
	}
	if token.Kind() != jsontext.KindString {
		return "", errNotChanges
	}
	return token.String(), nil
}

func expect(d *jsontext.Decoder, kind jsontext.Kind) error {
	token, err := d.ReadToken()
	if err != nil {
		return fmt.Errorf("%w: %w", errNotChanges, err)
	}
	if token.Kind() != kind {
		return errNotChanges
	}
	return nil
}

// A result is stored as one letter per op: c(reated), e(xisted), d(eleted), u(pdated)
// or r(eplaced), followed by a count if it is not the usual one: 1, for existed 0, for replaced 2. "cced12" means:
// created, created, existed, deleted 12 tuples.

const statusLetters = "cedur" // by tuplestore.Status

func usualCount(s tuplestore.Status) int {
	switch s {
	case tuplestore.Existed:
		return 0
	case tuplestore.Replaced:
		return 2
	default:
		return 1
	}
}

func encodeResult(r tuplestore.Result) string {
	b := make([]byte, 0, len(r.Statuses))
	for i, status := range r.Statuses {
		b = append(b, statusLetters[status])
		if r.Counts[i] != usualCount(status) {
			b = strconv.AppendInt(b, int64(r.Counts[i]), 10)
		}
	}
	return string(b)
}

// decodeResult returns statuses and counts, neither of them nil.
func decodeResult(text string) (statuses []tuplestore.Status, counts []int, err error) {
	statuses, counts = make([]tuplestore.Status, 0, len(text)), make([]int, 0, len(text))
	for len(text) > 0 {
		letter := strings.IndexByte(statusLetters, text[0])
		if letter < 0 {
			return nil, nil, fmt.Errorf("malformed result: %q", text)
		}
		digits := strings.IndexAny(text[1:], statusLetters)
		if digits < 0 {
			digits = len(text) - 1
		}
		status := tuplestore.Status(letter)
		count := usualCount(status)
		if digits > 0 {
			if count, err = strconv.Atoi(text[1 : 1+digits]); err != nil {
				return nil, nil, fmt.Errorf("malformed result: %w", err)
			}
		}
		statuses, counts = append(statuses, status), append(counts, count)
		text = text[1+digits:]
	}
	return statuses, counts, nil
}

// fields returns the parts of a tuple as the changelog has them.
func fields(t tuplestore.Tuple) [6]string {
	return [6]string{t.Object.Type, t.Object.ID, t.Relation, t.Subject.Type, t.Subject.ID, t.Subject.Relation}
}

// tupleOf is the reverse of fields.
func tupleOf(parts [6]string) tuplestore.Tuple {
	return tuplestore.Tuple{
		Object:   tuplestore.Object{Type: parts[0], ID: parts[1]},
		Relation: parts[2],
		Subject:  tuplestore.Subject{Type: parts[3], ID: parts[4], Relation: parts[5]},
	}
}

// key returns the tuple's part of the primary key.
func key(t tuplestore.Tuple) keyParts {
	return keyParts{named(t.Object), t.Relation, named(t.Subject.Object()), t.Subject.Relation}
}

// named returns an object or a subject as its column has it: type:id, and empty if it is missing. For
// a type with a colon, of which there are no objects, it is a text that no row has.
func named(o tuplestore.Object) string {
	switch {
	case o.Type == "":
		return ""
	case strings.Contains(o.Type, ":"):
		return nothing
	default:
		return o.String()
	}
}

// nothing is no object: its type is empty.
const nothing = ":"

// tuple is the reverse of key: a type has no colon.
func tuple(k keyParts) tuplestore.Tuple {
	t := tuplestore.Tuple{Relation: k[1], Subject: tuplestore.Subject{Relation: k[3]}}
	t.Object.Type, t.Object.ID, _ = strings.Cut(k[0], ":")
	t.Subject.Type, t.Subject.ID, _ = strings.Cut(k[2], ":")
	return t
}

// checkText validates that a write can be stored in text columns of every database and
// encoded as JSON, and that types have no colon.
func checkText(w tuplestore.Write) error {
	check := func(texts ...string) error {
		for _, s := range texts {
			if !sqldb.IsText(s) {
				return fmt.Errorf("%q is not text: it must be UTF-8 without NUL", s)
			}
		}
		return nil
	}
	if err := check(w.CommitID, w.Actor); err != nil {
		return err
	}
	filters := slices.Clip(w.Absent)
	for _, p := range w.Preconditions {
		filters = append(filters, p.Filter)
	}
	for i := range w.Ops { // an op is large
		op := &w.Ops[i]
		if op.Kind == tuplestore.DeleteMatching {
			filters = append(filters, op.Match)
			continue
		}
		k := fields(op.Tuple)
		if err := errors.Join(check(k[:]...), check(op.Qualifier.Condition, op.Qualifier.Context)); err != nil {
			return fmt.Errorf("op %d: %w", i, err)
		}
		for _, typ := range []string{op.Tuple.Object.Type, op.Tuple.Subject.Type} {
			if strings.Contains(typ, ":") {
				return fmt.Errorf("op %d: the type %q has a colon", i, typ)
			}
		}
	}
	for _, f := range filters {
		if err := check(f.ObjectType, f.ObjectID, f.Relation, f.SubjectType, f.SubjectID, f.SubjectRelation, f.Condition); err != nil {
			return err
		}
	}
	return nil
}
