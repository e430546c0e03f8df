package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"stonetown/api/inprocess"
)

// The bounds of an operation of a form that the browser may have sent twice.
const (
	maxOnce  = 20 * time.Second
	nextOnce = 100 * time.Millisecond
)

// once is call for an operation that must not be repeated when its form is sent twice, by a double
// click or a reload. Each rendered form has a random value, which becomes the Idempotency-Key: the
// form that is sent again gets the answer of the first time, with a secret that was in it.
//
// The key is of the session, too, so that no other session gets that answer, and of the operation,
// because a page can have several forms.
func (v *visit) once(method, path string, body any) (inprocess.Answer, error) {
	value := v.r.PostForm.Get("once")
	if value == "" {
		return v.call(method, path, body)
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{v.session, value, method, path}, " ")))
	// A second click makes the browser leave the first request, whose work and answer it needs.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.r.Context()), maxOnce)
	defer cancel()
	for {
		a, err := inprocess.CallOnce(v.handlers.API, v.r.WithContext(ctx), v.token, hex.EncodeToString(sum[:]), method, path, body)
		if e, ok := refused(err); !ok || e.Code != "idempotency_in_progress" && (e.Code != "CONFLICT" || e.After == 0) {
			return a, err
		}
		select {
		case <-ctx.Done():
			return a, err
		case <-time.After(nextOnce):
		}
	}
}
