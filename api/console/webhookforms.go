package console

import (
	"net/http"
)

// subscriptionFields are the members of a subscription that can be changed.
var subscriptionFields = []section{
	{"", []field{
		{Name: "name", Label: "Name", Kind: asText, Required: true},
		{Name: "url", Label: "Receiver", Kind: asText, Required: true, Hint: "An https URL on the public Internet."},
		{Name: "description", Label: "Description", Kind: asArea, Hint: "At most 1,000 bytes."},
		{Name: "events", Label: "Events", Kind: asLines, Required: true, Hint: "One on each line: types of events, categories such as user.*, or * for all."},
	}},
	{"Who sees what", []field{
		{Name: "visible_to", Label: "Only what is visible to", Kind: asJSON, Hint: `Empty: no limit. Events about resources on which a subject may perform an action, such as {"subject": {"type": "user", "id": "ann"}, "action": "view"}`},
		{Name: "owners", Label: "Owners", Kind: asJSON, Hint: `Subjects that may change the subscription, such as [{"type": "group", "id": "eng", "relation": "member"}]`},
		{Name: "viewers", Label: "Viewers", Kind: asJSON, Hint: "Subjects that may read the subscription and its deliveries."},
	}},
}

// subscriptionErrors are the fields that errors are about, by their codes.
var subscriptionErrors = map[string]string{"webhook_url_invalid": "url", "event_type_unknown": "events"}

const newSubscriptionTitle = "New subscription"

func newSubscription() *form {
	return &form{Sections: subscriptionFields, Action: webhooksPage + "/new", Button: "Create", Cancel: webhooksPage}
}

func newSubscriptionForm(v *visit) error {
	if err := v.require("webhooks:write"); err != nil {
		return err
	}
	f := newSubscription()
	f.show(object{})
	v.calls = append(v.calls, call{http.MethodPost, "/api/v1/webhooks/subscriptions", object{"name": "Name", "url": "https://receiver.example.com/events", "events": []string{"user.*"}}})
	return v.show("form.html", newSubscriptionTitle, object{"Form": f})
}

func createSubscription(v *visit) error {
	if err := v.require("webhooks:write"); err != nil {
		return err
	}
	f := newSubscription()
	body, wrong := v.body(f, object{})
	if wrong != nil {
		return v.again("form.html", newSubscriptionTitle, object{"Form": f}, wrong)
	}
	a, err := v.once(http.MethodPost, "/api/v1/webhooks/subscriptions", body)
	if wrong := f.refused(err, subscriptionErrors); wrong != nil {
		return v.again("form.html", newSubscriptionTitle, object{"Form": f}, wrong)
	}
	if err != nil {
		return err
	}
	s, _ := a.Data.(object)
	id, _ := s["id"].(string)
	return v.showSecret("Subscription created", s["signing_secret"], object{"Text": "This is the secret that signs requests.", "Continue": webhooksPage + "/" + id})
}

// subscriptionForm returns the form for the subscription of the page.
func (v *visit) subscriptionForm() (*form, object, error) {
	s, err := v.one(v.subscriptionPath())
	return &form{Sections: subscriptionFields, Action: v.subscriptionPage() + "/edit", Button: "Save", Cancel: v.subscriptionPage()}, s, err
}

func editSubscriptionForm(v *visit) error {
	if err := v.require("webhooks:write"); err != nil {
		return err
	}
	f, s, err := v.subscriptionForm()
	if err != nil {
		return err
	}
	f.show(s)
	v.calls = append(v.calls, call{http.MethodPatch, v.subscriptionPath(), object{"events": s["events"]}})
	return v.show("form.html", titleOf("Edit ", s), object{"Form": f})
}

func editSubscription(v *visit) error {
	if err := v.require("webhooks:write"); err != nil {
		return err
	}
	f, s, err := v.subscriptionForm()
	if err != nil {
		return err
	}
	return v.change(f, titleOf("Edit ", s), v.subscriptionPath(), s, subscriptionErrors, v.subscriptionPage())
}

// eventTypes lists the types of events.
func eventTypes(v *visit) error {
	a, err := v.read(http.MethodGet, query("/api/v1/webhooks/event-types", "limit", "100", "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	data := object{"Types": a.Data}
	v.paged(data, a.Meta, webhooksPage+"/event-types")
	return v.show("event-types.html", "Types of events", data)
}

// confirmSubscription asks for a confirmation of an action on the subscription of the page.
func (v *visit) confirmSubscription(verb, method, operation, text string) error {
	if err := v.require("webhooks:write"); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.subscriptionPath(), nil)
	if err != nil {
		return err
	}
	s, _ := a.Data.(object)
	v.calls = append(v.calls, call{method, v.subscriptionPath() + operation, nil})
	return v.show("confirm.html", titleOf(verb+" ", s)+"?", object{
		"Text": text, "Button": verb, "Action": v.r.URL.EscapedPath(), "Cancel": v.subscriptionPage(), "Fields": object{},
	})
}

func disableSubscriptionForm(v *visit) error {
	return v.confirmSubscription("Disable", http.MethodPost, "/disable", "The receiver gets no more events until the subscription is enabled again. Deliveries on their way become dead letters, which can be delivered later; events that happen meanwhile are not sent.")
}

func disableSubscription(v *visit) error {
	return v.act(v.subscriptionPath()+"/disable", nil, v.subscriptionPage(), "hook-disabled")
}

func enableSubscription(v *visit) error {
	return v.act(v.subscriptionPath()+"/enable", nil, v.subscriptionPage(), "hook-enabled")
}

func deleteSubscriptionForm(v *visit) error {
	return v.confirmSubscription("Delete", http.MethodDelete, "", "The subscription is deleted for good, with its deliveries and dead letters.")
}

func deleteSubscription(v *visit) error {
	if _, err := v.call(http.MethodDelete, v.subscriptionPath(), nil); err != nil {
		return err
	}
	v.redirect(webhooksPage + "?done=hook-deleted")
	return nil
}

func rotateSubscriptionSecretForm(v *visit) error {
	if err := v.require("webhooks:write"); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.subscriptionPath(), nil)
	if err != nil {
		return err
	}
	s, _ := a.Data.(object)
	v.calls = append(v.calls, call{http.MethodPost, v.subscriptionPath() + "/rotate-secret", nil})
	return v.show("rotate.html", titleOf("New secret for ", s), object{
		"Text": "The subscription gets a new signing secret, which is shown once. Requests are signed with both until the old one expires. A secret from before the old one expires at once.",
		"Old":  oldSecret, "Action": v.subscriptionPage() + "/rotate-secret", "Cancel": v.subscriptionPage(),
	})
}

func rotateSubscriptionSecret(v *visit) error {
	return v.rotate(v.subscriptionPath(), v.subscriptionPage(), "signing_secret", "This is the secret that signs requests.")
}
