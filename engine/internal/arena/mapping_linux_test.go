package arena

import (
	"os"
	"regexp"
	"runtime"
	"testing"
)

// mappingOf matches the flags of a mapped file of a folder, in smaps of proc(5).
var mappingOf = regexp.MustCompile(`(?s)/\.mapped-[0-9]+ \(deleted\)\n.*?VmFlags: ([a-z ]+)\n`)

// The kernel must not read ahead in the file: "rr" is MADV_RANDOM.
func TestMappedFilesAreReadPageByPage(t *testing.T) {
	a := newArena(t, 1<<30)
	Text(a, "a text")
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	found := mappingOf.FindAllSubmatch(maps, -1)
	if len(found) == 0 {
		t.Fatal("no file is mapped")
	}
	for _, f := range found {
		if !regexp.MustCompile(`\brr\b`).Match(f[1]) {
			t.Errorf("flags: %s", f[1])
		}
	}
	runtime.KeepAlive(a)
}
