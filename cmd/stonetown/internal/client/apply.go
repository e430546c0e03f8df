package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
)

// Applied is the effect of a definition.
type Applied struct {
	Name   string
	Change string // created, updated or unchanged
}

// ApplyTypes creates or replaces resource types. It repeats a definition that the server
// refuses while others succeed, because the definition may need one of them. report, which may
// be nil, is called for each applied definition. After an error the reported definitions are
// applied and the others are not.
func (c *Client) ApplyTypes(ctx context.Context, definitions []Definition, report func(Applied)) error {
	names := map[string]bool{}
	for _, d := range definitions {
		if names[d.Name] {
			return fmt.Errorf("resource type %s is defined twice", d.Name)
		}
		names[d.Name] = true
	}
	before := map[string]json.RawMessage{}
	for t, err := range c.Types(ctx) {
		if err != nil {
			return err
		}
		before[t.Value.Name] = t.JSON
	}
	for len(definitions) > 0 {
		var (
			refused []Definition
			errs    []error
		)
		for _, d := range definitions {
			stored, created, err := c.PutType(ctx, d.JSON)
			switch {
			case err == nil:
				if report != nil {
					report(Applied{d.Name, change(created, before[d.Name], stored.JSON)})
				}
			case isRefusal(err):
				refused = append(refused, d)
				errs = append(errs, fmt.Errorf("resource type %s: %w", d.Name, err))
			default:
				return fmt.Errorf("resource type %s: %w", d.Name, err)
			}
		}
		if len(refused) == len(definitions) {
			return errors.Join(errs...)
		}
		definitions = refused
	}
	return nil
}

// isRefusal reports whether a request was refused because of its content.
func isRefusal(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound || e.Status == http.StatusConflict)
}

func change(created bool, before, after json.RawMessage) string {
	switch {
	case created:
		return "created"
	case before != nil && reflect.DeepEqual(meaning(before), meaning(after)):
		return "unchanged"
	}
	return "updated"
}

// meaning returns a type without its times.
func meaning(text json.RawMessage) map[string]any {
	var members map[string]any
	if json.Unmarshal(text, &members) != nil {
		return nil
	}
	delete(members, "created_at")
	delete(members, "updated_at")
	return members
}
