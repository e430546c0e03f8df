package eventlog

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/sqldb"
)

// Text returns the form in which an event is stored in the row of a commit: id, type, origin and
// data. Its time is that of the commit.
func (e Event) Text() string {
	origin := e.Origin.appendJSON(make([]byte, 0, usualOrigin))
	return `["` + e.ID + `","` + string(e.Type) + `",` + string(origin) + `,` + string(e.Data) + `]`
}

// parse reads the event of a commit.
func (e *Event) parse(text string) error {
	var parts []jsontext.Value
	if err := json.Unmarshal([]byte(text), &parts); err != nil {
		return err
	}
	if len(parts) != 4 {
		return fmt.Errorf("%d parts", len(parts))
	}
	for i, into := range []any{&e.ID, &e.Type, &e.Origin} {
		if err := json.Unmarshal(parts[i], into); err != nil {
			return err
		}
	}
	e.Data = parts[3]
	return nil
}

// NotifyCommit gives notice of the event of a commit, as [Append] does of others.
func NotifyCommit(b *sqldb.Batch, tenantID string) { b.Notify(appended, tenantID) }
