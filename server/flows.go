package server

import (
	"net/http"
	"time"

	"stonetown/identity/flow"
	"stonetown/webhooks/signature"
)

// flowSigner implements [flow.Signer] by the signatures of webhooks, so a receiver verifies both in
// the same way.
type flowSigner struct{}

var _ flow.Signer = flowSigner{}

// NewSecret implements [flow.Signer].
func (flowSigner) NewSecret() string { return signature.NewSecret().Text() }

// Sign implements [flow.Signer].
func (flowSigner) Sign(h http.Header, id string, at time.Time, body []byte, current, previous string) error {
	now, err := signature.ParseSecret(current)
	if err != nil {
		return err
	}
	var earlier signature.Secret
	if previous != "" {
		if earlier, err = signature.ParseSecret(previous); err != nil {
			return err
		}
	}
	signature.Sign(h, id, at, body, now, earlier)
	return nil
}
