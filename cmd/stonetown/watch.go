package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	apiclient "stonetown/client"
)

func watchCommand(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var w apiclient.Watch
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Follow changes on a running server: of relations, or of what is allowed",
		Long: `Prints each change of relations, resources and types, one per line, until it is
interrupted with Ctrl-C. With --type, --action and --subject-type it prints decisions
that changed: which subjects gained or lost the action on which resources. With --output
json it prints the events, each with the token to continue from.`,
		Example: `  stonetown watch
  stonetown watch --type document --action view --subject-type user
  stonetown watch --after djF8dG50X2szcTd8dGVzdHw3 --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			err = c.Watch(cmd.Context(), w, func(ev apiclient.Stored[apiclient.Event]) error {
				if r.output == "json" {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(ev)
				}
				return printEvent(cmd.OutOrStdout(), ev.Value)
			})
			if cmd.Context().Err() != nil {
				return nil // interrupted
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&w.After, "after", "", "consistency `token` to continue from (default from now on)")
	f.StringVar(&w.Type, "type", "", "watch decisions about the resources of this `type`")
	f.StringVar(&w.Action, "action", "", "the `action` that decisions are about")
	f.StringVar(&w.SubjectType, "subject-type", "", "the `type` of subjects that decisions are about")
	cmd.MarkFlagsRequiredTogether("type", "action", "subject-type")
	return r.command(cmd)
}

// printEvent prints a line for each change of an event. Heartbeats have none.
func printEvent(w io.Writer, ev apiclient.Event) error {
	var b strings.Builder
	if ev.SchemaChanged {
		b.WriteString("resource types changed\n")
	}
	for _, r := range ev.Renamed {
		fmt.Fprintf(&b, "renamed %s\n", r)
	}
	for _, c := range ev.Changes {
		fmt.Fprintf(&b, "%s %s", c.Op, c.Resource)
		if c.Relation != "" {
			fmt.Fprintf(&b, " %s %s", c.Relation, c.Subject)
		}
		b.WriteByte('\n')
	}
	for _, list := range []struct {
		name    string
		decided []apiclient.Decided
	}{{"gained", ev.Gained}, {"lost", ev.Lost}, {"conditional", ev.Conditional}, {"undecidable", ev.Undecidable}} {
		for _, d := range list.decided {
			fmt.Fprintf(&b, "%s %s %s%s\n", list.name, d.Subject, d.Resource, listed(" except", d.Except))
		}
	}
	if ev.Reason != "" {
		fmt.Fprintf(&b, "not named: %s%s%s\n", ev.Reason, listed(" subjects", ev.Subjects), listed(" resources", ev.Resources))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// listed returns the text and the members of a list, nothing if it is empty.
func listed[T fmt.Stringer](text string, list []T) string {
	if len(list) == 0 {
		return ""
	}
	for _, item := range list {
		text += " " + item.String()
	}
	return text
}
