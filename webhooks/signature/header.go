package signature

// Headers of a delivery, in the canonical form of package http.
const (
	HeaderID        = "Webhook-Id"        // the id of the event, for deduplication
	HeaderTimestamp = "Webhook-Timestamp" // of the attempt, in Unix seconds
	HeaderSignature = "Webhook-Signature" // a list of v1,<base64>

	HeaderServiceSignature         = "X-Service-Signature"          // hex
	HeaderServiceSignaturePrevious = "X-Service-Signature-Previous" // hex, with the previous secret
	HeaderServiceTimestamp         = "X-Service-Timestamp"          // of the attempt, in Unix seconds; not signed

	HeaderEvent    = "X-Service-Event"    // the type of the event; not signed
	HeaderDelivery = "X-Service-Delivery" // the id of the delivery; not signed
	HeaderAttempt  = "X-Service-Attempt"  // the number of the attempt, from 1; not signed
)
