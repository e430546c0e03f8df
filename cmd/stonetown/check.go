package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apiclient "stonetown/client"
)

// patience is how long commands for users repeat a request.
const patience = 15 * time.Second

// Exit codes of check, for scripts.
const (
	exitDenied = 1
	exitFailed = 2 // there is no answer
)

func checkCommand(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var context, token, at string
	var reasons bool
	var with, without []string
	cmd := &cobra.Command{
		Use:   "check SUBJECT ACTION RESOURCE",
		Short: "Check on a running server whether a subject may do something",
		Long: `Checks whether a subject may perform an action on a resource, prints allowed or
denied, and exits with 0 for allowed, 1 for denied and 2 for an error.

A subject is type:id, or type:id#relation for all subjects with that relation to it.
Write a subject whose id ends in # and a word as JSON: {"type":"user","id":"c#major"}.
A resource is type:id.

With --with and --without, the answer is the one after relations have been added and
removed. Nothing is changed.`,
		Example: `  stonetown check user:ann view document:q3
  stonetown check user:ann view document:q3 --reasons
  stonetown check group:eng#member edit folder:2026 --context '{"ip":"192.0.2.1"}'
  stonetown check user:ann view document:q3 --at 2026-11-22T09:30:00Z
  stonetown check user:ann view document:q3 --without group:eng#member@user:ann
  if stonetown check user:ann view document:q3 >/dev/null; then ...; fi`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(3)(cmd, args); err != nil {
				return &exitError{exitFailed, fmt.Errorf("%w: SUBJECT ACTION RESOURCE", err)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			assume, err := parseAssumption(with, without)
			if err != nil {
				return &exitError{exitFailed, err}
			}
			allowed, err := runCheck(cmd, r, args, assume, apiclient.Question{Explain: reasons, ConsistencyToken: token, At: at}, context)
			if err != nil {
				return &exitError{exitFailed, err}
			}
			if !allowed {
				return &exitError{code: exitDenied}
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitFailed, err} })
	f := cmd.Flags()
	f.StringVar(&context, "context", "", "`JSON` object with values for conditions")
	f.BoolVar(&reasons, "reasons", false, "print the reasons if the answer is allowed, and what would allow it if it is denied")
	f.StringVar(&token, "consistency-token", "", "accept any state at least as new as that of a consistency `token`; it may be faster")
	f.StringArrayVar(&with, "with", nil, "answer as if a relation existed: `RESOURCE#RELATION@SUBJECT`; repeatable")
	f.StringArrayVar(&without, "without", nil, "answer as if a relation did not exist: `RESOURCE#RELATION@SUBJECT`; repeatable")
	atFlag(cmd, &at)
	return r.command(cmd)
}

// atFlag adds a flag for the point in time of a question.
func atFlag(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "at", "", "answer as of an earlier `time`: RFC 3339, or a consistency token")
}

func parseAssumption(with, without []string) (a apiclient.Assumption, err error) {
	parse := func(texts []string) (tuples []apiclient.Tuple) {
		for _, text := range texts {
			t, invalid := apiclient.ParseTuple(text)
			tuples, err = append(tuples, t), cmp.Or(err, invalid)
		}
		return tuples
	}
	a.Add, a.Remove = parse(with), parse(without)
	return a, err
}

// parseQuestion reads the arguments SUBJECT ACTION RESOURCE, and the values for conditions.
func parseQuestion(q *apiclient.Question, args []string, context string) (err error) {
	if q.Subject, err = apiclient.ParseSubject(args[0]); err != nil {
		return err
	}
	if q.Resource, err = apiclient.ParseRef(args[2]); err != nil {
		return err
	}
	q.Action = args[1]
	q.Context, err = jsonObject("context", context)
	return err
}

func runCheck(cmd *cobra.Command, r *remote, args []string, assume apiclient.Assumption, q apiclient.Question, context string) (allowed bool, err error) {
	if err := parseQuestion(&q, args, context); err != nil {
		return false, err
	}
	c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
	if err != nil {
		return false, err
	}
	defer c.Close()
	var d apiclient.Decision
	if len(assume.Add)+len(assume.Remove) > 0 {
		d, err = c.CheckAssuming(cmd.Context(), assume, q)
	} else {
		d, err = c.Check(cmd.Context(), q)
	}
	if err != nil {
		return false, err
	}
	return d.Allowed, printDecision(cmd, r.output, d)
}

func printDecision(cmd *cobra.Command, output string, d apiclient.Decision) error {
	out := cmd.OutOrStdout()
	if output == "json" {
		return printJSON(out, d)
	}
	answer := "denied"
	if d.Allowed {
		answer = "allowed"
	}
	if _, err := fmt.Fprintln(out, answer); err != nil {
		return err
	}
	for _, reason := range d.Reasons {
		if _, err := fmt.Fprintln(out, apiclient.Printable(reason.Text)); err != nil {
			return err
		}
	}
	if d.Denial == nil {
		return nil
	}
	for _, way := range d.Denial.Ways {
		if _, err := fmt.Fprintln(out, "allowed if", describe(way)); err != nil {
			return err
		}
	}
	if d.Denial.Truncated {
		_, err := fmt.Fprintln(out, "there may be other ways")
		return err
	}
	return nil
}

// describe describes the changes of a way as parts of a sentence.
func describe(way apiclient.Way) string {
	var parts []string
	for _, m := range way.Relations {
		part := m.Tuple.String() + " existed"
		switch {
		case m.State == "expired":
			part = m.Tuple.String() + " had not expired at " + m.ExpiresAt
		case m.Condition != nil:
			part = m.Tuple.String() + " had no condition " + m.Condition.Name + ", which is not met with " + apiclient.Printable(string(m.Condition.Context))
		}
		parts = append(parts, part)
	}
	for _, x := range way.Exclusions {
		part := fmt.Sprintf("the subject were not excluded from %s of %s", x.Relation, x.Resource)
		for i, reason := range x.Reasons {
			separator := ", as "
			if i > 0 {
				separator = " and "
			}
			part += separator + apiclient.Printable(reason.Text)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", and ")
}
