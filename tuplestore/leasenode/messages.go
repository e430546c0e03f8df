package leasenode

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"stonetown/tuplestore"
	"stonetown/tuplestore/readlease"
	"stonetown/tuplestore/sqlstore"
)

const (
	revokePath  = "/leases/revoke"
	releasePath = "/leases/release"
	// codeHeader has the code of a request or a response, in base64.
	codeHeader = "Stonetown-Code"
	// maxMessage bounds a request and a response.
	maxMessage = 4 << 10
	// releaseAttempts is how often a release is sent. If none arrives, the holder gives the lease
	// up.
	releaseAttempts = 2
)

// message is a request: a revocation or, with the newest revision, its release.
type message struct {
	Node       readlease.NodeID       `json:"node"` // the recipient
	Tenant     string                 `json:"tenant"`
	Revocation readlease.RevocationID `json:"revocation"`
	Newest     tuplestore.Revision    `json:"newest,omitempty"`
}

// reply is a response. Here is false if the process has another registration.
type reply struct {
	Here bool `json:"here"`
	Held bool `json:"held"`
}

// code authenticates a text of some kind.
func (n *Node) code(kind string, text ...[]byte) []byte {
	h := hmac.New(sha256.New, n.Key)
	fmt.Fprintf(h, "%s\n", kind)
	for _, part := range text {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
	}
	return h.Sum(nil)
}

// Handler serves the messages of other processes. Those without a valid code are refused.
func (n *Node) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+revokePath, n.serve(n.serveRevoke))
	mux.HandleFunc("POST "+releasePath, n.serve(n.serveRelease))
	return mux
}

func (n *Node) serveRevoke(m message) reply {
	if n.term.Load().Node != m.Node {
		return reply{}
	}
	return reply{Here: true, Held: n.Tenant(m.Tenant).revoke(m.Revocation)}
}

func (n *Node) serveRelease(m message) reply {
	if n.term.Load().Node != m.Node {
		return reply{}
	}
	n.Tenant(m.Tenant).release(m.Revocation, m.Newest)
	return reply{Here: true}
}

func (n *Node) serve(answer func(message) reply) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
		if err != nil {
			http.Error(w, fmt.Sprintf("the body must be complete and have at most %d bytes", maxMessage), http.StatusBadRequest)
			return
		}
		request := n.code(r.URL.Path, body)
		given, err := base64.StdEncoding.DecodeString(r.Header.Get(codeHeader))
		if err != nil || !hmac.Equal(given, request) {
			http.Error(w, "the code is not valid", http.StatusUnauthorized)
			return
		}
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			http.Error(w, "the body is not valid", http.StatusBadRequest)
			return
		}
		response, err := json.Marshal(answer(m))
		if err != nil {
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set(codeHeader, base64.StdEncoding.EncodeToString(n.code("response", request, response)))
		_, _ = w.Write(response) // the writer that gets no answer does not rely on one
	}
}

// errAnotherNode: the process at the address is not the one that has registered with it.
var errAnotherNode = errors.New("another process has the address")

// Revoke implements [sqlstore.Revoker].
func (n *Node) Revoke(ctx context.Context, to sqlstore.Holder, tenant string, id readlease.RevocationID) (held bool, err error) {
	m := message{Node: to.Node, Tenant: tenant, Revocation: id}
	got := n.serveRevoke(m) // if it is this process
	if !got.Here {
		got, err = n.send(ctx, revokePath, to, m)
	}
	if err == nil && !got.Here {
		err = errAnotherNode
	}
	return got.Held, err
}

// Release implements [sqlstore.Revoker].
func (n *Node) Release(to sqlstore.Holder, tenant string, id readlease.RevocationID, newest tuplestore.Revision) {
	m := message{Node: to.Node, Tenant: tenant, Revocation: id, Newest: newest}
	if n.serveRelease(m).Here {
		return
	}
	n.releases.Go(func() {
		for range releaseAttempts {
			ctx, cancel := context.WithTimeout(context.Background(), to.Lease)
			_, err := n.send(ctx, releasePath, to, m)
			cancel()
			if err == nil {
				return
			}
		}
	})
}

// send sends a message and returns the response, if its code is valid.
func (n *Node) send(ctx context.Context, path string, to sqlstore.Holder, m message) (got reply, err error) {
	body, err := json.Marshal(m)
	if err != nil {
		return reply{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+to.Address+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request := n.code(path, body)
	r.Header.Set(codeHeader, base64.StdEncoding.EncodeToString(request))
	response, err := n.client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxMessage))
	if err != nil {
		return reply{}, err
	}
	given, err := base64.StdEncoding.DecodeString(response.Header.Get(codeHeader))
	if err != nil || !hmac.Equal(given, n.code("response", request, text)) {
		return reply{}, fmt.Errorf("the response %d has no valid code", response.StatusCode)
	}
	return got, json.Unmarshal(text, &got)
}
