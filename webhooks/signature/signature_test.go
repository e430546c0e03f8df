package signature

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Keys are the bytes 0x00 to 0x1f and 0xe0 to 0xff.
const (
	textA = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	textB = "whsec_4OHi4+Tl5ufo6err7O3u7/Dx8vP09fb3+Pn6+/z9/v8="

	vectorID = "evt_01jd3z7n0v5q8x2k4m6p9r1t3w"
	vectorAt = 1795345678
)

var allBytes = func() (b []byte) {
	for i := range 1024 {
		b = append(b, byte(i))
	}
	return b
}()

// vectors were computed with OpenSSL:
//
//	printf '%s.%s.' $ID $AT | cat - body | openssl dgst -sha256 -mac HMAC -macopt hexkey:$KEY -binary | base64
//	openssl dgst -sha256 -hmac $TEXT -r < body
var vectors = []struct {
	name                 string
	body                 []byte
	standardA, standardB string
	serviceA, serviceB   string
}{
	{
		"a test event", []byte(`{"event_id":"evt_1","event_type":"test.ping","data":{"test":true}}`),
		"v1,07JAkH3RSzZ/d3wSSYLd/zYbwI0nfaLe3hHrZ5Nn1MU=", "v1,iB0RYgkWJUfMhO/rA5nrGB69q8A2YESbhSG0MJYzccI=",
		"d19b703b4911e89c97726f7e3f052ac09b0364934ba8aee5494216deb9ebe94c",
		"e7cbeae9acba88cfcb5ba432c0006f4805dd5bc9ddc34192fdff88eaf80298ff",
	},
	{
		"no body", nil,
		"v1,VTluzCSCc4zkPQX/EszPdtdyEFqKQmBPNf7a/F3kPCQ=", "v1,Eh99WllQUWH8nT+tx+u5th3pHew1mC5GMcukXnibIbU=",
		"3869a63cbe73c747431cf9ff4d38cbaa6ad6adb0541c4753e1c90f7b6920620f",
		"7787891414805bdb4ae8d89b546e06c763e7473dfdff64f08ba3458151a01c31",
	},
	{
		"all bytes", allBytes,
		"v1,ACEOOuOMIlhaBU990h9RVMWy01Gtah0YCariJVEgh7A=", "v1,xdxdH9BMn3CA659KLTT12UoabXDxMiFrxkzs5+zp/EA=",
		"67e6835649e93e41577516cf56cef0d5c1bf18673b6211ff7f844dfd4e5daafb",
		"a9f39e5d058b978d8f9335818be00ee3205a34838ddfe284dba835d7ecbed91a",
	},
}

