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
	// uploadTime bounds the time until the next part of an upload arrives.
	uploadTime = 30 * time.Second
	// lingerTime bounds how long the rest of a body is read that the handler did not read.
	lingerTime = time.Second
	// maxRatio bounds the ratio of an upload to its compressed size, for uploads of more than
	// freeOfRatio bytes: text rarely compresses to less than a tenth.
	maxRatio    = 20
	freeOfRatio = 1 << 20
	// maxStreamRatio is that of a body that is handled as it arrives, so that no part of it is stored
	// that was not validated. Relations compress to a twentieth.
	maxStreamRatio = 100
)

// upload returns the body of a request as a stream, decompressed if its encoding is gzip.
// Reading fails with an [*Error], payload_too_large, after the operation's limit.
func upload(w http.ResponseWriter, r *http.Request, op Operation) (io.ReadCloser, error) {
	sent := &sentBody{body: r.Body, control: http.NewResponseController(w)}
	b := &uploadBody{from: sent, sent: sent, most: op.MaxUpload, ratio: maxRatio}
	if op.Streaming {
		b.ratio = maxStreamRatio
	}
	switch r.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		b.compressed = true
	default:
		return nil, &Error{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Message: "the only supported Content-Encoding is gzip"}
	}
	return b, nil
}

// sentBody is the body as it arrives. Each part has its own timeout; the server's limit for a
// whole request does not apply.
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

// fullDuplex allows a handler to write the response while it reads the body. Without it, an
// HTTP/1.1 server first reads the rest of the body. The caller must call end after the handler.
//
// The connection of HTTP/1.1 then ends with the request: net/http might otherwise take what a
// handler did not read of the body for the next request.
func fullDuplex(w http.ResponseWriter, r *http.Request) (end func(), err error) {
	c := http.NewResponseController(w)
	if err := c.EnableFullDuplex(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, fmt.Errorf("read and write at the same time: %w", err)
	}
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	// The server reads some more of the body, because a client that still sends would lose the
	// response if the connection were closed at once (RFC 9112 §9.6).
	return func() { _ = c.SetReadDeadline(time.Now().Add(lingerTime)) }, nil
}

type uploadBody struct {
	from       io.Reader
	sent       *sentBody
	most, n    int64
	ratio      int64
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
	case b.n > freeOfRatio && b.n > b.ratio*b.sent.n:
		return 0, &Error{
			Status: http.StatusRequestEntityTooLarge, Code: "payload_too_large",
			Message: fmt.Sprintf("the body expands more than %d times when it is decompressed", b.ratio),
		}
	case b.compressed && err != nil && err != io.EOF:
		return n, badGzip(err)
	}
	return n, err
}

func (b *uploadBody) Close() error { return b.sent.body.Close() }

// badGzip distinguishes invalid gzip from errors of the network.
func badGzip(err error) error {
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return ValidationFailed(FieldError{Field: "body", Code: "encoding_invalid", Message: "the body is not valid gzip"})
	}
	return err
}
