package claims

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxSteps is the maximum number of steps of a path.
const maxSteps = 16

// maxIndex is the largest index of a path.
const maxIndex = 9999

// step is a segment of a path: the name of a member, or the index of an element.
type step struct {
	name    string
	index   int
	element bool
}

// parsePath parses a singular query of RFC 9535 §2.3.5.1 without blanks. Its first step is a
// name, because claims are an object.
func parsePath(text string) ([]step, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("it is not UTF-8")
	}
	rest, ok := strings.CutPrefix(text, "$")
	if !ok {
		return nil, errors.New("it does not begin with $")
	}
	var path []step
	for rest != "" {
		var s step
		var err error
		switch {
		case rest[0] == '.':
			s, rest, err = shorthand(rest[1:])
		case strings.HasPrefix(rest, "['"), strings.HasPrefix(rest, `["`):
			s, rest, err = quoted(rest[1:])
		case rest[0] == '[':
			s, rest, err = index(rest[1:])
		default:
			err = fmt.Errorf("unexpected %q", rest[0])
		}
		if err != nil {
			return nil, err
		}
		if path = append(path, s); len(path) > maxSteps {
			return nil, fmt.Errorf("it has more than %d steps", maxSteps)
		}
	}
	if len(path) == 0 || path[0].element {
		return nil, errors.New("its first step is not the name of a claim")
	}
	return path, nil
}

// shorthand parses a member name as in $.name (RFC 9535 §2.5.1.1).
func shorthand(text string) (s step, rest string, err error) {
	end := len(text)
	for i, r := range text {
		first := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf
		if !first && (i == 0 || r < '0' || r > '9') {
			end = i
			break
		}
	}
	if end == 0 {
		return s, "", errors.New("a name is expected after the dot, of letters, digits and _; quote others, as in $['a-b']")
	}
	return step{name: text[:end]}, text[end:], nil
}

// index parses the index of an array and the bracket after it, as in $.a[0]. Negative ones
// count from the end.
func index(text string) (s step, rest string, err error) {
	digits, rest, ok := strings.Cut(text, "]")
	n, err := strconv.Atoi(digits)
	// Atoi also accepts a sign, leading zeros and -0, which RFC 9535 does not.
	if !ok || err != nil || strconv.Itoa(n) != digits || n > maxIndex || n < -maxIndex {
		return s, "", fmt.Errorf("an index between -%d and %d or a quoted name is expected in brackets", maxIndex, maxIndex)
	}
	return step{index: n, element: true}, rest, nil
}

// escapes are the escaped characters of names, other than the quote and \u.
var escapes = map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', '/': '/', '\\': '\\'}

var errUnclosed = errors.New("a quoted name has no end")

// quoted parses a quoted name and the bracket after it, as in $['a'] (RFC 9535 §2.3.1.1).
func quoted(text string) (s step, rest string, err error) {
	quote := text[0]
	var name strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			rest, ok := strings.CutPrefix(text[i+1:], "]")
			if !ok {
				return s, "", errors.New("] is expected after a quoted name")
			}
			return step{name: name.String()}, rest, nil
		case c < ' ':
			return s, "", errors.New("a control character in a quoted name")
		case c != '\\':
			name.WriteByte(c)
		case i+1 == len(text):
			return s, "", errUnclosed
		case text[i+1] == quote:
			name.WriteByte(quote)
			i++
		case text[i+1] == 'u':
			r, size, ok := escapedRune(text[i:])
			if !ok {
				return s, "", errors.New("an invalid \\u escape in a quoted name")
			}
			name.WriteRune(r)
			i += size - 1
		default:
			plain, ok := escapes[text[i+1]]
			if !ok {
				return s, "", errors.New("an unknown escape in a quoted name")
			}
			name.WriteByte(plain)
			i++
		}
	}
	return s, "", errUnclosed
}

// escapedRune decodes \uXXXX, or two of them that are a surrogate pair, at the start of a text.
func escapedRune(text string) (r rune, size int, ok bool) {
	unit := func(text string) (rune, bool) {
		if len(text) < 6 || text[:2] != `\u` || strings.ContainsAny(text[2:6], "+-_") {
			return 0, false
		}
		n, err := strconv.ParseUint(text[2:6], 16, 16)
		return rune(n), err == nil
	}
	if r, ok = unit(text); !ok || !utf16.IsSurrogate(r) {
		return r, 6, ok
	}
	low, ok := unit(text[6:])
	r = utf16.DecodeRune(r, low)
	return r, 12, ok && r != utf8.RuneError
}

// find returns the value at a path; nil if there is none.
func find(value any, path []step) any {
	for _, s := range path {
		switch in := value.(type) {
		case map[string]any:
			if s.element {
				return nil
			}
			value = in[s.name]
		case []any:
			at := s.index
			if at < 0 {
				at += len(in)
			}
			if !s.element || at < 0 || at >= len(in) {
				return nil
			}
			value = in[at]
		default:
			return nil
		}
	}
	return value
}