func parse(t testing.TB, text string) Secret {
	t.Helper()
	s, err := ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVectors(t *testing.T) {
	a, b, at := parse(t, textA), parse(t, textB), time.Unix(vectorAt, 999)
	for _, v := range vectors {
		h := make(http.Header)
		for range 2 { // the second attempt replaces the headers of the first
			Sign(h, vectorID, at, v.body, b, a)
			for name, want := range map[string]string{
				"webhook-id":                   vectorID,
				"webhook-timestamp":            "1795345678",
				"webhook-signature":            v.standardB + " " + v.standardA,
				"X-Service-Timestamp":          "1795345678",
				"X-Service-Signature":          v.serviceB,
				"X-Service-Signature-Previous": v.serviceA,
			} {
				if got := h.Values(name); len(got) != 1 || got[0] != want {
					t.Errorf("%s: %s is %q, want %q", v.name, name, got, want)
				}
			}
			if len(h) != 6 {
				t.Errorf("%s: %v", v.name, h)
			}
		}
		Sign(h, vectorID, at, v.body, a, Secret{})
		if h.Get("webhook-signature") != v.standardA || h.Get("X-Service-Signature") != v.serviceA || len(h) != 5 {
			t.Errorf("%s: without a previous secret: %v", v.name, h)
		}
	}
}

func TestVerify(t *testing.T) {
	a, b, other := parse(t, textA), parse(t, textB), NewSecret()
	at, body := time.Unix(vectorAt, 0), []byte(`{"a":1}`)
	signed := func(change func(h http.Header)) http.Header {
		h := make(http.Header)
		Sign(h, vectorID, at, body, b, a)
		if change != nil {
			change(h)
		}
		return h
	}
	set := func(name, value string) http.Header { return signed(func(h http.Header) { h.Set(name, value) }) }
	add := func(name string) http.Header { return signed(func(h http.Header) { h.Add(name, h.Get(name)) }) }
	del := func(name string) http.Header { return signed(func(h http.Header) { h.Del(name) }) }
	right := signed(nil)
	list := right.Get(HeaderSignature)
	for _, tc := range []struct {
		name              string
		h                 http.Header
		body              []byte
		secret            Secret
		now               time.Time
		standard, service error
	}{
		{"current secret", right, body, b, at, nil, nil},
		{"previous secret", right, body, a, at, nil, nil},
		{"other secret", right, body, other, at, ErrNoMatch, ErrNoMatch},
		{"no secret", right, body, Secret{}, at, ErrNoMatch, ErrNoMatch},
		{"other body", right, []byte(`{"a":2}`), b, at, ErrNoMatch, ErrNoMatch},
		{"no body", right, nil, b, at, ErrNoMatch, ErrNoMatch},
		{"oldest", right, body, b, at.Add(Tolerance), nil, nil},
		{"too old", right, body, b, at.Add(Tolerance + 1), ErrTooOld, ErrTooOld},
		{"newest", right, body, b, at.Add(-Tolerance), nil, nil},
		{"too new", right, body, b, at.Add(-Tolerance - 1), ErrTooNew, ErrTooNew},
		{"no headers", nil, body, b, at, ErrMissingHeader, ErrMissingHeader},
		{"no id", del(HeaderID), body, b, at, ErrMissingHeader, nil},
		{"empty id", set(HeaderID, ""), body, b, at, ErrMissingHeader, nil},
		{"other id", set(HeaderID, "evt_2"), body, b, at, ErrNoMatch, nil},
		{"two ids", add(HeaderID), body, b, at, ErrInvalidHeader, nil},
		{"dot in the id", set(HeaderID, "evt.1"), body, b, at, ErrInvalidHeader, nil},
		{"no timestamp", del(HeaderTimestamp), body, b, at, ErrMissingHeader, nil},
		{"other timestamp", set(HeaderTimestamp, "1795345679"), body, b, at, ErrNoMatch, nil},
		{"two timestamps", add(HeaderTimestamp), body, b, at, ErrInvalidHeader, nil},
		{"timestamp with a sign", set(HeaderTimestamp, "+1795345678"), body, b, at, ErrInvalidHeader, nil},
		{"timestamp that is not a number", set(HeaderTimestamp, "1795345678.0"), body, b, at, ErrInvalidHeader, nil},
		{"enormous timestamp", set(HeaderTimestamp, "9223372036854775807"), body, b, at, ErrInvalidHeader, nil},
		{"largest timestamp", set(HeaderTimestamp, "1099511627775"), body, b, at, ErrTooNew, nil},
		{"timestamp 0", set(HeaderTimestamp, "0"), body, b, at, ErrTooOld, nil},
		{"no signature", del(HeaderSignature), body, b, at, ErrMissingHeader, nil},
		{"two signatures", add(HeaderSignature), body, b, at, ErrInvalidHeader, nil},
		{"among others", set(HeaderSignature, "v1a,AAAA  v1,AAAA "+list+" v2,"), body, a, at, nil, nil},
		{"other version", set(HeaderSignature, strings.ReplaceAll(list, "v1,", "v2,")), body, b, at, ErrNoMatch, nil},
		{"without a version", set(HeaderSignature, strings.ReplaceAll(list, "v1,", "")), body, b, at, ErrNoMatch, nil},
		{"half a signature", set(HeaderSignature, list[:20]), body, b, at, ErrNoMatch, nil},
		{"spaces", set(HeaderSignature, "   "), body, b, at, ErrNoMatch, nil},
		{"no service signature", del(HeaderServiceSignature), body, b, at, nil, ErrMissingHeader},
		{"two service signatures", add(HeaderServiceSignature), body, b, at, nil, ErrInvalidHeader},
		{"other service signature", set(HeaderServiceSignature, "00"), body, b, at, nil, ErrNoMatch},
		{"no previous signature", del(HeaderServiceSignaturePrevious), body, a, at, nil, ErrNoMatch},
		{"two previous signatures", add(HeaderServiceSignaturePrevious), body, a, at, nil, ErrInvalidHeader},
		{"no service timestamp", del(HeaderServiceTimestamp), body, b, at, nil, ErrMissingHeader},
		{"bad service timestamp", set(HeaderServiceTimestamp, "now"), body, b, at, nil, ErrInvalidHeader},
	} {
		if err := Verify(tc.h, tc.body, tc.secret, tc.now, Tolerance); !errors.Is(err, tc.standard) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.standard)
		}
		if err := VerifyService(tc.h, tc.body, tc.secret, tc.now, Tolerance); !errors.Is(err, tc.service) {
			t.Errorf("%s: X-Service form: %v, want %v", tc.name, err, tc.service)
		}
	}
	if err := Verify(del(HeaderID), body, b, at, Tolerance); err.Error() != "a header is missing: Webhook-Id" {
		t.Error(err)
	}
}

