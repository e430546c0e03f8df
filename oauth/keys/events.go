package keys

import (
	"context"

	"stonetown/internal/eventlog"
)

// rotated is the event of keys that entered a state.
func rotated(ctx context.Context, emergency bool, changed []Key) eventlog.Event {
	type key struct {
		KID   string `json:"kid"`
		Alg   Alg    `json:"alg"`
		State State  `json:"state"`
	}
	var data struct {
		Emergency bool  `json:"emergency"`
		Keys      []key `json:"signing_keys"`
	}
	data.Emergency = emergency
	for _, k := range changed {
		data.Keys = append(data.Keys, key{k.KID, k.Alg, k.State})
	}
	return eventlog.Of(ctx, eventlog.TenantSigningKeyRotated, data)
}
