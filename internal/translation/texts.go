package translation

import (
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Texts are the texts of a part of the product. They are safe for concurrent use.
type Texts struct {
	of []map[string]translated // by language, by the text in English
}

// translated is a text in one language, by plural category. A text without a number has the
// category other only.
type translated map[string]string

// UnmarshalYAML reads a text, or a text for each category.
func (t *translated) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*t = translated{"other": node.Value}
		return nil
	}
	return node.Decode((*map[string]string)(t))
}

// Read reads the texts of a folder: a file TAG.yaml for each language. It fails unless all
// languages are there.
func Read(files fs.FS, folder string) (*Texts, error) {
	all := &Texts{}
	for _, l := range Languages() {
		name := folder + "/" + l.Tag() + ".yaml"
		var texts map[string]translated
		data, err := fs.ReadFile(files, name)
		if err == nil {
			err = yaml.Unmarshal(data, &texts)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all.of = append(all.of, texts)
	}
	return all, nil
}

// Text returns a text in a language. Values are pairs of a name and a value, which replaces the
// name in braces; an int named count chooses the plural form. A text without a translation is
// returned as it is.
func (t *Texts) Text(l Language, text string, values ...any) string {
	return insert(t.find(l, text, values), values, func(value any) string { return fmt.Sprint(value) })
}

// HTML returns a text for a page. Values are escaped, unless they are [template.HTML].
func (t *Texts) HTML(l Language, text string, values ...any) template.HTML {
	return template.HTML(insert(template.HTMLEscapeString(t.find(l, text, values)), values, func(value any) string {
		if html, ok := value.(template.HTML); ok {
			return string(html)
		}
		return template.HTMLEscapeString(fmt.Sprint(value))
	}))
}

func (t *Texts) find(l Language, text string, values []any) string {
	forms := t.of[l.index][text]
	for i := 0; i+1 < len(values); i += 2 {
		if n, ok := values[i+1].(int); ok && values[i] == "count" {
			if form, ok := forms[l.category(n)]; ok {
				return form
			}
		}
	}
	if form, ok := forms["other"]; ok {
		return form
	}
	return text
}

// insert replaces each name in braces by its value. What a value contains is not replaced again.
func insert(text string, values []any, format func(any) string) string {
	var pairs []string
	for i := 0; i+1 < len(values); i += 2 {
		pairs = append(pairs, fmt.Sprintf("{%v}", values[i]), format(values[i+1]))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// Faults compares the texts with those that are used, and returns a sentence for each text that a
// language lacks, that is not used, that lacks a plural form, or whose values differ from those of
// the text in English. It is for tests.
func (t *Texts) Faults(used []string) []string {
	var faults []string
	for _, l := range Languages() {
		texts := t.of[l.index]
		for _, text := range used {
			counted := strings.Contains(text, "{count}")
			if _, ok := texts[text]; !ok && (l.index > 0 || counted) {
				faults = append(faults, fmt.Sprintf("%s lacks %q", l.Tag(), text))
			}
		}
		for _, text := range slices.Sorted(maps.Keys(texts)) {
			if !slices.Contains(used, text) {
				faults = append(faults, fmt.Sprintf("%s has %q, which is not used", l.Tag(), text))
			}
			faults = append(faults, l.faults(text, texts[text])...)
		}
	}
	return faults
}

// faults returns what is wrong with the translation of a text.
func (l Language) faults(text string, forms translated) (faults []string) {
	wanted := map[string]bool{"other": true}
	if strings.Contains(text, "{count}") {
		for n := range 200 {
			wanted[l.category(n)] = true
		}
	}
	for category := range wanted {
		if strings.TrimSpace(forms[category]) == "" {
			faults = append(faults, fmt.Sprintf("%s: %q lacks the form %s", l.Tag(), text, category))
		}
	}
	for category, form := range forms {
		got, want := names(form), names(text)
		if category != "other" { // a form for one number may leave it out: "an hour"
			delete(got, "{count}")
			delete(want, "{count}")
		}
		if !maps.Equal(got, want) {
			faults = append(faults, fmt.Sprintf("%s: %q has other values than %q", l.Tag(), form, text))
		}
	}
	return faults
}

// names returns the names in braces in a text.
func names(text string) map[string]bool {
	found := map[string]bool{}
	for _, part := range strings.Split(text, "{")[1:] {
		name, _, _ := strings.Cut(part, "}")
		found["{"+name+"}"] = true
	}
	return found
}
