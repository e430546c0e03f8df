package threat

import (
	"context"
	"slices"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// Document is the public representation of a feed, in responses and in events.
type Document struct {
	ID               string              `json:"id"`
	Name             string              `json:"name"`
	Kind             Kind                `json:"kind"`
	Source           Source              `json:"source"`
	URL              *string             `json:"url"`
	Mode             Mode                `json:"mode"`
	Enabled          bool                `json:"enabled"`
	RefreshIntervalS *int                `json:"refresh_interval_s"`
	Entries          int                 `json:"entries"`
	BadLines         int                 `json:"bad_lines"`
	FirstBadLines    []int               `json:"first_bad_lines"`
	ListedAt         *document.Timestamp `json:"listed_at"`
	CheckedAt        *document.Timestamp `json:"checked_at"`
	FailingSince     *document.Timestamp `json:"failing_since"`
	Failure          *string             `json:"failure"`
	CreatedAt        document.Timestamp  `json:"created_at"`
	UpdatedAt        document.Timestamp  `json:"updated_at"`
}

// Document returns the public representation of the feed.
func (f Feed) Document() Document {
	d := Document{
		ID: f.ID, Name: f.Name, Kind: f.Kind, Source: f.Source, URL: document.OrNull(f.URL), Mode: f.Mode, Enabled: f.Enabled,
		Entries: f.Entries, BadLines: f.BadLines, FirstBadLines: append([]int{}, f.FirstBad...),
		ListedAt: document.TimeOrNull(f.ListedAt), CheckedAt: document.TimeOrNull(f.CheckedAt),
		FailingSince: document.TimeOrNull(f.FailingAt), Failure: document.OrNull(f.Failure),
		CreatedAt: document.Timestamp(f.CreatedAt), UpdatedAt: document.Timestamp(f.UpdatedAt),
	}
	if f.Source == FromURL {
		d.RefreshIntervalS = new(f.RefreshS)
	}
	return d
}

// Each type of event has one constructor.

// feedEvent is the data of an event about a feed.
type feedEvent struct {
	Feed    Document         `json:"feed"`
	Changes document.Changes `json:"changes,omitzero"`
}

func created(ctx context.Context, f Feed) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SecurityThreatFeedCreated, feedEvent{Feed: f.Document()})
}

func updated(ctx context.Context, before, after Feed) eventlog.Event {
	changes := document.Difference(before.Document(), after.Document())
	delete(changes, "updated_at")
	delete(changes, "checked_at")
	return eventlog.Of(ctx, eventlog.SecurityThreatFeedUpdated, feedEvent{after.Document(), changes})
}

func deleted(ctx context.Context, f Feed) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SecurityThreatFeedDeleted, feedEvent{Feed: f.Document()})
}

func failing(ctx context.Context, f Feed) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SecurityThreatFeedFailing, feedEvent{Feed: f.Document()})
}

// Attempt is a sign-in or a sign-up that feeds match.
type Attempt struct {
	During string // sign_in or sign_up
	UserID string // empty: of a sign-up
	Email  string
}

// matchedEvent is the data of an event of a match. The address of the client is that of the event.
type matchedEvent struct {
	Feed struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Kind Kind   `json:"kind"`
	} `json:"feed"`
	Entry   string       `json:"entry"`
	Mode    Mode         `json:"mode"`
	Outcome string       `json:"outcome"` // allowed or refused, also because of another feed
	During  string       `json:"during"`
	User    *matchedUser `json:"user"` // null: a sign-up
}

type matchedUser struct {
	ID    string `json:"id"`
	Email string `json:"email"`
}

// Matched returns the events of the matches of an attempt.
func Matched(ctx context.Context, a Attempt, matches []Match) (events []eventlog.Event) {
	outcome := "allowed"
	if Refused(matches) {
		outcome = "refused"
	}
	for _, m := range matches {
		e := matchedEvent{Entry: m.Entry, Mode: m.Mode, Outcome: outcome, During: a.During}
		e.Feed.ID, e.Feed.Name, e.Feed.Kind = m.FeedID, m.Name, m.Kind
		if a.UserID != "" {
			e.User = &matchedUser{a.UserID, a.Email}
		}
		events = append(events, eventlog.Of(ctx, eventlog.SecurityThreatMatched, e))
	}
	return events
}

// Refused reports whether any of the matches refuses.
func Refused(matches []Match) bool {
	return slices.ContainsFunc(matches, func(m Match) bool { return m.Mode == Refuse })
}
