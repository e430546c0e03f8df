package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"stonetown/tuplestore/leasenode"
)

// leaseListener answers the other processes on the database about read leases.
type leaseListener struct {
	listen  net.Listener
	address string // at which they reach it
	server  *http.Server
	served  chan struct{} // closed at the end of server
}

// listenLeases listens, so that the address is known. It returns nil if there are no leases.
func listenLeases(ctx context.Context, c Config) (*leaseListener, error) {
	if c.LeaseListen == "" {
		return nil, nil
	}
	listen, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.LeaseListen)
	if err != nil {
		return nil, err
	}
	l := &leaseListener{listen: listen, address: c.LeaseAddress}
	if l.address == "" {
		l.address = listen.Addr().String()
	}
	return l, nil
}

// serve answers until close.
func (l *leaseListener) serve(node *leasenode.Node, log *slog.Logger) {
	l.served = make(chan struct{})
	l.server = &http.Server{
		Handler: node.Handler(), ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readHeaderTimeout, WriteTimeout: transferTime,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	go func() {
		defer close(l.served)
		if err := l.server.Serve(l.listen); !errors.Is(err, http.ErrServerClosed) {
			log.Error("lease listener ended", slog.Any("error", err))
		}
	}()
}

func (l *leaseListener) close() error {
	if l.server == nil {
		return l.listen.Close()
	}
	err := l.server.Close()
	<-l.served
	return err
}
