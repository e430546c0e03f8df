package eventlog

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/id"
)

// Event is something that happened.
type Event struct {
	// Position orders a tenant's events; the first is 1, and there are no gaps.
	Position int64
	ID       string
	TenantID string
	Type     Type
	At       time.Time // of the change, by the clock of the process that made it
	Origin   Origin
	// Data is a JSON object: the public representation of the changed resource. It has no
	// secrets.
	Data []byte
	// Revision is the revision of the tenant's relations that commits with the event, or else the
	// newest one that its transaction knew; 0 if there is none. A check at that revision answers
	// as of the event. It never decreases from one position to the next.
	Revision int64
}

// Origin is the actor and the request that made a change.
type Origin struct {
	Actor     Actor  `json:"actor,omitzero"` // zero: the product itself
	ClientID  string `json:"client_id,omitzero"`
	RequestID string `json:"request_id,omitzero"`
	ClientIP  string `json:"client_ip,omitzero"`
}

// Actor is the user or the application that makes a change.
type Actor struct {
	Type string `json:"type"` // user or application
	ID   string `json:"id"`
}

// New returns an event of this moment. data must encode as a JSON object, the public
// representation, without secrets. Bytes that are not UTF-8 become U+FFFD, because clients send
// some of the text, and an event must not panic. Data of the type [jsontext.Value] is such an
// object already. [Append] assigns the position.
func New(t Type, o Origin, data any) Event {
	text, encoded := data.(jsontext.Value)
	if !encoded {
		var err error
		if text, err = json.Marshal(data, json.Deterministic(true), jsontext.AllowInvalidUTF8(true)); err != nil {
			panic("eventlog: data that is not JSON: " + err.Error())
		}
	}
	return Event{ID: id.New(id.Event), Type: t, At: time.Now(), Origin: o, Data: text}
}
