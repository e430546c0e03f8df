package subscription

import (
	"context"
	"encoding/json"
	"errors"

	"stonetown/internal/sqldb"
)

// Querier is a database or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}

const (
	insertSubscription = `
		INSERT INTO webhook_subscriptions (tenant_id, id, name, url, description, events, visible_to, owners, viewers, state, disabled_reason,
			secret, previous_secret, previous_expires_at, after_position, until_position, created_at, updated_at)
		SELECT h.tenant_id, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, h.position, $17, $15, $16 FROM event_heads AS h WHERE h.tenant_id = $1`

	updateSubscription = `
		UPDATE webhook_subscriptions SET name = $3, url = $4, description = $5, events = $6, visible_to = $7, owners = $8, viewers = $9, state = $10,
			disabled_reason = $11, secret = $12, previous_secret = $13, previous_expires_at = $14, updated_at = $15
		WHERE tenant_id = $1 AND id = $2`

	// startNow lets a subscription begin at the end of the log, and endNow end there.
	startNow = `
		UPDATE webhook_subscriptions SET after_position = (SELECT h.position FROM event_heads AS h WHERE h.tenant_id = $1), until_position = $3
		WHERE tenant_id = $1 AND id = $2`
	endNow = `
		UPDATE webhook_subscriptions SET until_position = (SELECT h.position FROM event_heads AS h WHERE h.tenant_id = $1)
		WHERE tenant_id = $1 AND id = $2`

	deleteSubscription = `DELETE FROM webhook_subscriptions WHERE tenant_id = $1 AND id = $2`

	selectSubscriptions = `
		SELECT s.tenant_id, s.id, s.name, s.url, s.description, s.events, s.visible_to, s.owners, s.viewers, s.state, s.disabled_reason,
			s.secret, s.previous_secret, s.previous_expires_at, s.after_position, s.until_position, s.created_at, s.updated_at,
			COALESCE(l.failing_since, 0), COALESCE(l.last_success_at, 0)
		FROM webhook_subscriptions AS s LEFT JOIN webhook_lanes AS l ON l.tenant_id = s.tenant_id AND l.subscription_id = s.id
		WHERE s.tenant_id = $1`

	selectOne   = selectSubscriptions + ` AND s.id = $2`
	selectAll   = selectSubscriptions + ` ORDER BY s.created_at DESC, s.id DESC`
	selectAfter = selectSubscriptions + ` AND s.until_position > $2`
)

// unlimited is the until_position of an enabled subscription.
const unlimited = int64(1)<<62 - 1

// Changed is the topic of the notices of changed and deleted subscriptions (see
// [sqldb.Batch.Notify]): the ids of the tenant and the subscription, separated by a space.
const Changed = "webhook subscriptions"

func noteChange(b *sqldb.Batch, tenantID, subscriptionID string) {
	b.Notify(Changed, tenantID+" "+subscriptionID)
}

// queueCount counts the subscriptions of a tenant.
func queueCount(b *sqldb.Batch, tenantID string, count *int64) {
	b.Queue(`SELECT COUNT(*) FROM webhook_subscriptions WHERE tenant_id = $1`, []any{tenantID}, func(rows *sqldb.Rows) error {
		rows.Next()
		return rows.Scan(count)
	})
}

func insert(b *sqldb.Batch, s Subscription) {
	b.Queue(insertSubscription, []any{
		s.TenantID, s.ID, s.Name, s.URL, s.Description, asJSON(s.Events), visibility(s.VisibleTo), asJSON(s.Owners), asJSON(s.Viewers),
		string(s.State), string(s.DisabledReason), s.secret, sqldb.Blob(s.previous), sqldb.Micros(s.PreviousExpiresAt), s.CreatedAt.UnixMicro(), s.UpdatedAt.UnixMicro(), unlimited,
	}, nil)
}

func update(b *sqldb.Batch, s Subscription) {
	noteChange(b, s.TenantID, s.ID)
	b.Queue(updateSubscription, []any{
		s.TenantID, s.ID, s.Name, s.URL, s.Description, asJSON(s.Events), visibility(s.VisibleTo), asJSON(s.Owners), asJSON(s.Viewers),
		string(s.State), string(s.DisabledReason), s.secret, sqldb.Blob(s.previous), sqldb.Micros(s.PreviousExpiresAt), s.UpdatedAt.UnixMicro(),
	}, nil)
}

// Select reads a subscription. It fails with [ErrNotFound].
func Select(ctx context.Context, q Querier, tenantID, subscriptionID string) (Subscription, error) {
	if !sqldb.IsText(subscriptionID) {
		return Subscription{}, ErrNotFound
	}
	found, err := scanAll(q.Query(ctx, selectOne, tenantID, subscriptionID))
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Subscription{}, err
	}
	return found[0], nil
}

// QueueAfter adds the statement to a batch that reads the subscriptions of a tenant to which
// events after a position are delivered: those that are enabled, or were until later.
func QueueAfter(b *sqldb.Batch, tenantID string, position int64, found *[]Subscription) {
	b.Queue(selectAfter, []any{tenantID, position}, func(rows *sqldb.Rows) (err error) {
		*found, err = scan(rows)
		return err
	})
}

func scanAll(rows *sqldb.Rows, err error) ([]Subscription, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return scan(rows)
}

func scan(rows *sqldb.Rows) (found []Subscription, err error) {
	for rows.Next() {
		var s Subscription
		var events, visible, owners, viewers string
		var previousExpires, created, updated, failing, success int64
		err := rows.Scan(&s.TenantID, &s.ID, &s.Name, &s.URL, &s.Description, &events, &visible, &owners, &viewers, &s.State, &s.DisabledReason,
			&s.secret, &s.previous, &previousExpires, &s.After, &s.Until, &created, &updated, &failing, &success)
		if err != nil {
			return nil, err
		}
		s.PreviousExpiresAt, s.CreatedAt, s.UpdatedAt = sqldb.Instant(previousExpires), sqldb.Instant(created), sqldb.Instant(updated)
		s.FailingSince, s.LastSuccessAt = sqldb.Instant(failing), sqldb.Instant(success)
		if visible != "" {
			s.VisibleTo = new(Visibility)
			err = json.Unmarshal([]byte(visible), s.VisibleTo)
		}
		err = errors.Join(err, json.Unmarshal([]byte(events), &s.Events), json.Unmarshal([]byte(owners), &s.Owners), json.Unmarshal([]byte(viewers), &s.Viewers))
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, rows.Err()
}

func visibility(v *Visibility) string {
	if v == nil {
		return ""
	}
	return asJSON(v)
}

// asJSON returns the stored form of a list or an object.
func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("webhooks: " + err.Error()) // values have strings only
	}
	return string(text)
}
