package delivery

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// envelope is the body of a delivery.
type envelope struct {
	EventID    string             `json:"event_id"`
	EventType  string             `json:"event_type"`
	APIVersion string             `json:"api_version"`
	OccurredAt document.Timestamp `json:"occurred_at"`
	Sequence   int64              `json:"sequence"` // increases with the order of the tenant's events
	Tenant     envelopeTenant     `json:"tenant"`
	Actor      *envelopeActor     `json:"actor"`
	Data       jsontext.Value     `json:"data"`
}

type envelopeTenant struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
}

type envelopeActor struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

const apiVersion = "v1"

// noData replaces the data of an event that cannot be read.
var noData = jsontext.Value(`{"truncated":true}`)

// bodyOf returns the body of the deliveries of an event, of at most maxBody bytes: the data of
// a larger one is reduced to the members that identify its objects. Data that cannot be read is
// replaced, because an error would stop the lane: the event would be tried again for ever.
func bodyOf(t Tenant, e eventlog.Event, operations visibleOperations) ([]byte, error) {
	v := envelope{
		EventID: e.ID, EventType: string(e.Type), APIVersion: apiVersion, OccurredAt: document.Timestamp(e.At), Sequence: e.Position,
		Tenant: envelopeTenant(t), Data: noData,
	}
	if actor := e.Origin.Actor; actor.ID != "" {
		v.Actor = &envelopeActor{actor.Type, actor.ID}
	}
	if data, err := operations.of(e.Data); err == nil && data.IsValid() {
		v.Data = data
	}
	body, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil || len(body) <= maxBody {
		return body, err
	}
	if v.Data, err = identifying(v.Data); err != nil {
		v.Data = noData
	}
	return json.Marshal(v, jsontext.AllowInvalidUTF8(true))
}

// identifyingMembers are the members of an object that identify it.
var identifyingMembers = []string{"id", "type", "external_id", "client_id", "name", "slug"}

// maxIdentifying bounds a member that identifies an object, in bytes.
const maxIdentifying = 1 << 10

// identifying reduces the data of an event: of each of its objects the short members that
// identify it stay, and numbers; truncated says so.
func identifying(data jsontext.Value) (jsontext.Value, error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	reduced := map[string]any{"truncated": true}
	for name, value := range members {
		switch value.Kind() {
		case '0':
			reduced[name] = value
		case '{':
			var object map[string]jsontext.Value
			if err := json.Unmarshal(value, &object); err != nil {
				return nil, err
			}
			ids := map[string]jsontext.Value{}
			for _, member := range identifyingMembers {
				if found, ok := object[member]; ok && found.Kind() == '"' && len(found) <= maxIdentifying {
					ids[member] = found
				}
			}
			reduced[name] = ids
		}
	}
	return json.Marshal(reduced, json.Deterministic(true))
}
