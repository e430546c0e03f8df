package audit

import (
	"bytes"
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/schema"
	"stonetown/tuplestore"
)

type typeEvent struct {
	ResourceType any `json:"resource_type"`
}

func typeCreated(ctx context.Context, t schema.Type) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ResourceTypeCreated, typeEvent{engine.TypeDocumentOf(t)})
}

func typeUpdated(ctx context.Context, t schema.Type) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ResourceTypeUpdated, typeEvent{engine.TypeDocumentOf(t)})
}

func typeDeleted(ctx context.Context, name string) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ResourceTypeDeleted, typeEvent{map[string]string{"name": name}})
}

type renamedEvent struct {
	Renames []renamedName `json:"renames"`
}

type renamedName struct {
	Type string `json:"type,omitempty"` // whose relation is renamed, by its name before
	From string `json:"from"`
	To   string `json:"to"`
}

func typesRenamed(ctx context.Context, renames []schema.Rename) eventlog.Event {
	var data renamedEvent
	for _, r := range renames {
		data.Renames = append(data.Renames, renamedName(r))
	}
	return eventlog.Of(ctx, eventlog.ResourceTypeRenamed, data)
}

func relationCreated(ctx context.Context, op engine.WriteOp) eventlog.Event {
	return eventlog.Of(ctx, eventlog.RelationCreated, relationEvent(op, false))
}

func relationReplaced(ctx context.Context, op engine.WriteOp) eventlog.Event {
	return eventlog.Of(ctx, eventlog.RelationCreated, relationEvent(op, true))
}

func relationDeleted(ctx context.Context, op engine.WriteOp) eventlog.Event {
	return eventlog.Of(ctx, eventlog.RelationDeleted, relationEvent(op, false))
}

// relationEvent is the data of the event of one relation. replaced: the relation existed with
// another expiry or condition.
func relationEvent(op engine.WriteOp, replaced bool) jsontext.Value {
	b := append(make([]byte, 0, 512), `{"relation":`...) // on the stack
	b = op.Document().AppendJSON(b)
	if replaced {
		b = append(b, `,"replaced":true`...)
	}
	return bytes.Clone(append(b, '}'))
}

// bulkApplied is the event of ops with these results; changed is false if none of them
// changed anything. Its operations are those that did.
func bulkApplied(ctx context.Context, ops []engine.WriteOp, results tuplestore.Result) (event eventlog.Event, changed bool) {
	created, updated, deleted := 0, 0, 0
	var list []byte
	change := func(op, result string, of engine.WriteOp) {
		if list == nil {
			list = make([]byte, 0, bytesOfChange*len(ops))
		}
		list = append(append(append(list, `{"op":"`...), op...), `","result":"`...)
		list = of.Document().AppendMembers(append(append(list, result...), `",`...))
		list = append(list, `},`...)
	}
	for i, op := range ops {
		if results.Counts[i] == 0 {
			continue
		}
		replaced := results.Replaced[i]
		for _, t := range replaced {
			deleted++
			change("delete", "deleted", engine.WriteOp{Delete: true, Resource: t.Object, Relation: t.Relation, Subject: t.Subject})
		}
		switch results.Statuses[i] {
		case tuplestore.Replaced:
			if results.Counts[i] == len(replaced) {
				continue // it existed
			}
			fallthrough
		case tuplestore.Created:
			created++
			change("create", "created", op)
		case tuplestore.Updated:
			updated++
			change("create", "updated", op)
		case tuplestore.Deleted:
			deleted++
			change("delete", "deleted", op)
		}
	}
	if len(list) == 0 {
		return event, false
	}
	list = list[:len(list)-len(",")]
	data := fmt.Appendf(nil, `{"created":%d,"updated":%d,"deleted":%d,"operations":[%s]}`, created, updated, deleted, list)
	return eventlog.Of(ctx, eventlog.RelationBulkApplied, jsontext.Value(data)), true
}

// bytesOfChange is roughly the size of one operation in the event of a bulk write.
const bytesOfChange = 192

type importedEvent struct {
	Created   int   `json:"created"`
	Updated   int   `json:"updated"`
	Deleted   int   `json:"deleted"` // replaced by others
	FirstLine int64 `json:"first_line"`
	LastLine  int64 `json:"last_line"`
}

// imported returns the event of some lines with so many relations.
func imported(ctx context.Context, relations int, firstLine, lastLine int64) func(tuplestore.Result) string {
	return func(r tuplestore.Result) string {
		data := importedEvent{FirstLine: firstLine, LastLine: lastLine}
		for i, status := range r.Statuses[:relations] {
			switch status {
			case tuplestore.Created:
				data.Created++
			case tuplestore.Updated:
				data.Updated++
			case tuplestore.Replaced:
				data.Deleted += len(r.Replaced[i])
				data.Created += r.Counts[i] - len(r.Replaced[i]) // none if it existed
			}
		}
		if data.Created+data.Updated+data.Deleted == 0 {
			return ""
		}
		return eventlog.Of(ctx, eventlog.RelationImported, data).Text()
	}
}
