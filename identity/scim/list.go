package scim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"stonetown/identity"
	"stonetown/internal/text"
)

const (
	// DefaultPage and MaxPage are the sizes of a page.
	DefaultPage = 100
	MaxPage     = 1000
	// MaxScanned is the maximum number of resources that are read for a filter or an order that
	// the database cannot decide.
	MaxScanned = 10_000
)

// Query selects resources of a type (RFC 7644 §3.4.2).
type Query struct {
	Filter     string // empty: all
	SortBy     string // empty: by creation
	Descending bool
	Start      int // index of the first one, from 1; less counts as 1
	Count      int // 0: none, only their number
	// After is the position after the last page; its zero value is the start. It takes the place
	// of Start (RFC 9865).
	After Position
}

// Position is a position between two pages.
type Position struct {
	Text    string `json:"t,omitzero"`
	Instant int64  `json:"i,omitzero"`
	ID      string `json:"d,omitzero"`
}

// Page is a part of the resources that a query selects.
type Page struct {
	Total     int
	Start     int
	Resources []Resource
	// Next is the position after the page; its zero value: there are no more.
	Next Position
}

// List returns a page of users or groups, without the members of groups. It fails with
// invalidFilter, invalidPath for an attribute that cannot be sorted by, or tooMany.
func (s *Service) List(ctx context.Context, c Client, t *Type, q Query) (Page, error) {
	l := &list{service: s, client: c, of: t, query: q}
	if q.Filter != "" {
		e, err := parseFilter(q.Filter)
		if err != nil {
			return Page{}, err
		}
		if _, err := e.holds(e.node, scope{of: t, object: Object{}}); err != nil {
			return Page{}, err
		}
		compiler := conditions{of: t, client: c, groupsOf: func(userID string) ([]string, error) { return s.directory.GroupIDs(ctx, c.TenantID, userID) }}
		compiled, err := compiler.compile(e, e.node)
		if err != nil {
			return Page{}, err
		}
		l.where = compiled.where
		if !compiled.exact {
			l.filter = &e
		}
	}
	order, ok, err := l.order()
	if err != nil {
		return Page{}, err
	}
	l.by = order
	if ok && l.filter == nil {
		return l.selected(ctx)
	}
	return l.scanned(ctx, ok)
}

// list is a query in progress.
type list struct {
	service *Service
	client  Client
	of      *Type
	query   Query
	where   identity.Where
	filter  *expression // nil: where is exact
	by      identity.Order
}

// order returns the order of the database; false if it has none for the attribute.
func (l *list) order() (identity.Order, bool, error) {
	if l.query.SortBy == "" {
		return identity.ByCreation, true, nil
	}
	to, err := l.of.resolve(l.query.SortBy)
	if refused, isOwn := err.(*Error); isOwn && refused.Type == Mutability {
		err = nil
	}
	if err != nil || to.where != nil {
		return "", false, refuse(InvalidPath, "there is no attribute %q to sort by", l.query.SortBy)
	}
	name := strings.ToLower(l.query.SortBy)
	for _, t := range Types {
		name = strings.TrimPrefix(name, strings.ToLower(t.Core.ID)+":")
	}
	switch {
	case name == "id":
		return identity.ByID, true, nil
	case name == "meta.created":
		return identity.ByCreation, true, nil
	case name == "meta.lastmodified":
		return identity.ByUpdate, true, nil
	case name == "username" && l.of == Users:
		return identity.ByEmail, true, nil
	case name == "meta" || strings.HasPrefix(name, "meta.") || name == "groups" || strings.HasPrefix(name, "members"):
		return "", false, refuse(InvalidPath, "resources cannot be sorted by %q", l.query.SortBy)
	}
	return identity.ByCreation, false, nil
}

// selected is a list that the database selects and sorts.
func (l *list) selected(ctx context.Context) (Page, error) {
	q := l.query
	sel := identity.Selection{Where: l.where, Order: l.by, Descending: q.Descending, Limit: q.Count + 1}
	page := Page{Start: max(q.Start, 1)}
	if q.After != (Position{}) {
		sel.After = l.after(q.After)
	} else {
		sel.Offset = page.Start - 1
	}
	found, positions, err := l.read(ctx, sel)
	if err != nil {
		return Page{}, err
	}
	if len(found) > q.Count {
		if found = found[:q.Count]; q.Count > 0 {
			page.Next = positions[q.Count-1]
		}
		page.Total, err = l.count(ctx)
	} else if page.Total = sel.Offset + len(found); sel.After != nil || len(found) == 0 && sel.Offset > 0 {
		page.Total, err = l.count(ctx)
	}
	page.Resources = found
	return page, err
}

func (l *list) count(ctx context.Context) (int, error) {
	if l.of == Users {
		return l.service.directory.CountUsers(ctx, l.client.TenantID, l.where)
	}
	return l.service.directory.CountGroups(ctx, l.client.TenantID, l.where)
}

