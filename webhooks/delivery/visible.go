package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/eventlog"
	"stonetown/tuplestore"
)

// Checker answers whether a subject may perform an action on resources, at a revision of the
// tenant. It may answer only the first questions, at least one, to bound the work of a call. A
// question without an answer, because the type has no such action or a condition lacks its
// context, is answered with no; an error means that the questions can be asked again.
type Checker interface {
	AllowedAt(ctx context.Context, tenantID string, revision int64, subject tuplestore.Subject, action string, resources []tuplestore.Object) ([]bool, error)
}

// visibleOperations are the operations of a bulk write that a subscription may see, in order;
// nil: all of them, or the event is not of a bulk write.
type visibleOperations []int

// of returns the data of an event with only these operations, and the counts of them.
func (v visibleOperations) of(data []byte) (jsontext.Value, error) {
	if v == nil {
		return data, nil
	}
	var members map[string]jsontext.Value
	var bulk bulkData
	if err := jsonv2.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	if err := jsonv2.Unmarshal(data, &bulk); err != nil {
		return nil, err
	}
	counts := map[string]int{"created": 0, "updated": 0, "deleted": 0}
	var kept []jsontext.Value
	for _, i := range v {
		if i >= len(bulk.Operations) {
			return nil, fmt.Errorf("operation %d of %d", i, len(bulk.Operations))
		}
		kept = append(kept, bulk.Operations[i].raw)
		counts[bulk.Operations[i].Result]++
	}
	members["operations"], _ = jsonv2.Marshal(kept)
	for name, n := range counts {
		members[name], _ = jsonv2.Marshal(n)
	}
	return jsonv2.Marshal(members, jsonv2.Deterministic(true))
}

// text returns the stored form.
func (v visibleOperations) text() string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic("webhooks: " + err.Error()) // numbers
	}
	return string(text)
}

func readVisible(text string) (v visibleOperations, err error) {
	if text == "" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &v)
	return v, err
}

// resourceRef names a resource in the data of events.
type resourceRef struct {
	Type       string `json:"type"`
	ExternalID string `json:"external_id"`
}

func (r resourceRef) object() tuplestore.Object {
	return tuplestore.Object{Type: r.Type, ID: r.ExternalID}
}

// bulkData is the part of the data of relation.bulk_applied that is about resources.
type bulkData struct {
	Operations []bulkOperation `json:"operations"`
}

type bulkOperation struct {
	Result   string // the name of the count that it is part of
	Resource resourceRef
	raw      jsontext.Value
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *bulkOperation) UnmarshalJSON(text []byte) error {
	var members struct {
		Result   string      `json:"result"`
		Resource resourceRef `json:"resource"`
	}
	err := jsonv2.Unmarshal(text, &members)
	o.Result, o.Resource, o.raw = members.Result, members.Resource, slices.Clone(text)
	return err
}

// resourcesOf returns the resources that an event is about: none for an event that is about
// something else, and one for each operation of a bulk write.
func resourcesOf(e eventlog.Event) ([]tuplestore.Object, error) {
	switch e.Type {
	case eventlog.ResourceCreated, eventlog.ResourceUpdated, eventlog.ResourceDeleted:
		var data struct {
			Resource resourceRef `json:"resource"`
		}
		err := jsonv2.Unmarshal(e.Data, &data)
		return []tuplestore.Object{data.Resource.object()}, err
	case eventlog.RelationCreated, eventlog.RelationDeleted:
		var data struct {
			Relation struct {
				Resource resourceRef `json:"resource"`
			} `json:"relation"`
		}
		err := jsonv2.Unmarshal(e.Data, &data)
		return []tuplestore.Object{data.Relation.Resource.object()}, err
	case eventlog.RelationBulkApplied:
		var data bulkData
		err := jsonv2.Unmarshal(e.Data, &data)
		resources := make([]tuplestore.Object, len(data.Operations))
		for i, o := range data.Operations {
			resources[i] = o.Resource.object()
		}
		return resources, err
	}
	return nil, nil
}

// revisionOf returns the revision at which an event is compared with a visibility: its own, or
// for the end of a resource, after which nobody can see it, the one before.
func revisionOf(e eventlog.Event) int64 {
	if e.Type == eventlog.ResourceDeleted {
		return e.Revision - 1
	}
	return e.Revision
}
