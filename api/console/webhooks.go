package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"stonetown/api/inprocess"
)

const webhooksPage = "/console/webhooks"

func subscriptions(v *visit) error {
	const title = "Webhooks"
	state := v.form("state")
	data := object{"Write": v.may("webhooks:write"), "State": state, "States": []string{"enabled", "disabled"}}
	a, err := v.read(http.MethodGet, query("/api/v1/webhooks/subscriptions", "state", state, "cursor", v.form("cursor")), nil)
	v.paged(data, a.Meta, webhooksPage, "state", state)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status == http.StatusBadRequest {
		return v.again("webhooks.html", title, data, faultOf(e, "state", "state"))
	}
	if err != nil {
		return err
	}
	data["Subscriptions"] = a.Data
	return v.show("webhooks.html", title, data)
}

// subscriptionPath returns the path of the operations on the subscription of a page.
func (v *visit) subscriptionPath() string {
	return "/api/v1/webhooks/subscriptions/" + url.PathEscape(v.variable("subscription_id"))
}

// subscriptionPage returns the path of the page of the subscription.
func (v *visit) subscriptionPage() string {
	return webhooksPage + "/" + url.PathEscape(v.variable("subscription_id"))
}

// subscription shows a subscription with its deliveries, the newest first, and its dead letters.
func subscription(v *visit) error {
	s, err := v.one(v.subscriptionPath())
	if err != nil {
		return err
	}
	name, _ := s["name"].(string)
	status := v.form("status")
	data := object{
		"Subscription": s, "Write": v.may("webhooks:write"), "Status": status,
		"Statuses": []string{"pending", "retrying", "delivered", "dead_lettered", "cancelled"},
	}
	a, err := v.read(http.MethodGet, v.subscriptionPath()+"/dlq", nil)
	if err != nil {
		return err
	}
	data["DeadLetters"], data["MoreDeadLetters"] = a.Data, a.Meta.NextCursor != ""
	a, err = v.read(http.MethodGet, query(v.subscriptionPath()+"/deliveries", "status", status, "cursor", v.form("cursor")), nil)
	v.paged(data, a.Meta, v.subscriptionPage(), "status", status)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status == http.StatusBadRequest {
		return v.again("webhook.html", name, data, faultOf(e, "status", "status"))
	}
	if err != nil {
		return err
	}
	data["Deliveries"] = a.Data
	return v.show("webhook.html", name, data)
}

// testSubscription sends a test event.
func testSubscription(v *visit) error {
	return v.act(v.subscriptionPath()+"/test", nil, v.subscriptionPage(), "tested")
}

// replayDeadLetters delivers the chosen dead letters again or, with the button for all, all of them.
func replayDeadLetters(v *visit) error {
	body := object{}
	if v.form("all") == "" {
		entries := v.r.PostForm["entry"]
		if len(entries) == 0 {
			v.redirect(v.subscriptionPage() + "?done=none")
			return nil
		}
		body["entry_ids"] = entries
	}
	return v.act(v.subscriptionPath()+"/dlq/replay", body, v.subscriptionPage(), "replayed")
}

// dropDeadLettersForm asks for a confirmation.
func dropDeadLettersForm(v *visit) error {
	if err := v.require("webhooks:write"); err != nil {
		return err
	}
	entries := v.r.Form["entry"]
	if len(entries) == 0 {
		v.redirect(v.subscriptionPage() + "?done=none")
		return nil
	}
	for _, entry := range entries {
		v.calls = append(v.calls, call{http.MethodPost, dropPath(entry), nil})
	}
	title := "Drop this dead letter?"
	if len(entries) > 1 {
		title = fmt.Sprintf("Drop %d dead letters?", len(entries))
	}
	return v.show("confirm.html", title, object{
		"Text":   "The receiver does not get the events, and they cannot be delivered again.",
		"Button": "Drop", "Action": v.subscriptionPage() + "/drop", "Cancel": v.subscriptionPage(), "Fields": object{"entries": strings.Join(entries, " ")},
	})
}

func dropPath(entry string) string {
	return "/api/v1/webhooks/dlq-entries/" + url.PathEscape(entry) + "/drop"
}

func dropDeadLetters(v *visit) error {
	for _, entry := range strings.Fields(v.form("entries")) {
		_, err := v.call(http.MethodPost, dropPath(entry), nil)
		// One that was dropped or delivered meanwhile needs nothing.
		if e, ok := errors.AsType[*inprocess.Error](err); err != nil && (!ok || e.Code != "dlq_entry_not_queued") {
			return err
		}
	}
	v.redirect(v.subscriptionPage() + "?done=dropped")
	return nil
}

// redeliver repeats a delivery.
func redeliver(v *visit) error {
	return v.act("/api/v1/webhooks/deliveries/"+url.PathEscape(v.form("delivery"))+"/redeliver", nil, v.subscriptionPage(), "redelivered")
}
