package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	apiclient "stonetown/client"
)

// collection is a list of the API with the same commands as others: list, show, create, update and
// delete. Fields are those of the API's reference.
type collection struct {
	plural      string
	path        string // of the list
	read, write string // scopes
	columns     []string
	filters     []string // query parameters of the list
	example     string   // fields of a new item
}

// commands returns the commands of a collection.
func (c collection) commands(environ []string) []*cobra.Command {
	return []*cobra.Command{c.listCommand(environ), c.showCommand(environ), c.createCommand(environ), c.updateCommand(environ), c.deleteCommand(environ)}
}

// item returns the path of an item, or of an operation on it.
func (c collection) item(id string, operation ...string) string {
	return strings.Join(append([]string{c.path, url.PathEscape(id)}, operation...), "/")
}

func (c collection) listCommand(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	filters := map[string]*string{}
	cmd := &cobra.Command{
		Use: "list", Short: "List the " + c.plural + ", newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			for name, value := range filters {
				if *value != "" {
					query.Set(name, *value)
				}
			}
			server, err := r.open(cmd.Flags(), patience, c.read)
			if err != nil {
				return err
			}
			defer server.Close()
			return printItems(cmd, r.output, server, c.path, query, c.columns)
		},
	}
	for _, name := range c.filters {
		filters[name] = cmd.Flags().String(name, "", "only "+c.plural+" with this `value`, as the parameter "+name+" of the API")
	}
	return r.command(cmd)
}

// printItems prints a list of the API as a table, or each item as a line of JSON.
func printItems(cmd *cobra.Command, output string, server *apiclient.Client, path string, query url.Values, columns []string) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	if output == "text" {
		fmt.Fprintln(w, strings.ToUpper(strings.Join(columns, "\t")))
	}
	for item, err := range server.List(cmd.Context(), path, query) {
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		if output == "json" {
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", item); err != nil {
				return err
			}
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(item, &fields); err != nil {
			return err
		}
		cells := make([]string, len(columns))
		for i, column := range columns {
			if fields[column] != nil {
				cells[i] = apiclient.Printable(fmt.Sprint(fields[column]))
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// call makes a command that calls one operation and prints its answer, or done if it has none.
func (c collection) call(environ []string, scope string, cmd *cobra.Command, done string, operation func(args []string) (method, path string, body any, err error)) *cobra.Command {
	r := &remote{environ: environ}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		method, path, body, err := operation(args)
		if err != nil {
			return err
		}
		server, err := r.open(cmd.Flags(), patience, scope)
		if err != nil {
			return err
		}
		defer server.Close()
		data, err := server.Call(cmd.Context(), method, path, nil, body)
		if err != nil {
			return err
		}
		if len(data) > 0 && string(data) != "null" {
			return printJSON(cmd.OutOrStdout(), data)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
		return err
	}
	return r.command(cmd)
}

func (c collection) showCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{Use: "show ID", Short: "Print one of the " + c.plural + " as JSON", Args: cobra.ExactArgs(1)}
	return c.call(environ, c.read, cmd, "", func(args []string) (string, string, any, error) {
		return http.MethodGet, c.item(args[0]), nil, nil
	})
}

const fieldsHelp = `

Each FIELD is name=value with a name of the API's reference. The value is JSON if it is
valid JSON, and otherwise a text; name:=value takes JSON only. @FILE, or @- for standard
input, is a JSON object with fields.`

func (c collection) createCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "create FIELD...", Short: "Create one of the " + c.plural, Long: "Creates one of the " + c.plural + " and prints it as JSON." + fieldsHelp,
		Example: "  stonetown " + c.plural + " create " + c.example, Args: cobra.MinimumNArgs(1),
	}
	return c.call(environ, c.write, cmd, "", func(args []string) (string, string, any, error) {
		body, err := fieldsOf(cmd, args)
		return http.MethodPost, c.path, body, err
	})
}

func (c collection) updateCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "update ID FIELD...", Short: "Change fields of one of the " + c.plural, Long: "Changes fields of one of the " + c.plural + " and prints it as JSON." + fieldsHelp,
		Args: cobra.MinimumNArgs(2),
	}
	return c.call(environ, c.write, cmd, "", func(args []string) (string, string, any, error) {
		body, err := fieldsOf(cmd, args[1:])
		return http.MethodPatch, c.item(args[0]), body, err
	})
}

func (c collection) deleteCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{Use: "delete ID", Short: "Delete one of the " + c.plural, Args: cobra.ExactArgs(1)}
	return c.call(environ, c.write, cmd, "deleted", func(args []string) (string, string, any, error) {
		return http.MethodDelete, c.item(args[0]), nil, nil
	})
}

// operationCommand returns a command for POST …/{id}/operation.
func (c collection) operationCommand(environ []string, operation, short, done string) *cobra.Command {
	cmd := &cobra.Command{Use: operation + " ID", Short: short, Args: cobra.ExactArgs(1)}
	return c.call(environ, c.write, cmd, done, func(args []string) (string, string, any, error) {
		return http.MethodPost, c.item(args[0], operation), nil, nil
	})
}

// parent returns a command that has subcommands only.
func parent(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(children...)
	return cmd
}

// fieldsOf returns the object that arguments describe.
func fieldsOf(cmd *cobra.Command, args []string) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	for _, arg := range args {
		if file, ok := strings.CutPrefix(arg, "@"); ok {
			text, err := readFile(cmd, file)
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
				return nil, fmt.Errorf("%s is not a JSON object", file)
			}
			continue
		}
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not name=value", arg)
		}
		name, strict := strings.CutSuffix(name, ":")
		switch {
		case json.Valid([]byte(value)):
			fields[name] = json.RawMessage(value)
		case strict:
			return nil, fmt.Errorf("the value of %s is not valid JSON", name)
		default:
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			fields[name] = text
		}
	}
	return fields, nil
}

// readFile reads a file, or standard input for -.
func readFile(cmd *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		return readAll(cmd.InOrStdin())
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}