func TestParseSecret(t *testing.T) {
	for _, text := range []string{textA, textB, NewSecret().Text()} {
		if got := parse(t, text); got.Text() != text || got.IsZero() {
			t.Errorf("%q, want %q", got.Text(), text)
		}
	}
	if one, another := NewSecret(), NewSecret(); one.Text() == another.Text() {
		t.Error("two secrets are equal")
	}
	const encoded = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	for _, text := range []string{
		"", "whsec_", encoded, "WHSEC_" + encoded, " " + textA, textA + "\n", textA + "=",
		"whsec_" + encoded[:20] + "\n" + encoded[20:],            // base64 of several lines
		"whsec_" + strings.TrimSuffix(encoded, "="),              // without padding
		"whsec_" + strings.TrimSuffix(encoded, "8=") + "9=",      // bits beyond the last byte
		"whsec_4OHi4-Tl5ufo6err7O3u7_Dx8vP09fb3-Pn6-_z9_v8=",     // URL-safe alphabet
		"whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==",     // 31 bytes
		"whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gIQ==", // 34 bytes
	} {
		if s, err := ParseSecret(text); !errors.Is(err, ErrSecret) || !s.IsZero() || s.Text() != "" {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
}

func TestSecretIsNotPrinted(t *testing.T) {
	s := parse(t, textA)
	hidden := struct{ secret Secret }{s} // package fmt calls no methods of unexported fields
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "pointer", &s, "hidden", hidden)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s, "pointer", &s, "hidden", hidden)
	printed := log.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		printed += fmt.Sprintf(verb+verb+verb+verb+"\n", s, &s, hidden, []Secret{s})
	}
	for _, secret := range []string{"AAECAwQ", "[0 1 2 3", "0x0, 0x1, 0x2", "000102", "119 104 115", fmt.Sprintf("%x", textA[:10])} {
		if strings.Contains(printed, secret) {
			t.Errorf("%q is in\n%s", secret, printed)
		}
	}
	if strings.Count(printed, "whsec_[redacted]") < 4 {
		t.Errorf("not replaced:\n%s", printed)
	}
}

func TestSignWithoutSecretPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("signed")
		}
	}()
	Sign(make(http.Header), vectorID, time.Now(), nil, Secret{}, NewSecret())
}

// FuzzVerify sends hostile headers. None of them verifies unless it has the signature.
func FuzzVerify(f *testing.F) {
	secret := parse(f, textA)
	at := time.Unix(vectorAt, 0)
	for _, v := range vectors {
		f.Add(vectorID, "1795345678", v.standardB+" "+v.standardA, v.serviceA, v.body)
		f.Add(vectorID, "1795345678", v.standardB, v.serviceB, v.body)
	}
	f.Add("", "-1", "v1,v1,,,  v1", "\x00", []byte("."))
	f.Add("a.b", "99999999999999999999", "v1, v1,=", "AA", []byte(nil))
	f.Fuzz(func(t *testing.T, id, timestamp, list, service string, body []byte) {
		h := http.Header{
			HeaderID: {id}, HeaderTimestamp: {timestamp}, HeaderSignature: {list},
			HeaderServiceTimestamp: {timestamp}, HeaderServiceSignature: {service},
		}
		want := make(http.Header)
		Sign(want, id, at, body, secret, Secret{})
		if err := Verify(h, body, secret, at, 0); err == nil &&
			(!strings.Contains(" "+list+" ", " "+want.Get(HeaderSignature)+" ") || timestamp != want.Get(HeaderTimestamp)) {
			t.Errorf("verified %q", h)
		}
		// As a number the timestamp may have leading zeros, which are not signed here.
		if err := VerifyService(h, body, secret, at, 0); err == nil && service != want.Get(HeaderServiceSignature) {
			t.Errorf("verified %q", h)
		}
	})
}

func BenchmarkSign(b *testing.B) {
	current, previous, at, body := NewSecret(), NewSecret(), time.Now(), allBytes
	for _, bc := range []struct {
		name     string
		previous Secret
	}{{"one secret", Secret{}}, {"rotation", previous}} {
		b.Run(bc.name, func(b *testing.B) {
			h := make(http.Header)
			b.ReportAllocs()
			for b.Loop() {
				Sign(h, vectorID, at, body, current, bc.previous)
			}
		})
	}
}
