package client

import (
	"net/http"
	"strings"
	"sync"
	"unicode"
)

// warnings passes on the warnings of responses, such as that a relation is deprecated.
type warnings struct {
	warn func(text string)

	mu   sync.Mutex
	seen map[string]bool
}

func (w *warnings) of(header http.Header) {
	if w.warn == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, value := range header.Values("Warning") {
		text, ok := warningText(value)
		if !ok || w.seen[text] {
			continue
		}
		if w.seen == nil {
			w.seen = map[string]bool{}
		}
		w.seen[text] = true
		w.warn(text)
	}
}

// warningText returns the text of a Warning that says 299 (RFC 7234 §5.5), in which terminals find
// no control characters.
func warningText(value string) (text string, ok bool) {
	text, ok = strings.CutPrefix(value, `299 - "`)
	text, closed := strings.CutSuffix(text, `"`)
	text = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(text)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text), ok && closed
}
