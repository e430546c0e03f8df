package reporting

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"stonetown/internal/jobs"
	"stonetown/internal/notify"
)

// mailJob is a mail about a run to a user.
type mailJob struct {
	Report string `json:"report"`
	Run    string `json:"run"`
	UserID string `json:"user_id"`
}

// send sends a mail about a run, unless the user may not read the run now.
func (r *Registry) send(ctx context.Context, tenantID string, j mailJob) error {
	run, mails, err := r.GetRun(ctx, tenantID, j.Report, j.Run)
	if errors.Is(err, ErrRunNotFound) {
		return errors.Join(err, jobs.ErrDrop)
	}
	if err != nil {
		return err
	}
	waiting := false
	for _, m := range mails {
		waiting = waiting || m.UserID == j.UserID && m.State == "queued"
	}
	if !waiting {
		return nil
	}
	reason, err := r.people.MayReceive(ctx, tenantID, j.UserID, Scopes(run.Kind, run.Parameters))
	if err != nil {
		return fmt.Errorf("recipient of report: %w", err)
	}
	if reason == "" {
		err = r.mail.SendReport(ctx, tenantID, j.UserID, message(run))
		switch {
		case errors.Is(err, ErrNoRecipient):
			reason = "user_not_found"
		case errors.Is(err, notify.ErrRefused):
			reason = "mail_refused"
		case err != nil:
			return err
		}
	}
	return updateMail(ctx, r.db, run, j.UserID, reason)
}

// message returns the mail about a run. Its figures are those of the whole, which have no names of
// groups or methods.
func message(run Run) Message {
	m := Message{
		Report: run.Name, At: run.FinishedAt, Figures: []string{fmt.Sprintf("Rows: %d", run.Rows)},
		Path: "/console/reports/" + url.PathEscape(run.ReportID) + "/runs/" + url.PathEscape(run.ID),
	}
	for _, f := range run.Figures {
		if f.Label == nil {
			m.Figures = append(m.Figures, fmt.Sprintf("%s: %d", title(f.Name), f.Value))
		}
	}
	return m
}

// title returns the name of a figure as text for people.
func title(name string) string {
	text := strings.ReplaceAll(strings.ReplaceAll(name, "sign_ins", "sign-ins"), "_", " ")
	return strings.ToUpper(text[:1]) + text[1:]
}
