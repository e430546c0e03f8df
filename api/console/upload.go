package console

import (
	"bufio"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"time"

	"stonetown/api/inprocess"
)

// isUpload reports whether files are sent to a path. Their forms are read as streams.
func isUpload(path string) bool {
	return slices.Contains([]string{importAction, threatUpload, logoAction}, path)
}

// maxPart bounds a part of a form that is not the file, in bytes.
const maxPart = 100

// filePart returns the file of a form, which is its last part, and is not in memory as a whole. field
// is called with the others.
func (v *visit) filePart(field func(name, text string)) (*multipart.Part, *fault) {
	parts, err := v.r.MultipartReader()
	if err != nil {
		return nil, invalid("file", "The form must be sent as multipart/form-data.")
	}
	for {
		part, err := parts.NextPart()
		if err != nil { // also at the end
			return nil, invalid("file", "Choose a file.")
		}
		if part.FormName() == "file" {
			return part, nil
		}
		text, err := io.ReadAll(io.LimitReader(part, maxPart))
		if err != nil {
			return nil, invalid("file", "The form could not be read.")
		}
		field(part.FormName(), string(text))
	}
}

// gzipMagic are the first bytes of a file that is compressed (RFC 1952 §2.3.1).
const gzipMagic = "\x1f\x8b"

// sendFile passes a file, part by part as it arrives, to an operation that reads it as a stream. once
// is the value of the form.
func (v *visit) sendFile(once, method, path, mediaType string, part *multipart.Part) (a inprocess.Answer, wrong *fault, err error) {
	// A file may take longer than the deadline of pages. Operations have their own.
	v.r = v.r.WithContext(context.WithoutCancel(v.r.Context()))
	body := bufio.NewReader(part)
	header := http.Header{"Content-Type": {mediaType}}
	start, err := body.Peek(len(gzipMagic))
	if err != nil && len(start) == 0 {
		return a, invalid("file", "Choose a file that is not empty."), nil
	}
	if string(start) == gzipMagic {
		header.Set("Content-Encoding", "gzip")
	}
	a, err = v.onceUpload(once, method, path, header, body)
	e, ok := refused(err)
	if !ok {
		return a, nil, err
	}
	// Browsers read the answer when they have sent the file, as far as there is time for the rest.
	_ = http.NewResponseController(v.w).SetReadDeadline(time.Now().Add(maxOnce))
	_, _ = io.Copy(io.Discard, body)
	if e.Status >= http.StatusInternalServerError || e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden || e.Status == http.StatusNotFound {
		return a, nil, err
	}
	return a, faultOf(e, "body", "file"), nil
}
