package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stonetown/controlplane"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
)

func auditCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Read the audit log",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(auditExportCommand(environ))
	return cmd
}

func auditExportCommand(environ []string) *cobra.Command {
	var tenant, organization, since, until string
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write the audit log of a tenant or an organisation as lines of JSON",
		Long: `Writes the events of a tenant, or those of an organisation, oldest first, as lines of JSON to a file that only
you can read, or to the standard output. The command reads the database directly;
the server may be running.

Events are kept for audit_retention.`,
		Example: `  stonetown audit export --since 2026-11-01T00:00:00Z november.jsonl
  stonetown audit export --tenant dev | jq 'select(.event_type == "relation.created")'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			config, err := resolveConfig(cmd.Flags(), environ)
			if err != nil {
				return err
			}
			e := auditExport{}
			if e.since, err = instant("since", since); err != nil {
				return err
			}
			if e.until, err = instant("until", until); err != nil {
				return err
			}
			// Only the process that owns a SQLite database may write. On a server, the events of new
			// commits get their positions when they are read.
			_, isSQLite, err := sqldb.SQLitePath(config.DatabaseURL)
			if err != nil {
				return err
			}
			db, err := sqldb.Open(cmd.Context(), sqldb.Config{URL: config.DatabaseURL, MaxConns: 1, ReadOnly: isSQLite})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			if e.logID, err = findLog(cmd.Context(), db, tenant, organization); err != nil {
				return err
			}
			if e.log, err = eventlog.Open(eventlog.Config{DB: db}); err != nil {
				return err
			}
			write := func(w io.Writer) error { return e.write(cmd.Context(), w) }
			if len(args) == 0 || args[0] == "-" {
				return write(cmd.OutOrStdout())
			}
			return replaceFile(args[0], write)
		},
	}
	configFlags(cmd.Flags())
	cmd.Flags().StringVar(&tenant, "tenant", "", "`slug` or id of the tenant (default the first tenant that was created)")
	cmd.Flags().StringVar(&organization, "organization", "", "`slug` of an organisation, for its events instead of those of a tenant")
	cmd.MarkFlagsMutuallyExclusive("tenant", "organization")
	cmd.Flags().StringVar(&since, "since", "", "only events at or after this `time` (RFC 3339)")
	cmd.Flags().StringVar(&until, "until", "", "only events before this `time` (RFC 3339)")
	return cmd
}

func instant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, fmt.Errorf("--%s is %q, not a time such as 2026-11-01T00:00:00Z", flag, text)
	}
	return at, nil
}

// findLog returns the id of the log of a tenant or, if it is named, of an organisation.
func findLog(ctx context.Context, db *sqldb.DB, tenant, organization string) (string, error) {
	if organization == "" {
		t, err := findTenant(ctx, db, tenant)
		return t.ID, err
	}
	directory, err := controlplane.New(controlplane.Config{DB: db})
	if err != nil {
		return "", err
	}
	o, err := directory.OrganizationBySlug(ctx, organization)
	return o.ID, err
}

// findTenant returns the tenant with a slug or an id, or the first tenant if slugOrID is empty.
func findTenant(ctx context.Context, db *sqldb.DB, slugOrID string) (controlplane.Tenant, error) {
	directory, err := controlplane.New(controlplane.Config{DB: db})
	if err != nil {
		return controlplane.Tenant{}, err
	}
	if slugOrID == "" {
		return directory.FirstTenant(ctx)
	}
	t, err := directory.TenantBySlug(ctx, slugOrID)
	if errors.Is(err, controlplane.ErrTenantNotFound) {
		t, err = directory.TenantByID(ctx, slugOrID)
	}
	return t, err
}

// auditExport writes the events of a period.
type auditExport struct {
	log          *eventlog.Log
	logID        string
	since, until time.Time // zero: no limit
}

// auditLine is an event in the export.
type auditLine struct {
	EventID    string          `json:"event_id"`
	EventType  eventlog.Type   `json:"event_type"`
	Sequence   int64           `json:"sequence"`
	OccurredAt string          `json:"occurred_at"`
	TenantID   string          `json:"tenant_id,omitempty"`
	OrgID      string          `json:"org_id,omitempty"`
	Actor      *auditActor     `json:"actor"` // null: the program itself
	ClientID   string          `json:"client_id,omitempty"`
	RequestID  string          `json:"request_id,omitempty"`
	ClientIP   string          `json:"client_ip,omitempty"`
	Data       json.RawMessage `json:"data"`
}

type auditActor struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

func (e auditExport) write(ctx context.Context, w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	err := e.log.All(ctx, e.logID, func(ev eventlog.Event) error {
		if ev.At.Before(e.since) || !e.until.IsZero() && !ev.At.Before(e.until) {
			return nil
		}
		line := auditLine{
			EventID: ev.ID, EventType: ev.Type, Sequence: ev.Position,
			OccurredAt: ev.At.Format("2006-01-02T15:04:05.000Z"),
			ClientID:   ev.Origin.ClientID, RequestID: ev.Origin.RequestID, ClientIP: ev.Origin.ClientIP, Data: ev.Data,
		}
		if strings.HasPrefix(ev.TenantID, id.Organization+"_") {
			line.OrgID = ev.TenantID
		} else {
			line.TenantID = ev.TenantID
		}
		if a := ev.Origin.Actor; a != (eventlog.Actor{}) {
			line.Actor = &auditActor{a.Type, a.ID}
		}
		return encoder.Encode(line)
	})
	if err != nil {
		return err
	}
	return buffered.Flush()
}