// read returns resources and their positions.
func (l *list) read(ctx context.Context, sel identity.Selection) (found []Resource, positions []Position, err error) {
	var users []identity.User
	var groups []identity.Group
	if l.of == Users {
		users, err = l.service.directory.SelectUsers(ctx, l.client.TenantID, sel)
	} else {
		groups, err = l.service.directory.SelectGroups(ctx, l.client.TenantID, sel)
	}
	if err != nil {
		return nil, nil, err
	}
	var ids []string
	for _, u := range users {
		ids, positions = append(ids, u.ID), append(positions, position(identity.UserPosition(sel.Order, u)))
	}
	for _, g := range groups {
		ids, positions = append(ids, g.ID), append(positions, position(identity.GroupPosition(sel.Order, g)))
	}
	externalIDs, err := l.service.directory.ExternalIDs(ctx, l.client.TenantID, l.client.ID, ids)
	for _, u := range users {
		found = append(found, l.client.user(u, externalIDs[u.ID]))
	}
	for _, g := range groups {
		found = append(found, l.client.group(g, externalIDs[g.ID]))
	}
	return found, positions, err
}

// after returns a position in the order of the database; [position] is the reverse.
func (l *list) after(p Position) *identity.SelectionPosition {
	if l.by == identity.ByCreation || l.by == identity.ByUpdate {
		return &identity.SelectionPosition{Key: p.Instant, ID: p.ID}
	}
	return &identity.SelectionPosition{Key: p.Text, ID: p.ID}
}

func position(p identity.SelectionPosition) Position {
	if at, ok := p.Key.(int64); ok {
		return Position{Instant: at, ID: p.ID}
	}
	key, _ := p.Key.(string)
	return Position{Text: key, ID: p.ID}
}

// scanned is a list that is filtered or sorted in memory. sorted: the database sorts it.
func (l *list) scanned(ctx context.Context, sorted bool) (Page, error) {
	type item struct {
		Resource
		at Position
	}
	var items []item
	sel := identity.Selection{Where: l.where, Order: l.by, Descending: sorted && l.query.Descending, Limit: MaxPage}
	for read := 0; ; {
		found, positions, err := l.read(ctx, sel)
		if err != nil {
			return Page{}, err
		}
		if read += len(found); read > MaxScanned {
			return Page{}, refuse(TooMany, "more than %d resources would have to be read; filter by id, userName, externalId, active or meta as well", MaxScanned)
		}
		for i, r := range found {
			ok := true
			if l.filter != nil {
				if ok, err = l.filter.holds(l.filter.node, scope{of: l.of, object: r.Object}); err != nil {
					return Page{}, err
				}
			}
			if ok {
				items = append(items, item{r, positions[i]})
			}
		}
		if len(found) < MaxPage {
			break
		}
		sel.After = l.after(positions[len(positions)-1])
	}
	if !sorted {
		for i := range items {
			items[i].at = Position{Text: l.sortKey(items[i].Resource), ID: items[i].ID}
		}
		slices.SortFunc(items, func(a, b item) int { return l.compare(a.at, b.at) })
	}
	page := Page{Total: len(items), Start: max(l.query.Start, 1)}
	start := min(page.Start-1, len(items))
	if l.query.After != (Position{}) {
		if start = slices.IndexFunc(items, func(i item) bool { return l.compare(i.at, l.query.After) > 0 }); start < 0 {
			start = len(items)
		}
	}
	end := min(start+l.query.Count, len(items))
	for _, i := range items[start:end] {
		page.Resources = append(page.Resources, i.Resource)
	}
	if end < len(items) && end > start {
		page.Next = items[end-1].at
	}
	return page, nil
}

// compare compares positions in the order of the list.
func (l *list) compare(a, b Position) int {
	c := cmp.Or(strings.Compare(a.Text, b.Text), cmp.Compare(a.Instant, b.Instant), strings.Compare(a.ID, b.ID))
	if l.query.Descending {
		c = -c
	}
	return c
}

// maxSortKey bounds the text by which a resource is sorted, in bytes, because it is part of cursors.
const maxSortKey = 500

// sortKey returns the text of a resource by which it is sorted: of several values the preferred
// one, or else the first (RFC 7644 §3.4.2.3).
func (l *list) sortKey(r Resource) string {
	to, err := l.of.resolve(l.query.SortBy)
	if err != nil {
		return ""
	}
	from := r.Object
	if to.extension != "" {
		from, _ = from[to.extension].(Object)
	}
	value := from[to.attribute.Name]
	if list, ok := value.([]any); ok {
		value = nil
		for i, item := range list {
			if o, _ := item.(Object); i == 0 || o["primary"] == true {
				value = item
			}
		}
	}
	if o, ok := value.(Object); ok {
		name := "value"
		if to.sub != nil {
			name = to.sub.Name
		}
		value = o[name]
	}
	if value == nil {
		return ""
	}
	key := fmt.Sprint(value)
	if !to.attribute.CaseExact {
		key = text.Fold(key)
	}
	return strings.ToValidUTF8(cut(key, maxSortKey), "")
}
