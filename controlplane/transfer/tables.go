package transfer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stonetown/internal/sqldb"
)

// moved are the tables whose rows are a part of the tenant. A request, a sign-in, a message or a
// delivery that has begun continues after the move, and what must happen only once does not happen
// again, so their tables are among them.
var moved = []string{
	"applications", "assertion_sets", "authorization_requests", "authorizations", "backup_codes", "branding_pictures", "brandings",
	"breach_affected_users", "breach_incidents", "breach_notifications", "client_assertions", "codes", "credentials",
	"dead_jobs", "device_codes", "dpop_proofs", "email_changes", "ended_sessions", "event_heads", "event_readers", "events",
	"external_identities", "external_ids", "external_sessions", "factors", "federation_assertions", "federation_connections",
	"federation_domains", "federation_tests", "grants", "idempotency_keys", "identity_settings", "jobs", "known_devices", "mail_templates",
	"oauth_settings", "onetime_tokens", "refresh_tokens",
	"report_chunks", "report_mails", "report_runs", "reports", "resource_attributes",
	"retired_clients", "revocations", "saml_keys", "saml_logouts", "scopes", "sessions", "sign_in_flow_drafts", "sign_in_flow_secrets",
	"sign_in_flow_versions", "signing_keys", "tenant_commits",
	"tenant_heads", "tenant_receipts", "tenant_schemas", "threat_feeds", "threat_lists", "trusted_issuers", "tuple_history", "tuples", "user_groups", "user_import_chunks", "user_import_errors",
	"user_imports", "user_search", "users", "webhook_dead_letters", "webhook_deliveries", "webhook_lanes",
	"webhook_subscriptions",
}

// stays are the tables whose rows belong to a deployment, with the reason.
var stays = map[string]string{
	"rate_limits":      "counts the requests to one deployment, for minutes",
	"sign_in_attempts": "names accounts by hashes under the master key of one deployment, for hours",
	"tenant_leases":    "names processes of one deployment",
	"tenant_keys":      "is sealed under the master key of one deployment; the header contains the keys",
}

// table is a table whose rows move.
type table struct {
	Name    string   `cbor:"name"`
	Key     []string `cbor:"key"`     // of the rows of one tenant
	Columns []column `cbor:"columns"` // without the tenant, by name

	of sqldb.TenantTable
}

type column struct {
	Name string     `cbor:"name"`
	Type sqldb.Type `cbor:"type"`
}

// tables reads the tables of a database whose rows move, by name. It fails for a table that is in
// neither list, so that no rows are forgotten.
func tables(ctx context.Context, db *sqldb.DB) (list []table, err error) {
	all, err := db.TenantTables(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if _, ok := stays[t.Name]; ok {
			continue
		}
		if !slices.Contains(moved, t.Name) {
			return nil, fmt.Errorf("the table %s is unknown", t.Name)
		}
		columns, err := db.Columns(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		isTenant := func(column string) bool { return column == t.Column }
		one := table{Name: t.Name, Key: slices.DeleteFunc(slices.Clone(t.Key), isTenant), of: t}
		for _, c := range columns {
			if c.Nullable && c.Type == sqldb.Bytes { // SQLite returns empty values as NULL
				return nil, fmt.Errorf("the column %s.%s can be NULL", t.Name, c.Name)
			}
			if !isTenant(c.Name) {
				one.Columns = append(one.Columns, column{c.Name, c.Type})
			}
		}
		list = append(list, one)
	}
	return list, nil
}

// difference describes the first difference between two lists of tables, if there is one.
func difference(made, here []table) string {
	names := func(list []table) (names []string) {
		for _, t := range list {
			names = append(names, t.Name)
		}
		return names
	}
	if a, b := names(made), names(here); !slices.Equal(a, b) {
		return fmt.Sprintf("only the archive has the tables %q, only the deployment %q", without(a, b), without(b, a))
	}
	for i, t := range made {
		if !slices.Equal(t.Columns, here[i].Columns) {
			return fmt.Sprintf("in the table %s only the archive has the columns %q, only the deployment %q", t.Name, without(t.Columns, here[i].Columns), without(here[i].Columns, t.Columns))
		}
		if !slices.Equal(t.Key, here[i].Key) {
			return fmt.Sprintf("the key of the table %s is %q in the archive, %q in the deployment", t.Name, t.Key, here[i].Key)
		}
	}
	return ""
}

// without returns the elements of a that b does not have.
func without[T comparable](a, b []T) []T {
	return slices.DeleteFunc(slices.Clone(a), func(v T) bool { return slices.Contains(b, v) })
}

// selectRows reads the rows of a tenant in the order of their key.
func (t table) selectRows() string {
	order := ""
	if len(t.Key) > 0 {
		order = " ORDER BY " + quoted(t.Key)
	}
	return fmt.Sprintf(`SELECT %s FROM "%s" WHERE %s = $1%s`, quoted(t.columnNames()), t.Name, t.of.Column, order)
}

// insertRows writes n rows of a tenant, whose values follow each other.
func (t table) insertRows(n int) string {
	rows, place := make([]string, n), 1
	for i := range rows {
		rows[i] = "($1"
		for range t.Columns {
			place++
			rows[i] += fmt.Sprintf(", $%d", place)
		}
		rows[i] += ")"
	}
	return fmt.Sprintf(`INSERT INTO "%s" (%s, %s) VALUES %s`, t.Name, t.of.Column, quoted(t.columnNames()), strings.Join(rows, ", "))
}

func (t table) columnNames() (names []string) {
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return names
}

func quoted(columns []string) string { return `"` + strings.Join(columns, `", "`) + `"` }
