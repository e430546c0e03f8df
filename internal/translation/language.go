// Package translation has the languages of the hosted pages and of the mails, and their texts.
//
// A text is found by the text in English, as it stands in the code and in the templates:
//
//	"We sent a code to {number}."
//	"{count} hours"
//
// A file for each language has its translation, which may place the values in another order. A
// text that depends on the number count has one translation for each plural category of the
// language (CLDR), English included:
//
//	"{count} hours": { one: "{count} hour", other: "{count} hours" }
//
// Values are inserted after the text was escaped, so that neither a translation nor a value can
// add an element to a page.
package translation

import (
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// supported are the languages, English first, which is the language of users of others.
var supported = []language.Tag{
	language.English, language.German, language.French, language.Spanish, language.Portuguese, language.Japanese, language.Arabic,
}

// Language is one of the supported languages. The zero value is English.
type Language struct{ index int }

// Languages returns all supported languages, English first.
func Languages() []Language {
	all := make([]Language, len(supported))
	for i := range all {
		all[i].index = i
	}
	return all
}

// maxPreferences bounds the length of the preferences that are read, in bytes: a browser sends some
// tens.
const maxPreferences = 256

// Match returns the supported language that suits a user best. Preferences come in their order;
// each is a language tag (BCP 47), or several in the syntax of Accept-Language (RFC 9110 §12.5.4).
// Empty and invalid ones are skipped. Without a match the language is English.
func Match(preferences ...string) Language { return Choose(nil, "", preferences...) }

// Find returns the supported language that suits a preference of [Match] best, if one does.
func Find(preference string) (Language, bool) { return matcherOf(nil).find(preference) }

func (of *choice) find(preference string) (Language, bool) {
	if len(preference) > maxPreferences {
		return Language{}, false
	}
	var known []string // one unknown tag would make the whole list invalid
	for part := range strings.SplitSeq(preference, ",") {
		if _, _, err := language.ParseAcceptLanguage(part); err == nil {
			known = append(known, part)
		}
	}
	tags, _, err := language.ParseAcceptLanguage(strings.Join(known, ","))
	if err != nil || len(tags) == 0 {
		return Language{}, false
	}
	_, index, confidence := of.matcher.Match(tags...)
	return of.languages[index], confidence > language.No
}

// matchers are the matchers of some of the languages, by their tags.
var matchers sync.Map

// Choose is [Match] for some languages, by their tags; none: all. Without a match the language is
// otherwise, if it is not empty, or the first of them.
func Choose(offered []string, otherwise string, preferences ...string) Language {
	of := matcherOf(offered)
	for _, p := range preferences {
		if l, ok := of.find(p); ok {
			return l
		}
	}
	for _, l := range of.languages {
		if l.Tag() == otherwise {
			return l
		}
	}
	return of.languages[0]
}

// choice is a matcher of some of the languages.
type choice struct {
	languages []Language
	matcher   language.Matcher
}

func matcherOf(offered []string) *choice {
	name := strings.Join(offered, ",")
	if found, ok := matchers.Load(name); ok {
		return found.(*choice)
	}
	of := &choice{}
	var tags []language.Tag
	for _, l := range Languages() {
		if slices.Contains(offered, l.Tag()) || len(offered) == 0 {
			of.languages, tags = append(of.languages, l), append(tags, supported[l.index])
		}
	}
	if tags == nil { // unknown ones only
		return matcherOf(nil)
	}
	of.matcher = language.NewMatcher(tags)
	if len(offered) <= len(supported) { // validated lists, of which there are few
		matchers.Store(name, of)
	}
	return of
}

// Tag returns the tag of the language (BCP 47).
func (l Language) Tag() string { return supported[l.index].String() }

// Direction returns the direction of the script of the language, as the attribute dir of HTML has
// it: ltr or rtl.
func (l Language) Direction() string {
	if script, _ := supported[l.index].Script(); slices.Contains([]string{"Arab", "Hebr"}, script.String()) {
		return "rtl"
	}
	return "ltr"
}

// categories are the plural categories of CLDR.
var categories = map[plural.Form]string{
	plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many", plural.Other: "other",
}

// category returns the plural category of a number.
func (l Language) category(n int) string {
	return categories[plural.Cardinal.MatchPlural(supported[l.index], n, 0, 0, 0, 0)]
}
