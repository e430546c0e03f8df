package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
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
	// A second click makes the browser leave the first request, whose work and answer it needs.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.r.Context()), maxOnce)
	defer cancel()
	key := v.onceKey(value, method, path)
	return afterOthers(ctx, func() (inprocess.Answer, error) {
		return inprocess.CallOnce(v.handlers.API, v.r.WithContext(ctx), v.token, key, method, path, body)
	})
}

// onceUpload is once for a form with a file, which the operation reads as a stream. value is that of
// the form, and header describes the file.
func (v *visit) onceUpload(value, method, path string, header http.Header, file io.Reader) (inprocess.Answer, error) {
	key := ""
	if value != "" {
		key = v.onceKey(value, method, path)
	}
	waiting, cancel := context.WithTimeout(v.r.Context(), maxOnce)
	defer cancel()
	// An operation that waits for another has not read from the file.
	return afterOthers(waiting, func() (inprocess.Answer, error) {
		return inprocess.Upload(v.handlers.API, v.w, v.r, v.token, key, method, path, header, file)
	})
}

// onceKey returns the Idempotency-Key for the random value of a form.
func (v *visit) onceKey(value, method, path string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{v.session, value, method, path}, " ")))
	return hex.EncodeToString(sum[:])
}

// afterOthers calls an operation again while another request with its key is being executed, until
// ctx ends.
func afterOthers(ctx context.Context, do func() (inprocess.Answer, error)) (inprocess.Answer, error) {
	for {
		a, err := do()
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
