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

// tokens holds the access token and gets another when it is about to expire.
type tokens struct {
	config clientcredentials.Config
	http   *http.Client

	mu    sync.Mutex // held while a token is fetched, so that only one is
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
			err = errNotOurs // the library's own would quote the answer
		case ok:
			err = errorOf(refused.Response.StatusCode, refused.Response.Header, refused.Body)
		}
		return "", fmt.Errorf("get an access token: %w", err)
	}
	t.token = token
	return token.AccessToken, nil
}

// forget drops a token that the server did not accept, unless another call has
// replaced it already.
func (t *tokens) forget(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != nil && t.token.AccessToken == token {
		t.token = nil
	}
}
