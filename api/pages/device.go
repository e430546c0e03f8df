package pages

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

const devicePath = "/api/v1/auth/device"

// deviceForm asks for the code that a device shows. It asks even if the link contains the code,
// because an attacker may have made the link for a device of their own (RFC 8628 §5.4).
func deviceForm(v *visit) error {
	if v.user() == "" {
		return v.redirect("/auth/sign-in?next=" + url.QueryEscape(v.r.URL.RequestURI()))
	}
	return v.show("device.html", "Connect a device", v.form("user_code"))
}

// device shows the request of a device, and then answers it.
func device(v *visit) error {
	form := object{"user_code": v.form("user_code")}
	if decision := v.form("decision"); decision != "" {
		form["decision"] = decision
	}
	wants, err := v.one(http.MethodPost, devicePath, form)
	if p := new(problem); errors.As(err, &p) && (p.code == "code_invalid" || p.code == "validation_failed" || p.code == "rate_limited") {
		return v.again("device.html", "Connect a device", v.form("user_code"), p)
	}
	if err != nil {
		return err
	}
	switch wants["status"] {
	case "allowed":
		return v.show("device-done.html", "Device connected", v.say("You can continue on the device."))
	case "denied":
		return v.show("device-done.html", "Device not connected", v.say("It has no access to your account."))
	}
	page := struct {
		consentRequest
		IP any
	}{consentRequest: consentRequest{Flow: strings.ToUpper(v.form("user_code")), Person: v.user()}, IP: wants["ip"]}
	page.read(wants, v.speech)
	return v.show("device-confirm.html", "Connect this device?", page)
}
