package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"golang.org/x/sync/errgroup"
)

const (
	maxLine        = 2 << 20 // bytes; twice the limit of the API
	writesInFlight = 8       // concurrent writes of resources
)

// Import writes an export to a tenant.
type Import struct {
	Client   *Client
	Progress func(lines int) // called with the number of further lines; may be nil

	// Expired is the number of relations that were left out because they have expired.
	Expired int

	in   *bufio.Reader
	line int
	next exportLine // read and not yet used
	seen End
}

// exportLine is a line of an export with its kind.
type exportLine struct {
	kind, name string
	text       []byte
}

// Read writes the content of r. It first verifies that r is complete. After an error some of it
// is written and some is not; it can be read again.
func (i *Import) Read(ctx context.Context, r io.ReadSeeker) error {
	end, err := readEnd(r)
	if err != nil {
		return err
	}
	i.in, i.line, i.seen = bufio.NewReaderSize(r, 1<<16), 0, End{Kind: KindEnd}
	if err := i.advance(); err != nil {
		return err
	}
	if err := i.types(ctx); err != nil {
		return err
	}
	if err := i.resources(ctx); err != nil {
		return err
	}
	expired, err := i.Client.WriteTuples(ctx, i.tuples(), i.counter())
	i.Expired += expired
	if refused, ok := errors.AsType[*TupleError](err); ok {
		return fmt.Errorf("line %d, %s: %w", i.seen.ResourceTypes+i.seen.Resources+refused.Index+1, refused.Tuple, refused.Err)
	}
	if err == nil && i.seen != end {
		err = fmt.Errorf("the file has %d types, %d resources and %d relations; the last line says %d, %d and %d",
			i.seen.ResourceTypes, i.seen.Resources, i.seen.Relations, end.ResourceTypes, end.Resources, end.Relations)
	}
	return err
}

// readEnd reads the last line, which a complete export has, and returns to the beginning.
func readEnd(r io.ReadSeeker) (end End, err error) {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return end, err
	}
	if _, err := r.Seek(max(0, size-1024), io.SeekStart); err != nil {
		return end, err
	}
	tail, err := io.ReadAll(io.LimitReader(r, 1024))
	if err != nil {
		return end, err
	}
	tail = bytes.TrimSuffix(tail, []byte("\n"))
	last := tail[bytes.LastIndexByte(tail, '\n')+1:]
	if json.Unmarshal(last, &end) != nil || end.Kind != KindEnd {
		return end, errors.New("the export is incomplete: its last line is not of the kind end")
	}
	_, err = r.Seek(0, io.SeekStart)
	return end, err
}

// advance reads the next line.
func (i *Import) advance() error {
	i.line++
	text, err := i.in.ReadBytes('\n')
	if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
		return fmt.Errorf("line %d: %w", i.line, err)
	}
	if len(text) > maxLine {
		return fmt.Errorf("line %d has more than %d bytes", i.line, maxLine)
	}
	var head struct{ Kind, Name string }
	if err := json.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("line %d is not a line of an export", i.line)
	}
	i.next = exportLine{head.Kind, head.Name, text}
	return nil
}

// each decodes the next lines of a kind.
func each[T any](i *Import, kind string, count *int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for i.next.kind == kind {
			var value T
			err := json.Unmarshal(i.next.text, &value)
			if err != nil {
				err = fmt.Errorf("line %d is not a %s", i.line, kind)
			}
			*count++
			if !yield(value, err) || err != nil {
				return
			}
			if err := i.advance(); err != nil {
				yield(value, err)
				return
			}
		}
	}
}

// typesAtOnce is the number of bytes of resource types in one request, which may have at most
// 1 MiB. Types of later requests may be named before.
const typesAtOnce = 512 << 10

func (i *Import) types(ctx context.Context) error {
	var change TypesChange
	size := 0
	apply := func() error {
		_, err := i.Client.ApplyTypes(ctx, change)
		i.count(len(change.Types))
		change.Types, size = nil, 0
		return err
	}
	for text, err := range each[json.RawMessage](i, KindResourceType, &i.seen.ResourceTypes) {
		if err != nil {
			return err
		}
		if size += len(text); size > typesAtOnce && len(change.Types) > 0 {
			if err := apply(); err != nil {
				return err
			}
			size = len(text)
		}
		change.Types = append(change.Types, text)
	}
	return apply()
}

func (i *Import) resources(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writesInFlight)
	var failed error
	for r, err := range each[Resource](i, KindResource, &i.seen.Resources) {
		if failed = err; err != nil || ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			if _, err := i.Client.PutResource(ctx, r); err != nil {
				return fmt.Errorf("resource %s: %w", r.Ref, err)
			}
			return nil
		})
		i.count(1)
	}
	return errors.Join(group.Wait(), failed)
}

func (i *Import) tuples() iter.Seq2[Tuple, error] {
	return func(yield func(Tuple, error) bool) {
		for t, err := range each[Tuple](i, KindRelation, &i.seen.Relations) {
			if !yield(t, err) {
				return
			}
		}
		if i.next.kind != KindEnd {
			yield(Tuple{}, fmt.Errorf("line %d: a line of kind %q does not belong here", i.line, i.next.kind))
		}
	}
}

func (i *Import) count(lines int) {
	if i.Progress != nil {
		i.Progress(lines)
	}
}

// counter turns the total so far into increments.
func (i *Import) counter() func(written int) {
	before := 0
	return func(written int) {
		i.count(written - before)
		before = written
	}
}
