package incident

import (
	"context"
	"errors"
	"fmt"

	"stonetown/identity"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/notify"
	"stonetown/internal/sqldb"
)

// The kinds of jobs.
const (
	jobNotify = "breach.notify"
	jobMail   = "mail.breach"
)

// stepUsers is the number of users of one step of a notification.
const stepUsers = 200

type (
	// step is a step of a notification: the users after one.
	step struct {
		Incident     string `json:"incident"`
		Notification string `json:"notification"`
		After        string `json:"after"`
	}
	// mail is a mail of a notification to a user.
	mail struct {
		Incident     string `json:"incident"`
		Notification string `json:"notification"`
		UserID       string `json:"user_id"`
	}
)

// register registers the jobs.
func (r *Registry) register() {
	r.jobs.Register(jobs.Kind{Name: jobNotify, Attempts: jobs.Unlimited, Handle: func(ctx context.Context, job jobs.Job) error {
		var s step
		if err := job.Read(&s); err != nil {
			return errors.Join(err, jobs.ErrDrop)
		}
		return r.step(ctx, job.TenantID, s)
	}})
	r.jobs.Register(jobs.Kind{Name: jobMail, Handle: func(ctx context.Context, job jobs.Job) error {
		var m mail
		if err := job.Read(&m); err != nil {
			return errors.Join(err, jobs.ErrDrop)
		}
		return r.send(ctx, job.TenantID, m)
	}})
}

// Notify begins to send a message to the affected users of an incident, those that there are when
// the job comes to them. It fails with [ErrNotFound], [ErrClosed], [ErrNobodyAffected] or
// [ErrTooManyNotifications].
func (r *Registry) Notify(ctx context.Context, tenantID, incidentID, subject, message string) (Notification, error) {
	now := r.now()
	n := Notification{
		ID: id.NewOrdered(id.Notification, now), TenantID: tenantID, IncidentID: incidentID, Subject: subject, Message: message,
		CreatedAt: now, CreatedBy: eventlog.OriginOf(ctx).Actor,
	}
	err := r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		i, err := lockIncident(ctx, tx, tenantID, incidentID)
		if err != nil {
			return err
		}
		var earlier int
		if err := tx.QueryRow(ctx, `SELECT COUNT(*) FROM breach_notifications WHERE tenant_id = $1 AND incident_id = $2`, tenantID, incidentID).Scan(&earlier); err != nil {
			return err
		}
		switch {
		case !i.ClosedAt.IsZero():
			return ErrClosed
		case i.Affected == 0 && !i.AllUsers:
			return ErrNobodyAffected
		case earlier >= MaxNotifications:
			return ErrTooManyNotifications
		}
		var b sqldb.Batch
		insertNotification(&b, n)
		r.jobs.Enqueue(&b, tenantID, jobNotify, step{Incident: incidentID, Notification: n.ID})
		eventlog.Append(&b, tenantID, notified(ctx, i, n))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Notification{}, fmt.Errorf("notify affected users: %w", err)
	}
	r.jobs.Wake()
	return n, nil
}

// Notifications lists the notifications of an incident, newest first. It fails with [ErrNotFound].
func (r *Registry) Notifications(ctx context.Context, tenantID, incidentID string) ([]Notification, error) {
	if _, err := r.Get(ctx, tenantID, incidentID); err != nil {
		return nil, err
	}
	found, err := selectNotifications(ctx, r.db, tenantID, incidentID)
	if err != nil {
		return nil, fmt.Errorf("list notifications: %w", err)
	}
	return found, nil
}

// step enqueues the mails to the next users, and the job of the step after it. A step that is run
// again has no effect.
func (r *Registry) step(ctx context.Context, tenantID string, s step) error {
	i, err := r.Get(ctx, tenantID, s.Incident)
	if errors.Is(err, ErrNotFound) {
		return errors.Join(err, jobs.ErrDrop)
	}
	if err != nil {
		return err
	}
	var users []string
	if i.AllUsers {
		users, err = r.users.UserIDs(ctx, tenantID, s.After, stepUsers)
	} else {
		var affected []AffectedUser
		affected, err = selectAffected(ctx, r.db, tenantID, i.ID, s.After, stepUsers)
		for _, a := range affected {
			users = append(users, a.UserID)
		}
	}
	if err != nil {
		return fmt.Errorf("users to notify: %w", err)
	}
	err = r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		n, err := selectNotification(ctx, tx, tenantID, s.Incident, s.Notification)
		if err != nil || n.after != s.After || !n.FinishedAt.IsZero() {
			return err
		}
		n.Mails += len(users)
		var b sqldb.Batch
		for _, userID := range users {
			r.jobs.Enqueue(&b, tenantID, jobMail, mail{s.Incident, s.Notification, userID})
		}
		if len(users) < stepUsers {
			n.FinishedAt = r.now()
		} else {
			n.after = users[len(users)-1]
			r.jobs.Enqueue(&b, tenantID, jobNotify, step{s.Incident, s.Notification, n.after})
		}
		updateNotification(&b, n)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("notify affected users: %w", err)
	}
	r.jobs.Wake()
	return nil
}

// send sends the mail to a user.
func (r *Registry) send(ctx context.Context, tenantID string, m mail) error {
	n, err := selectNotification(ctx, r.db, tenantID, m.Incident, m.Notification)
	if err == nil {
		err = r.mail.SendAnnouncement(ctx, tenantID, m.UserID, n.Subject, n.Message)
	}
	if errors.Is(err, ErrNotFound) || errors.Is(err, identity.ErrUserNotFound) || errors.Is(err, notify.ErrRefused) {
		return errors.Join(err, jobs.ErrDrop)
	}
	return err
}
