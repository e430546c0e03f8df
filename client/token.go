package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// tokens has the access token, and requests another one before it expires.
type tokens struct {
	config clientcredentials.Config
	http   *http.Client

	mu    sync.Mutex // held during a request for a token, so that there is only one
	token *oauth2.Token
}

// get returns a token. The error is an [*Error] if the server refused.
func (t *tokens) get(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token.Valid() {
		return t.token.AccessToken, nil
	}
	token, err := t.config.Token(context.WithValue(ctx, oauth2.HTTPClient, t.http))
	if err != nil {
		refused, ok := errors.AsType[*oauth2.RetrieveError](err)
		switch {
		case ok && refused.Response.StatusCode == http.StatusOK:
			err = errNotOurs // the error of the library quotes the response
		case ok:
			err = errorOf(refused.Response.StatusCode, refused.Response.Header, refused.Body)
		}
		return "", fmt.Errorf("get an access token: %w", err)
	}
	t.token = token
	return token.AccessToken, nil
}

// forget drops a token that the server refused, unless another call has replaced it.
func (t *tokens) forget(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != nil && t.token.AccessToken == token {
		t.token = nil
	}
}
