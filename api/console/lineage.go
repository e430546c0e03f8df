package console

import (
	"maps"
	"net/http"
	"slices"
)

// exchanged is a token exchange in the lineage of a token: the token that was presented and, unless
// the exchange was denied, the new one, with what it was exchanged for in turn.
type exchanged struct {
	Event    event
	Current  bool // the event of the page
	Subject  string
	Actor    string
	Client   string
	Audience []string
	Scope    string
	Reason   string // of a denial
	Children []*exchanged
}

// Bounds of a lineage. A token has at most 10 ancestors.
const (
	maxAncestors = 10
	maxLineage   = 50 // exchanges
	maxSearch    = 4  // pages of events for one token
)

// lineage returns the exchanges from which the token of an exchange descends, and those that descend
// from it. The first is the oldest one. cut reports whether some may be missing.
func (v *visit) lineage(of event) (root *exchanged, cut bool, err error) {
	first := of
	for range maxAncestors {
		subject, _ := first.Data["subject_jti"].(string)
		found, some, err := v.exchangesAbout(subject)
		if err != nil {
			return nil, false, err
		}
		cut = cut || some
		i := slices.IndexFunc(found, func(e event) bool { return subject != "" && e.Data["new_jti"] == subject })
		if i < 0 {
			break
		}
		first = found[i]
	}
	count := 0
	var grow func(event) (*exchanged, error)
	grow = func(e event) (*exchanged, error) {
		count++
		x := exchangeOf(e)
		x.Current = e.ID == of.ID
		jti, _ := e.Data["new_jti"].(string)
		if jti == "" {
			return x, nil
		}
		found, some, err := v.exchangesAbout(jti)
		if err != nil {
			return nil, err
		}
		cut = cut || some
		for _, child := range slices.Backward(found) { // the oldest first
			if child.Data["subject_jti"] != jti {
				continue
			}
			if count >= maxLineage {
				cut = true
				break
			}
			c, err := grow(child)
			if err != nil {
				return nil, err
			}
			x.Children = append(x.Children, c)
		}
		return x, nil
	}
	root, err = grow(first)
	return root, cut, err
}

// exchangesAbout returns the exchanges that have a token, the newest first. some reports whether there
// may be more.
func (v *visit) exchangesAbout(jti string) (list []event, some bool, err error) {
	if jti == "" {
		return nil, false, nil
	}
	cursor := ""
	for range maxSearch {
		a, err := v.call(http.MethodGet, query("/api/v1/audit/events", "type", "token.*", "about", jti, "limit", "250", "cursor", cursor), nil)
		if err != nil {
			return nil, false, err
		}
		var page []event
		if err := decode(a.Data, &page); err != nil {
			return nil, false, err
		}
		list = append(list, page...)
		if cursor = a.Meta.NextCursor; cursor == "" {
			return list, false, nil
		}
	}
	return list, true, nil
}

func exchangeOf(e event) *exchanged {
	name := func(member string) string {
		o, _ := e.Data[member].(object)
		typ, _ := o["type"].(string)
		text, _ := o["id"].(string)
		if text == "" {
			return ""
		}
		return typ + ":" + text
	}
	x := &exchanged{Event: e, Subject: name("subject"), Actor: name("actor")}
	x.Reason, _ = e.Data["reason"].(string)
	app, _ := e.Data["application"].(object)
	x.Client, _ = app["client_id"].(string)
	target, granted := e.Data["granted"].(object)
	if !granted {
		target, _ = e.Data["requested"].(object)
	}
	audience, _ := target["audience"].([]any)
	x.Audience = texts(audience)
	x.Scope, _ = target["scope"].(string)
	return x
}

// sorted returns the names of the members of an object, sorted.
func sorted(o object) []string { return slices.Sorted(maps.Keys(o)) }
