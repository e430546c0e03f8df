package id

import (
	"regexp"
	"testing"
)

func TestNew(t *testing.T) {
	shape := regexp.MustCompile(`^app_[a-z2-7]{26}$`)
	seen := make(map[string]bool)
	for range 1000 {
		got := New(Application)
		if !shape.MatchString(got) {
			t.Fatalf("New = %q, want a match of %v", got, shape)
		}
		if seen[got] {
			t.Fatalf("New returned %q twice", got)
		}
		seen[got] = true
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(Request)
	}
}
