package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// watched returns the first lines of a watch.
func watched(t *testing.T, dir string, lines int, args ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"watch", "--data-dir", dir}, args...), nil, w, io.Discard)
		w.CloseWithError(err)
		ended <- err
	}()
	var got []string
	for scanner := bufio.NewScanner(r); len(got) < lines; {
		if !scanner.Scan() {
			t.Fatalf("watch %v ended after %q: %v", args, got, scanner.Err())
		}
		got = append(got, scanner.Text())
	}
	cancel()
	r.Close()
	if err := <-ended; err != nil {
		t.Errorf("watch %v: %v", args, err)
	}
	return got
}

func TestWatchCommand(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	var first struct {
		Event string `json:"event"`
		Token string `json:"consistency_token"`
	}
	if err := json.Unmarshal([]byte(watched(t, dir, 1, "--output", "json")[0]), &first); err != nil || first.Event != "heartbeat" {
		t.Fatalf("%+v, %v", first, err)
	}
	for _, relation := range []string{"folder:2026 viewer user:ann", "document:q3 parent folder:2026"} {
		want(t, dir, append([]string{"relations", "add"}, strings.Fields(relation)...)...)
	}
	want(t, dir, "relations", "remove", "folder:2026", "viewer", "user:ann")

	decisions := []string{"--after", first.Token, "--type", "document", "--action", "view", "--subject-type", "user"}
	if got, want := watched(t, dir, 2, decisions...), []string{"gained user:ann document:q3", "lost user:ann document:q3"}; !slices.Equal(got, want) {
		t.Errorf("decisions: %q, want %q", got, want)
	}
	if got, want := watched(t, dir, 5, "--after", first.Token), []string{
		"create folder:2026 viewer user:ann", "create folder:2026", "create document:q3 parent folder:2026", "create document:q3", "delete folder:2026 viewer user:ann",
	}; !slices.Equal(got, want) {
		t.Errorf("changes: %q, want %q", got, want)
	}
	want(t, dir, "schema", "apply", "--rename", "folder=area", "--rename", "folder#viewer=reader")
	if got, want := watched(t, dir, 8, "--after", first.Token)[5:], []string{"resource types changed", "renamed folder=area", "renamed folder#viewer=reader"}; !slices.Equal(got, want) {
		t.Errorf("renames: %q, want %q", got, want)
	}
	refused(t, dir, 1, "consistency token", "watch", "--after", "nonsense")
	refused(t, dir, 1, "resource_type_not_found", "watch", "--type", "paper", "--action", "view", "--subject-type", "user")
	refused(t, dir, 1, "must all be set", "watch", "--type", "document")
}
