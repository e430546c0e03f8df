package notation

import (
	"fmt"
	"strings"
)

// Rename is a new name of a type or, with a Type, of a relation of that type.
type Rename struct {
	Type string `json:"type,omitempty"`
	From string `json:"from"`
	To   string `json:"to"`
}

// ParseRename reads FROM=TO or TYPE#FROM=TO.
func ParseRename(text string) (Rename, error) {
	name, to, ok := strings.Cut(text, "=")
	r := Rename{From: name, To: to}
	if typ, relation, ofType := strings.Cut(name, "#"); ofType {
		r.Type, r.From = typ, relation
		ok = ok && typ != ""
	}
	if !ok || r.From == "" || r.To == "" {
		return r, fmt.Errorf("rename %q is not of the form FROM=TO or TYPE#FROM=TO", text)
	}
	return r, nil
}

// String is the form that [ParseRename] reads.
func (r Rename) String() string {
	if r.Type == "" {
		return r.From + "=" + r.To
	}
	return r.Type + "#" + r.From + "=" + r.To
}
