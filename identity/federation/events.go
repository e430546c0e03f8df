package federation

import (
	"context"

	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// Each type of event has one constructor. Their data has no secrets.

// connectionEvent is the data of an event about a connection.
type connectionEvent struct {
	Connection Document         `json:"connection"`
	Changes    document.Changes `json:"changes,omitzero"`
}

func created(ctx context.Context, t Tenant, c Connection) eventlog.Event {
	return eventlog.Of(ctx, eventlog.FederationConnectionCreated, connectionEvent{Connection: c.Document(t)})
}

// changed returns the events of a change: one of a new state, and one of the rest. A secret that
// was set again has the same value in both documents, and is a change all the same.
func changed(ctx context.Context, t Tenant, before, after Connection) (events []eventlog.Event) {
	from, to := before.Document(t), after.Document(t)
	changes := document.Difference(from, to)
	refreshed := changes["metadata_refreshed_at"]
	for _, name := range []string{"updated_at", "metadata_refreshed_at", "metadata_failing_since"} {
		delete(changes, name)
	}
	if state, ok := changes["state"]; ok {
		kind := eventlog.FederationConnectionEnabled
		if after.State == Disabled {
			kind = eventlog.FederationConnectionDisabled
		}
		events = append(events, eventlog.Of(ctx, kind, connectionEvent{to, document.Changes{"state": state}}))
		delete(changes, "state")
	}
	if after.ClientSecret.changes(before.ClientSecret) {
		changes["client_secret_set"] = [2]any{before.ClientSecret.IsSet(), after.ClientSecret.IsSet()}
	}
	if after.PrivateKey.changes(before.PrivateKey) {
		changes["private_key_set"] = [2]any{before.PrivateKey.IsSet(), after.PrivateKey.IsSet()}
	}
	if before.MetadataXML != after.MetadataXML { // which is not in documents
		changes["metadata_refreshed_at"] = refreshed
	}
	if len(changes) > 0 {
		events = append(events, eventlog.Of(ctx, eventlog.FederationConnectionUpdated, connectionEvent{to, changes}))
	}
	return events
}

func deleted(ctx context.Context, t Tenant, c Connection) eventlog.Event {
	return eventlog.Of(ctx, eventlog.FederationConnectionDeleted, connectionEvent{Connection: c.Document(t)})
}

// refreshed is the event of metadata that is not as it was. Its changes have the time of the
// refresh, as not all of the metadata is in documents.
func refreshed(ctx context.Context, t Tenant, before, after Connection) eventlog.Event {
	to := after.Document(t)
	changes := document.Difference(before.Document(t), to)
	delete(changes, "metadata_failing_since")
	return eventlog.Of(ctx, eventlog.FederationMetadataRefreshed, connectionEvent{to, changes})
}

func certificateExpiring(ctx context.Context, t Tenant, c Connection, last serviceprovider.Certificate) eventlog.Event {
	return eventlog.Of(ctx, eventlog.FederationCertificateExpiring, struct {
		Connection  Document            `json:"connection"`
		Certificate CertificateDocument `json:"certificate"`
	}{c.Document(t), certificateDocument(last)})
}
