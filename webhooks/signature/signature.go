// Package signature signs webhook deliveries and verifies them.
//
// A delivery carries two signatures, both HMAC-SHA-256 with the secret of its subscription.
// They differ in the signed content and in the form of the key:
//
//	                     Standard Webhooks              X-Service
//	signed content       id "." timestamp "." body      body
//	key                  the 32 bytes of the secret     the displayed secret, whsec_ included
//	encoding             v1,<base64>, in a list         lower-case hex
//	signature            webhook-signature              X-Service-Signature
//	id                   webhook-id                     event_id in the body
//	timestamp            webhook-timestamp              X-Service-Timestamp, not signed
//
// The Standard Webhooks form (standardwebhooks.com) is the one to verify: it covers the
// timestamp, so that a copy of a request is refused after the tolerance, and every library of
// the standard verifies it. The X-Service form proves the origin of the body, too, but a copy
// can be sent again with a new timestamp. Receivers of either form must deduplicate by the id
// of the event, because a delivery is made at least once.
//
// After a rotation, deliveries are signed with both secrets until the previous one ends:
// webhook-signature then lists two signatures, and X-Service-Signature-Previous is present.
// So a receiver can change its secret at any time before that end.
//
// The signature is computed over the bytes of the body as they are sent. A receiver must
// verify it before it parses the body: the same JSON in other bytes has another signature.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

const version = "v1," // of a signature in the list

// Sign sets the headers of both signatures, and removes those of an earlier attempt. The id
// of the event must contain no dot, which separates the parts of the signed content. previous
// is the zero Secret if no rotation is in progress. Sign panics if current is the zero Secret.
func Sign(h http.Header, eventID string, at time.Time, body []byte, current, previous Secret) {
	if current.IsZero() {
		panic("signature: Sign without a secret")
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	list := standard(eventID, timestamp, body, current)
	h[HeaderServiceSignature] = []string{service(body, current)}
	delete(h, HeaderServiceSignaturePrevious)
	if !previous.IsZero() {
		list += " " + standard(eventID, timestamp, body, previous)
		h[HeaderServiceSignaturePrevious] = []string{service(body, previous)}
	}
	h[HeaderServiceTimestamp] = []string{timestamp}
	h[HeaderID] = []string{eventID}
	h[HeaderTimestamp] = []string{timestamp}
	h[HeaderSignature] = []string{list}
}

// standard returns an entry of webhook-signature.
func standard(id, timestamp string, body []byte, s Secret) string {
	mac := hmac.New(sha256.New, s.keys().raw)
	head := make([]byte, 0, 64)
	head = append(head, id...)
	head = append(head, '.')
	head = append(head, timestamp...)
	head = append(head, '.')
	mac.Write(head)
	mac.Write(body)
	var sum [sha256.Size]byte
	return string(base64.StdEncoding.AppendEncode([]byte(version), mac.Sum(sum[:0])))
}

// service returns the value of X-Service-Signature.
func service(body []byte, s Secret) string {
	mac := hmac.New(sha256.New, s.keys().text)
	mac.Write(body)
	var sum [sha256.Size]byte
	return hex.EncodeToString(mac.Sum(sum[:0]))
}
