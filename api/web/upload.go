package web

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// uploadTime is how long a client may take for the next part of an upload.
	uploadTime = 30 * time.Second
	// maxRatio is how many times larger than what was sent an upload may become, once
	// it has more than freeOfRatio bytes: compressed text rarely shrinks to a tenth.
	maxRatio    = 20
	freeOfRatio = 1 << 20
)

// upload is the body of a request that is read as it comes, decompressed if the
// request says that it is (gzip). Reading fails with an [*Error],
// payload_too_large, if there is more of it than most bytes.
func upload(w http.ResponseWriter, r *http.Request, most int64) (io.ReadCloser, error) {
	sent := &sentBody{body: r.Body, control: http.NewResponseController(w)}
	b := &uploadBody{from: sent, sent: sent, most: most}
	switch r.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		b.compressed = true
	default:
		return nil, &Error{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Message: "the only supported Content-Encoding is gzip"}
	}
	return b, nil
}

// sentBody is what arrives. Each part has time of its own, whatever the server's limit
// on the time that a whole request takes.
type sentBody struct {
	body    io.ReadCloser
	control *http.ResponseController
	n       int64
}

func (s *sentBody) Read(p []byte) (int, error) {
	now := time.Now()
	for _, err := range []error{s.control.SetReadDeadline(now.Add(uploadTime)), s.control.SetWriteDeadline(now.Add(2 * uploadTime))} {
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			return 0, err
		}
	}
	n, err := s.body.Read(p)
	s.n += int64(n)
	return n, err
}

type uploadBody struct {
	from       io.Reader
	sent       *sentBody
	most, n    int64
	compressed bool
}

func (b *uploadBody) Read(p []byte) (int, error) {
	if b.compressed && b.from == io.Reader(b.sent) {
		z, err := gzip.NewReader(b.sent)
		if err != nil {
			return 0, badGzip(err)
		}
		b.from = z
	}
	n, err := b.from.Read(p)
	b.n += int64(n)
	switch {
	case b.n > b.most:
		return 0, &Error{Status: http.StatusRequestEntityTooLarge, Code: "payload_too_large", Message: fmt.Sprintf("the body has more than %d bytes", b.most)}
	case b.n > freeOfRatio && b.n > maxRatio*b.sent.n:
		return 0, &Error{
			Status: http.StatusRequestEntityTooLarge, Code: "payload_too_large",
			Message: fmt.Sprintf("the body expands more than %d times when it is decompressed", maxRatio),
		}
	case b.compressed && err != nil && err != io.EOF:
		return n, badGzip(err)
	}
	return n, err
}

func (b *uploadBody) Close() error { return b.sent.body.Close() }

// badGzip tells what the client sent from what the network did.
func badGzip(err error) error {
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return ValidationFailed(FieldError{Field: "body", Code: "encoding_invalid", Message: "the body is not valid gzip"})
	}
	return err
}
