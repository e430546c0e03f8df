package delivery

import (
	"encoding/json"
	"errors"
	"time"

	"stonetown/internal/sqldb"
)

// never is the due time of a lane without pending deliveries.
const never = int64(1)<<62 - 1

const (
	openLane   = `INSERT INTO webhook_lanes (tenant_id, subscription_id, due_at) VALUES ($1, $2, $3)`
	drainLane  = `UPDATE webhook_lanes SET due_at = 0 WHERE tenant_id = $1 AND subscription_id = $2`
	deleteLane = `DELETE FROM webhook_lanes WHERE tenant_id = $1 AND subscription_id = $2`

	// insertDelivery adds a delivery that is due, if the subscription is enabled, or was at the
	// event.
	insertDelivery = `
		INSERT INTO webhook_deliveries (tenant_id, subscription_id, id, position, event_id, event_type, event, operations, size, status,
			attempts, history, last_response, due_at, created_at)
		SELECT s.tenant_id, s.id, $3, $4, $5, $6, $7, $8, $9, 'pending', 0, '[]', '', CASE WHEN l.paused_at > 0 THEN l.paused_at ELSE $10 END - l.clock_offset, $10
		FROM webhook_subscriptions AS s JOIN webhook_lanes AS l ON l.tenant_id = s.tenant_id AND l.subscription_id = s.id
		WHERE s.tenant_id = $1 AND s.id = $2 AND (s.state = 'enabled' OR $4 > s.after_position AND $4 <= s.until_position)
		RETURNING due_at`

	// makeDue wakes the lane of new deliveries, or lets it be due as soon as its clock runs
	// again.
	makeDue = `
		UPDATE webhook_lanes SET due_at = CASE WHEN paused_at > 0 THEN paused_at ELSE $3 END
		WHERE tenant_id = $1 AND subscription_id = $2 AND due_at > CASE WHEN paused_at > 0 THEN paused_at ELSE $3 END`

	// takeForNew takes a lane, and take one that is due, if no other process holds it.
	takeForNew = `
		UPDATE webhook_lanes SET holder = $3, lease_until = $4, due_at = CASE WHEN due_at > $5 THEN $5 ELSE due_at END
		WHERE tenant_id = $1 AND subscription_id = $2 AND lease_until <= $5 AND paused_at = 0
		RETURNING clock_offset`
	take = `
		UPDATE webhook_lanes SET holder = $3, lease_until = $4
		WHERE tenant_id = $1 AND subscription_id = $2 AND lease_until <= $5 AND paused_at = 0 AND due_at <= $5
		RETURNING clock_offset`
	// SelectDueLanes finds lanes that are due and free. It is exported for measurements.
	SelectDueLanes = `
		SELECT tenant_id, subscription_id FROM webhook_lanes
		WHERE due_at <= $1 AND paused_at = 0 AND lease_until <= $1 ORDER BY due_at LIMIT $2`
	renewLane = `
		UPDATE webhook_lanes SET lease_until = $4
		WHERE tenant_id = $1 AND subscription_id = $2 AND holder = $3 AND lease_until > $5 AND paused_at = 0
		RETURNING subscription_id`
	releaseLane = `
		UPDATE webhook_lanes SET holder = '', lease_until = 0, due_at = $4
		WHERE tenant_id = $1 AND subscription_id = $2 AND holder = $3`
	// freeLanes frees the lanes of all holders but those whose name has a prefix.
	freeLanes = `UPDATE webhook_lanes SET holder = '', lease_until = 0 WHERE lease_until > 0 AND SUBSTR(holder, 1, LENGTH($1)) <> $1`
	// oldestDue reads the deliveries, because due_at of a lane that is held is not updated.
	oldestDue = `
		SELECT COALESCE(MIN(clock_offset + (
			SELECT MIN(d.due_at) FROM webhook_deliveries AS d
			WHERE d.tenant_id = l.tenant_id AND d.subscription_id = l.subscription_id AND d.due_at > 0)), 0)
		FROM webhook_lanes AS l WHERE l.paused_at = 0 AND l.due_at > 0 AND l.due_at <= $1`

	pauseLanes = `UPDATE webhook_lanes SET paused_at = $2 WHERE tenant_id = $1 AND paused_at = 0`
	// resumeLanes lets the clocks of lanes run on from where they stopped.
	resumeLanes = `
		UPDATE webhook_lanes SET clock_offset = clock_offset + $2 - paused_at,
			due_at = CASE WHEN due_at > 0 AND due_at < $3 THEN due_at + $2 - paused_at ELSE due_at END, paused_at = 0
		WHERE tenant_id = $1 AND paused_at > 0`
	selectPaused = `SELECT DISTINCT tenant_id FROM webhook_lanes WHERE paused_at > 0`

	noteSuccess = `
		UPDATE webhook_lanes SET last_success_at = $3, failing_since = 0, failing_noted = 0 WHERE tenant_id = $1 AND subscription_id = $2`
	noteFailure = `
		UPDATE webhook_lanes SET failing_since = $3 WHERE tenant_id = $1 AND subscription_id = $2 AND failing_since = 0`
	// noteFailing changes a row if the subscription has failed since an instant, and that was
	// not noted before.
	noteFailing = `
		UPDATE webhook_lanes SET failing_noted = 1
		WHERE tenant_id = $1 AND subscription_id = $2 AND failing_noted = 0 AND failing_since > 0 AND failing_since <= $3`
)

