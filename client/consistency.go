package client

import (
	"context"
	"sync"
)

// consistency is the newest state that calls under a context have seen or made.
type consistency struct {
	mu      sync.Mutex
	token   string // empty: not known
	version int    // of token
}

type consistencyKey struct{}

// WithConsistency returns a context that carries consistency tokens from call to call: a check under
// it reflects every write under it that has returned, and nothing older than what an earlier check
// under it was answered from. The first check reflects all writes, as every check does without such
// a context; later ones need not be newer than that, so that a server with a shared database can
// answer them from memory. Use one for each request of a service, or each session of a person.
//
// Questions with a token or an instant of their own are answered from that.
func WithConsistency(ctx context.Context) context.Context {
	return context.WithValue(ctx, consistencyKey{}, new(consistency))
}

// ConsistencyToken returns the token that the next check under the context is sent with, to continue
// elsewhere; empty if that reflects all writes.
func ConsistencyToken(ctx context.Context) string {
	token, _ := of(ctx).begin()
	return token
}

// of returns the consistency of a context, or nil.
func of(ctx context.Context) *consistency {
	c, _ := ctx.Value(consistencyKey{}).(*consistency)
	return c
}

// under makes a request with a question one under the consistency of a context, and returns the token
// for it: the question's own, if it has one or an instant.
func (r *request) under(ctx context.Context, token, at string) string {
	if r.detached = token != "" || at != ""; r.detached {
		return token
	}
	token, version := of(ctx).begin()
	r.version = &version
	return token
}

// begin returns the token for a call, and its version.
func (c *consistency) begin() (token string, version int) {
	if c == nil {
		return "", 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token, c.version
}

// end notes the token of the state that a call, which began at a version, has seen or made. What
// began at the present version is not older than the present token. Of two writes at the same time
// it is not known which is newer, so the next check reflects all writes.
func (c *consistency) end(version int, token string, wrote bool) {
	if c == nil || token == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case version == c.version:
		c.token = token
	case wrote:
		c.token = ""
	default:
		return
	}
	c.version++
}
