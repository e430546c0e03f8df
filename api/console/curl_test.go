package console

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// A shell reads a printed command as it was meant, whatever the ids are.
func TestCurl(t *testing.T) {
	for _, id := range []string{"plain", `it's`, `$(touch x) "quoted" \ ` + "`id`", "line\nbreak", "<b>&amp;</b>", "'; rm -rf /; '"} {
		c := call{"POST", "/api/v1/resources/check", object{"id": id}}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "curl() { printf '%s\\n' \"$@\"; }; TOKEN=secret; "+c.curl("https://a.example")).Output()
		args := strings.Split(strings.TrimSpace(string(out)), "\n")
		if err != nil || len(args) != 8 || args[1] != "https://a.example/api/v1/resources/check" || args[3] != "Authorization: Bearer secret" {
			t.Fatalf("%q: %q, %v", id, args, err)
		}
		var body struct{ ID string }
		if err := json.Unmarshal([]byte(args[7]), &body); err != nil || body.ID != id {
			t.Errorf("%q was sent as %q, %v", id, body.ID, err)
		}
	}
}
