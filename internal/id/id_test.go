package id

import (
	"regexp"
	"testing"
)

func TestNew(t *testing.T) {
	for kind, fresh := range map[string]func() string{
		"app": func() string { return New(Application) },
		"req": OfRequest,
	} {
		shape := regexp.MustCompile(`^` + kind + `_[a-z2-7]{26}$`)
		seen := make(map[string]bool)
		for range 1000 {
			got := fresh()
			if !shape.MatchString(got) {
				t.Fatalf("%q, want a match of %v", got, shape)
			}
			if seen[got] {
				t.Fatalf("%q came twice", got)
			}
			seen[got] = true
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(Event)
	}
}
