// Command compare measures Stonetown and other engines in one run on one machine, with the same
// questions; it compares every answer with the expected one. The other engines run already,
// empty, at given addresses; it can start Stonetown itself.
//
// It is a module of its own, so that the product does not depend on their clients.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"stonetown/bench"
)

var (
	stonetown    = flag.String("stonetown", "", "base URL of a tenant of a Stonetown, such as http://dev.localhost:8080")
	clientID     = flag.String("client-id", "", "an application of that tenant that may administer it")
	clientSecret = flag.String("client-secret", "", "its secret")
	server       = flag.String("server", "", "the stonetown binary to start instead")
	database     = flag.String("database-url", "", "the database of the one that is started; empty for the embedded one")
	leases       = flag.Bool("leases", false, "whether the one that is started holds read leases")
	spicedb      = flag.String("spicedb", "", "address of a SpiceDB, such as 127.0.0.1:50051")
	spicedbKey   = flag.String("spicedb-key", "", "its preshared key")
	openfga      = flag.String("openfga", "", "URL of an OpenFGA, such as http://127.0.0.1:8081")
	workloads    = flag.String("workloads", "docs", "patterns of the names of workloads, separated by commas: docs,chain-*")
	out          = flag.String("out", "compare", "where to write the figures: this name with .json and .html")
	duration     = flag.Duration("duration", 5*time.Second, "how long each figure is measured")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	o := bench.Options{Duration: *duration, Progress: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	}}
	if o.Workloads, err = bench.Choose(*workloads); err != nil {
		return err
	}
	if *stonetown != "" {
		if o.HTTP, err = bench.Dial(ctx, *stonetown, *clientID, *clientSecret, 16); err != nil {
			return err
		}
	} else if *server != "" {
		dir, err := os.MkdirTemp("", "stonetown-compare")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		more, err := bench.ServerArgs(o.Workloads)
		if err != nil {
			return err
		}
		if *database != "" {
			more = append(more, "--database-url", *database)
		}
		if *leases {
			listen, _, err := bench.FreeAddresses()
			if err != nil {
				return err
			}
			more = append(more, "--lease-listen", listen)
		}
		target, stop, err := bench.Start(ctx, *server, dir, more...)
		if err != nil {
			return err
		}
		defer stop()
		o.HTTP = target
	}
	if *spicedb != "" {
		target, err := dialSpiceDB(*spicedb, *spicedbKey)
		if err != nil {
			return err
		}
		o.Others = append(o.Others, target)
	}
	if *openfga != "" {
		target, err := dialOpenFGA(ctx, *openfga)
		if err != nil {
			return err
		}
		o.Others = append(o.Others, target)
	}
	report, err := bench.Run(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(report.WriteTable(os.Stdout), report.WriteJSON(*out+".json"), report.WriteHTML(*out+".html"))
}
