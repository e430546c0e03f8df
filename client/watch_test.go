package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// silentBody has one event, and then nothing until its request ends.
type silentBody struct {
	io.Reader
	ctx context.Context
}

func (b silentBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	return n, err
}

func (silentBody) Close() error { return nil }

type silentServer struct {
	*server
	connections []string // the tokens from which they went on
}

func (s *silentServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/watch") {
		return s.server.RoundTrip(r)
	}
	s.connections = append(s.connections, r.URL.Query().Get("after"))
	body := silentBody{strings.NewReader(`{"event":"heartbeat","consistency_token":"t"}` + "\n"), r.Context()}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: r}, nil
}

// Patience begins when a connection is lost, and not with the last event: a connection that has been
// silent for longer is replaced.
func TestWatchAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &silentServer{server: &server{t: t}}
		c := s.client(15 * time.Second)
		c.http = &http.Client{Transport: s}
		enough := errors.New("enough")
		events := 0
		err := c.Watch(t.Context(), Watch{}, func(Stored[Event]) error {
			if events++; events == 3 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || strings.Join(s.connections, ",") != ",t,t" {
			t.Errorf("%v after the connections %q", err, s.connections)
		}
	})
}
