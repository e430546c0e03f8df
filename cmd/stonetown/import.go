package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/spf13/cobra"

	apiclient "stonetown/client"
	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/engine"
)

// importPatience is longer than a restart of the server.
const importPatience = exportPatience

func importCommand(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var from string
	var dryRun, force, bulk bool
	var fromLine int64
	cmd := r.command(&cobra.Command{
		Use:   "import FILE...",
		Short: "Write models and relationships of another engine, or an export, to a running server",
		Long: `Reads models and relationships of OpenFGA and SpiceDB, lists what has no equivalent
in Stonetown, runs the assertions in the files, and then writes resource types and
relations to a tenant. Several files are read as one.

Nothing is written if something has no equivalent or an assertion fails, unless
--force is given. After an error, part of the data may have been written; it is safe
to run the command again.

A file that stonetown export wrote is imported unchanged.

With --bulk, the file, or standard input for -, has one relation of Stonetown's API
as JSON in each line, and is sent as a stream: the fastest way to load very many. What
is stored is stored in chunks, and after an error --from-line continues.`,
		Example: `  stonetown import store.fga.yaml
  stonetown import model.fga tuples.csv
  stonetown import schema.zed relationships.txt --dry-run
  stonetown import tenant.jsonl
  stonetown import --bulk relations.ndjson
  stonetown import --bulk --from-line 250001 relations.ndjson`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			open := func() (*apiclient.Client, error) {
				return r.open(cmd.Flags(), importPatience, apiclient.ScopeRead, apiclient.ScopeWrite)
			}
			if bulk {
				if dryRun || force || from != "" || len(args) > 1 {
					return errors.New("--bulk takes one file, and neither --from, --dry-run nor --force")
				}
				return importBulk(cmd, args[0], fromLine, r.output, open)
			}
			if fromLine != 1 {
				return errors.New("--from-line requires --bulk")
			}
			if from == "" && isExport(args[0]) {
				return importExports(cmd, args, dryRun, open)
			}
			data, err := readData(args, from)
			if err != nil {
				return err
			}
			printReport(cmd.OutOrStdout(), data)
			if err := acceptable(cmd, data); err != nil && !force {
				return fmt.Errorf("%w; nothing was written", err)
			}
			if dryRun {
				return nil
			}
			c, err := open()
			if err != nil {
				return err
			}
			defer c.Close()
			return importData(cmd, c, r.output, data)
		},
	})
	cmd.Flags().StringVar(&from, "from", "", fromUsage)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "write nothing")
	cmd.Flags().BoolVar(&bulk, "bulk", false, "load relations from lines of JSON, as a stream; - is standard input")
	cmd.Flags().Int64Var(&fromLine, "from-line", 1, "with --bulk, the `number` of the first line to load")
	cmd.Flags().BoolVar(&force, "force", false, "write what has an equivalent, even if something has none or answers differ")
	return cmd
}

// importBulk sends the lines of a file as a stream.
func importBulk(cmd *cobra.Command, file string, fromLine int64, output string, open func() (*apiclient.Client, error)) error {
	if fromLine < 1 {
		return errors.New("--from-line must be at least 1")
	}
	in := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	lines := bufio.NewReaderSize(in, 1<<20)
	for n := int64(1); n < fromLine; n++ {
		if err := skipLine(lines); err != nil {
			return fmt.Errorf("%s has no line %d: %w", file, fromLine, err)
		}
	}
	c, err := open()
	if err != nil {
		return err
	}
	defer c.Close()
	p := newProgress(cmd.ErrOrStderr(), "importing", -1)
	defer p.done()
	before := fromLine - 1
	loaded, err := c.Load(cmd.Context(), lines, fromLine, func(l apiclient.Loaded) {
		p.add(int(l.Line - before))
		before = l.Line
	})
	if err != nil {
		if line, ok := apiclient.LineOf(err); ok {
			err = fmt.Errorf("line %d: %w", line, err)
		}
		if loaded.Line < fromLine {
			return fmt.Errorf("%w; no line is stored", err)
		}
		return fmt.Errorf("%w; lines before %d are stored: continue with --from-line %[2]d", err, loaded.Line+1)
	}
	if output == "json" {
		return printJSON(cmd.OutOrStdout(), loaded)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "loaded %d lines: %d relations created, %d updated, %d replaced, %d existed\n",
		loaded.Line-fromLine+1, loaded.Created, loaded.Updated, loaded.Replaced, loaded.Existed)
	if err != nil {
		return err
	}
	return printExpired(cmd.OutOrStdout(), loaded.Expired)
}

// skipLine reads to the end of a line.
func skipLine(r *bufio.Reader) error {
	for {
		_, err := r.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// acceptable returns the reason not to import some data.
func acceptable(cmd *cobra.Command, data *importer.Data) error {
	var errs []error
	if hasUnsupported(data) {
		errs = append(errs, errors.New("not everything has an equivalent"))
	}
	if len(data.Assertions) > 0 {
		result, err := importer.Validate(cmd.Context(), data)
		if err != nil {
			return err
		}
		printDifferences(cmd.OutOrStdout(), result)
		if len(result.Differences) > 0 {
			errs = append(errs, errors.New("answers differ"))
		}
	}
	return errors.Join(errs...)
}

func importData(cmd *cobra.Command, c *apiclient.Client, output string, data *importer.Data) error {
	definitions, err := definitionsOf(data.Types)
	if err != nil {
		return err
	}
	if err := applyTypes(cmd, c, output, apiclient.TypesChange{Types: definitions}); err != nil {
		return err
	}
	p := newProgress(cmd.ErrOrStderr(), "importing", len(data.Relations))
	defer p.done()
	before := 0
	expired, err := c.WriteTuples(cmd.Context(), tuplesOf(data.Relations), func(written int) {
		p.add(written - before)
		before = written
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "wrote %d relations\n", len(data.Relations)-expired); err != nil {
		return err
	}
	return printExpired(cmd.OutOrStdout(), expired)
}

// printExpired prints the number of relations that an import left out.
func printExpired(w io.Writer, n int) error {
	if n == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "left out %d relations that have expired\n", n)
	return err
}

func tuplesOf(ops []engine.WriteOp) iter.Seq2[apiclient.Tuple, error] {
	return func(yield func(apiclient.Tuple, error) bool) {
		for _, op := range ops {
			t := apiclient.Tuple{
				Resource: apiclient.Ref{Type: op.Resource.Type, ExternalID: op.Resource.ID}, Relation: op.Relation,
				Subject: apiclient.Subject{Type: op.Subject.Type, ID: op.Subject.ID, Relation: op.Subject.Relation},
			}
			if !op.ExpiresAt.IsZero() {
				t.ExpiresAt = op.ExpiresAt.UTC().Format(time.RFC3339Nano)
			}
			if op.Condition != "" {
				t.Condition = &apiclient.Condition{Name: op.Condition, Context: op.Context}
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

// importExports imports exports of this product.
func importExports(cmd *cobra.Command, files []string, dryRun bool, open func() (*apiclient.Client, error)) error {
	if dryRun {
		return errors.New("--dry-run is for files of other engines; an export needs no translation")
	}
	c, err := open()
	if err != nil {
		return err
	}
	defer c.Close()
	p := newProgress(cmd.ErrOrStderr(), "importing", -1)
	defer p.done()
	i := apiclient.Import{Client: c, Progress: p.add}
	for _, file := range files {
		if err := importExport(cmd.Context(), &i, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return printExpired(cmd.OutOrStdout(), i.Expired)
}

func importExport(ctx context.Context, i *apiclient.Import, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return i.Read(ctx, f)
}