const (
	deliveryColumns = `
		d.tenant_id, d.subscription_id, d.id, d.position, d.event_id, d.event_type, d.event, d.operations, d.size, d.status, d.history, d.due_at, d.created_at`

	// SelectDueDeliveries reads the due deliveries of a lane. It is exported for measurements.
	SelectDueDeliveries = `
		SELECT ` + deliveryColumns + `, d.last_response FROM webhook_deliveries AS d
		WHERE d.tenant_id = $1 AND d.subscription_id = $2 AND d.due_at > 0 AND d.due_at <= $3 ORDER BY d.due_at, d.id LIMIT $4`
	minDue = `SELECT COALESCE(MIN(due_at), 0) FROM webhook_deliveries WHERE tenant_id = $1 AND subscription_id = $2 AND due_at > 0`

	// finish stores the result of the attempt after so many finished ones.
	finish = `
		UPDATE webhook_deliveries SET status = $4, attempts = attempts + 1, history = $5, last_response = $6, due_at = $7
		WHERE tenant_id = $1 AND subscription_id = $2 AND id = $3 AND attempts = $8 AND due_at > 0
		RETURNING id`
	// bury ends a delivery that is not tried any more.
	bury = `
		UPDATE webhook_deliveries SET status = $4, due_at = 0
		WHERE tenant_id = $1 AND subscription_id = $2 AND id = $3 AND due_at > 0
		RETURNING id`

	selectClock = `
		SELECT s.state, l.clock_offset FROM webhook_lanes AS l JOIN webhook_subscriptions AS s ON s.tenant_id = l.tenant_id AND s.id = l.subscription_id
		WHERE l.tenant_id = $1 AND l.subscription_id = $2`
)

// scanDeliveries reads deliveryColumns and one further column, which it scans into the result of
// more; done is called with each delivery after that. The due times are by the clock of the lane.
func scanDeliveries(rows *sqldb.Rows, err error, more func() any, done func(*Delivery)) (found []*Delivery, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		d := new(Delivery)
		var operations, history string
		var created int64
		err := rows.Scan(&d.TenantID, &d.SubscriptionID, &d.ID, &d.position, &d.EventID, &d.EventType, &d.body, &operations, &d.size,
			&d.Status, &history, &d.due, &created, more())
		if err == nil {
			d.operations, err = readVisible(operations)
		}
		if err = errors.Join(err, json.Unmarshal([]byte(history), &d.Attempts)); err != nil {
			return nil, err
		}
		d.CreatedAt = time.UnixMicro(created).UTC()
		done(d)
		found = append(found, d)
	}
	return found, rows.Err()
}

// scanPending reads deliveryColumns and the last response.
func scanPending(rows *sqldb.Rows, err error) ([]*Delivery, error) {
	var response string
	return scanDeliveries(rows, err, func() any { return &response }, func(d *Delivery) { d.response = response })
}

// asJSON returns the stored form of attempts and responses.
func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("webhooks: " + err.Error()) // of our own types
	}
	return string(text)
}
