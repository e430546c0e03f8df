package translation

import (
	"html/template"
	"strings"
	"testing"
	"testing/fstest"
)

func TestMatch(t *testing.T) {
	for preferences, want := range map[string]string{
		"": "en", "de-AT,de;q=0.9,en;q=0.8": "de", "pl,fr;q=0.5": "fr", "en;q=0.2,ja;q=0.3": "ja", "pt-BR": "pt", "zh-Hant": "en", "ar-EG": "ar", "es-419": "es",
		"xx,fr-CA": "fr", ";;;": "en", "*": "en", "de\x00": "en", "fr;q=0": "en", strings.Repeat("x", 300) + ",de": "en",
	} {
		if got := Match(preferences).Tag(); got != want {
			t.Errorf("%q: %s, want %s", preferences, got, want)
		}
	}
	if got := Match("xx", "", "es", "de").Tag(); got != "es" {
		t.Errorf("the first preference that suits: %s", got)
	}
	if _, ok := Find("zh"); ok {
		t.Error("a language was found for Chinese")
	}
	if de, ar := Match("de").Direction(), Match("ar").Direction(); de != "ltr" || ar != "rtl" {
		t.Errorf("directions %s and %s", de, ar)
	}
}

// files are the texts of all languages, where French and Arabic have translations.
func files() fstest.MapFS {
	m := fstest.MapFS{}
	for _, l := range Languages() {
		m["texts/"+l.Tag()+".yaml"] = &fstest.MapFile{Data: []byte("{}")}
	}
	m["texts/fr.yaml"].Data = []byte(`"{a} & {b}": "{b} <et> {a}"
"{count} days": { one: "{count} jour", other: "{count} jours" }`)
	m["texts/ar.yaml"].Data = []byte(`"{count} days": { zero: "0", one: "1", two: "2", few: "{count} few", many: "{count} many", other: "{count} other" }`)
	return m
}

func TestTexts(t *testing.T) {
	texts, err := Read(files(), "texts")
	if err != nil {
		t.Fatal(err)
	}
	fr, ar := Match("fr"), Match("ar")
	for got, want := range map[string]string{
		texts.Text(fr, "{a} & {b}", "a", "1 {b}", "b", "<2>"):                                      "<2> <et> 1 {b}",
		string(texts.HTML(fr, "{a} & {b}", "a", template.HTML("<b>1</b>"), "b", "<2>")):            "&lt;2&gt; &lt;et&gt; <b>1</b>",
		string(texts.HTML(Language{}, "{a} & {b}", "a", 1, "b", `"`)):                              "1 &amp; &#34;",
		texts.Text(fr, "{count} days", "count", 0):                                                 "0 jour",
		texts.Text(fr, "{count} days", "count", 2):                                                 "2 jours",
		texts.Text(fr, "{count} days", "count", "many"):                                            "many jours",
		texts.Text(ar, "{count} days", "count", 2) + texts.Text(ar, "{count} days", "count", 103):  "2103 few",
		texts.Text(ar, "{count} days", "count", 11) + texts.Text(ar, "{count} days", "count", 100): "11 many100 other",
		texts.Text(ar, "none", "count", 1):                                                         "none",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFaults(t *testing.T) {
	m := files()
	m["texts/de.yaml"].Data = []byte(`"{a} & {b}": "{a} und {c}"
"{count} days": "{count} Tage"
"old": "alt"`)
	texts, err := Read(m, "texts")
	if err != nil {
		t.Fatal(err)
	}
	faults := strings.Join(texts.Faults([]string{"{a} & {b}", "{count} days"}), "\n")
	for _, want := range []string{
		`en lacks "{count} days"`, `ja lacks "{a} & {b}"`, `de has "old", which is not used`, `de: "{count} days" lacks the form one`, `de: "{a} und {c}" has other values than "{a} & {b}"`,
	} {
		if !strings.Contains(faults, want) {
			t.Errorf("no %q in:\n%s", want, faults)
		}
	}
	if strings.Contains(faults, "fr") || strings.Contains(faults, "en lacks \"{a}") {
		t.Error(faults)
	}
	delete(m, "texts/ja.yaml")
	if _, err := Read(m, "texts"); err == nil {
		t.Error("a language is missing")
	}
}
