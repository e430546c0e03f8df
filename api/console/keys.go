package console

import (
	"net/http"
	"slices"

	"stonetown/api/inprocess"
)

const (
	keysPage         = securityPage + "/keys"
	keysPath         = settingsPath + "/signing-keys"
	certificatesPage = securityPage + "/certificates"
	certificatesPath = settingsPath + "/saml-certificates"
)

// signingKeys lists the keys that tokens are signed with.
func signingKeys(v *visit) error {
	a, err := v.read(http.MethodGet, query(keysPath, "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	data := object{"Keys": a.Data, "Write": v.may("settings:write"), "Page": keysPage}
	v.paged(data, a.Meta, keysPage)
	return v.show("keys.html", "Signing keys", data)
}

// rotation is a replacement of keys or of a certificate, which is confirmed first.
type rotation struct {
	title, text, button string
	safe                bool // nothing that is in use becomes invalid
	body                object
	done                string // see [notices]
}

var (
	rotateKeys = rotation{
		title:  "Publish new signing keys?",
		text:   "A new key of each algorithm is published now and signs in a day, when resource servers have read it. The present keys sign until then. Tokens that they have signed stay valid until they expire. Where a next key exists already, nothing changes.",
		button: "Publish new keys", safe: true, body: object{"emergency": false}, done: "keys-rotated",
	}
	replaceKeys = rotation{
		title:  "Replace all signing keys now?",
		text:   "Do this if a private key may be compromised. New keys sign at once, and all others are removed: every access token and ID token of the tenant becomes invalid now, and applications have to get new ones. Sessions and refresh tokens stay valid. Resource servers that verify tokens themselves may accept the old keys for another 15 minutes, until they read the key set again.",
		button: "Replace all keys now", body: object{"emergency": true}, done: "keys-replaced",
	}
)

// confirmRotation asks for a confirmation.
func confirmRotation(v *visit, r rotation, path, page string) error {
	if err := v.require("settings:write"); err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodPost, path + "/rotate", r.body})
	return v.confirm(r.title, object{
		"Text": r.text, "Button": r.button, "Safe": r.safe, "Action": v.r.URL.EscapedPath(), "Cancel": page, "Fields": object{},
	}, nil)
}

func rotateKeysForm(v *visit) error  { return confirmRotation(v, rotateKeys, keysPath, keysPage) }
func replaceKeysForm(v *visit) error { return confirmRotation(v, replaceKeys, keysPath, keysPage) }

func rotateSigningKeys(v *visit) error {
	return v.act(keysPath+"/rotate", rotateKeys.body, keysPage, rotateKeys.done)
}

func replaceSigningKeys(v *visit) error {
	return v.act(keysPath+"/rotate", replaceKeys.body, keysPage, replaceKeys.done)
}

// certificateUses are the uses of certificates for SAML.
var certificateUses = []choice{
	{"identity_provider", "Identity provider", "Signs what the applications of the type saml get."},
	{"service_provider", "Service provider", "Signs requests to the identity providers of connections, and decrypts their assertions."},
}

var errNoUse = &inprocess.Error{Status: http.StatusNotFound, Message: "certificates have no such use"}

// certificates lists the certificates for SAML by their use.
func certificates(v *visit) error {
	a, err := v.read(http.MethodGet, query(certificatesPath, "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	type group struct {
		choice
		Certificates []any
	}
	var groups []group
	all, _ := a.Data.([]any)
	for _, use := range certificateUses {
		groups = append(groups, group{use, slices.DeleteFunc(slices.Clone(all), func(item any) bool {
			o, _ := item.(object)
			return o["use"] != use.Value
		})})
	}
	data := object{"Uses": groups, "Write": v.may("settings:write"), "Page": certificatesPage}
	v.paged(data, a.Meta, certificatesPage)
	return v.show("certificates.html", "SAML certificates", data)
}

// certificateRotation returns the replacement of the certificate of the page; ok is false if there is
// no such use.
func (v *visit) certificateRotation(emergency bool) (r rotation, ok bool) {
	i := slices.IndexFunc(certificateUses, func(use choice) bool { return use.Value == v.variable("use") })
	if i < 0 {
		return r, false
	}
	body := object{"use": certificateUses[i].Value, "emergency": emergency}
	of := map[string]string{"identity_provider": "identity provider", "service_provider": "service provider"}[certificateUses[i].Value]
	if emergency {
		return rotation{
			title:  "Replace the certificate of the " + of + " now?",
			text:   "Do this if the private key may be compromised. A new key signs at once, on all servers within a minute, and all others are removed. Partners refuse what it signs until they have the new certificate, so users cannot sign in there until then.",
			button: "Replace it now", body: body, done: "certificate-replaced",
		}, true
	}
	return rotation{
		title:  "Publish a new certificate of the " + of + "?",
		text:   "A new certificate is added to the metadata now and signs in a week. The present one signs until then. Partners that do not read the metadata must get the new certificate within this week. If a next certificate exists already, nothing changes.",
		button: "Publish a new certificate", safe: true, body: body, done: "certificate-rotated",
	}, true
}

func (v *visit) confirmCertificate(emergency bool) error {
	r, ok := v.certificateRotation(emergency)
	if !ok {
		return errNoUse
	}
	return confirmRotation(v, r, certificatesPath, certificatesPage)
}

func (v *visit) replaceCertificate(emergency bool) error {
	r, ok := v.certificateRotation(emergency)
	if !ok {
		return errNoUse
	}
	return v.act(certificatesPath+"/rotate", r.body, certificatesPage, r.done)
}

func rotateCertificateForm(v *visit) error  { return v.confirmCertificate(false) }
func rotateCertificate(v *visit) error      { return v.replaceCertificate(false) }
func replaceCertificateForm(v *visit) error { return v.confirmCertificate(true) }
func replaceCertificateNow(v *visit) error  { return v.replaceCertificate(true) }
