package masterkey

import "encoding/hex"

// column is a column of sealed values. Every table has the tenant of a row in tenant_id.
type column struct {
	table, name string
	of          string                 // the column for whose value a row is sealed
	id          func(of string) string // the id that is authenticated; nil: the value itself
}

// sealed are all columns of sealed values. An empty value is not sealed.
var sealed = []column{
	{table: "tenant_keys", name: "sealed", of: "key_id", id: after("tenant key ")},
	{table: "signing_keys", name: "private_sealed", of: "kid"},
	{table: "saml_keys", name: "private_sealed", of: "id"},
	{table: "factors", name: "secret", of: "id"},
	{table: "federation_connections", name: "client_secret", of: "id", id: before(" client_secret")},
	{table: "federation_connections", name: "private_key", of: "id", id: before(" private_key")},
	{table: "webhook_subscriptions", name: "secret", of: "id"},
	{table: "webhook_subscriptions", name: "previous_secret", of: "id"},
	{table: "sign_in_flow_secrets", name: "secret", of: "action", id: after("sign-in action ")},
	{table: "sign_in_flow_secrets", name: "previous_secret", of: "action", id: after("sign-in action ")},
	{table: "external_sessions", name: "hint", of: "session_id"},
	{table: "federation_tests", name: "report", of: "id"},
	{table: "saml_logouts", name: "logout", of: "id"},
	{table: "onetime_tokens", name: "payload", of: "id"},
	{table: "user_import_chunks", name: "sealed", of: "import_id"},
	{table: "jobs", name: "payload", of: "id"},
	{table: "idempotency_keys", name: "response", of: "scope_hash", id: func(hash string) string {
		return "idempotency|" + hex.EncodeToString([]byte(hash))
	}},
}

func after(prefix string) func(string) string {
	return func(of string) string { return prefix + of }
}

func before(suffix string) func(string) string {
	return func(of string) string { return of + suffix }
}

func (c column) idOf(of string) string {
	if c.id == nil {
		return of
	}
	return c.id(of)
}
