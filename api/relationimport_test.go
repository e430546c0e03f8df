package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"stonetown/api"
	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/tuplestore"
)

const relationImportPath = "/api/v1/resources/relations/import"

// lineOf is a line of an import.
func lineOf(id, name string, subject object) object {
	return object{"resource": resource("document", id), "relation": name, "subject": subject}
}

// load sends lines of relations.
func (c *client) load(t testing.TB, query, key string, lines ...any) answer {
	t.Helper()
	header := http.Header{"Content-Type": {"application/x-ndjson"}}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	return c.send(t, "POST", relationImportPath+query, header, rows(t, lines...))
}

// told are the lines of an import without what differs from run to run.
func told(t testing.TB, a answer) (lines []string) {
	t.Helper()
	for _, line := range a.lines(t) {
		for _, name := range []string{"consistency_token", "request_id", "message"} {
			if line[name] == "" {
				t.Errorf("%s is empty", name)
			}
			delete(line, name)
		}
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(text))
	}
	return lines
}

func stored(line, created, updated, replaced, existed, expired int) string {
	return fmt.Sprintf(`{"created":%d,"event":"stored","existed":%d,"expired":%d,"line":%d,"replaced":%d,"updated":%d}`, created, existed, expired, line, replaced, updated)
}

func done(line, created, updated, replaced, existed, expired int) string {
	return strings.Replace(stored(line, created, updated, replaced, existed, expired), "stored", "done", 1)
}

// imported are the events of imports after some events.
func (w *world) imported(t testing.TB, c *client, after int) (data []string) {
	t.Helper()
	for _, e := range w.events(t, c, after) {
		equal(t, "event", e.Type, eventlog.RelationImported)
		data = append(data, string(e.Data))
	}
	return data
}

// relationImports imports relations in chunks, each once.
func relationImports(t *testing.T, w *world, c *client) {
	define(t, c)
	relate(t, c, "document", "a", "viewer", user("ann"))
	before := len(w.events(t, c, 0))
	const soon, past = "2126-01-02T03:04:05Z", "2020-01-02T03:04:05Z"
	lines := []any{
		lineOf("a", "viewer", user("ann")), // exists
		with(lineOf("b", "viewer", user("ann")), object{"expires_at": soon}),
		"",
		lineOf("b", "viewer", user("ann")), // in another chunk, without the expiry
		with(lineOf("c", "viewer", user("ann")), object{"expires_at": past}),
		lineOf("c", "viewer", user("bob")),
		lineOf("c", "viewer", user("bob")), // twice
	}
	want := []string{
		stored(3, 1, 0, 0, 1, 0),
		stored(6, 1, 1, 0, 0, 1),
		stored(7, 0, 0, 0, 1, 0),
		done(7, 2, 1, 0, 2, 1),
	}
	a := c.load(t, "?chunk_size=3", "once", lines...)
	equal(t, "status", a.status, 200)
	equal(t, "lines", told(t, a), want)
	equal(t, "events", w.imported(t, c, before), []string{
		`{"created":1,"updated":0,"deleted":0,"first_line":1,"last_line":3}`,
		`{"created":1,"updated":1,"deleted":0,"first_line":4,"last_line":6}`,
	})
	equal(t, "relations", found(t, c, "resource_type", "document"), []string{
		"document:a#viewer@user:ann", "document:b#viewer@user:ann", "document:c#viewer@user:bob",
	})
	for _, line := range a.lines(t) {
		in := check(user("ann"), "view", resource("document", "a"))
		in["consistency_token"] = line["consistency_token"]
		equal(t, "allowed", c.want(t, 200, "", "POST", checkPath, in).data()["allowed"], true)
	}

	// What is sent again under the key is acknowledged again, even if the relations are gone.
	c.want(t, 204, "", "DELETE", path("document", "c")+"/relations", relation(user("bob"), "viewer"))
	seen := len(w.events(t, c, 0))
	again := c.load(t, "?chunk_size=3", "once", lines...)
	equal(t, "again", told(t, again), want)
	equal(t, "tokens", again.lines(t)[1]["consistency_token"], a.lines(t)[1]["consistency_token"])
	rest := c.load(t, "?chunk_size=3&first_line=4", "once", lines[3:]...)
	equal(t, "the rest", told(t, rest), append(slices.Clone(want[1:3]), done(7, 1, 1, 0, 1, 1)))
	equal(t, "events", len(w.events(t, c, seen)), 0)
	equal(t, "relations", len(found(t, c, "resource_type", "document")), 2)
	other := c.load(t, "?chunk_size=3", "once", lines[1:]...)
	equal(t, "other lines", fmt.Sprint(other.status, " ", other.code(), " ", other.details()), "422 idempotency_key_reused map[line:1]")
	equal(t, "another key", told(t, c.load(t, "", "twice", lines[5]))[0], stored(1, 1, 0, 0, 0, 0))

	// The last line of the body needs no end; gzip is accepted.
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(bytes.TrimSpace(rows(t, lineOf("z", "viewer", user("ann")))))
	z.Close()
	a = c.send(t, "POST", relationImportPath, http.Header{"Content-Type": {"application/x-ndjson"}, "Content-Encoding": {"gzip"}}, packed.Bytes())
	equal(t, "gzip", told(t, a), []string{stored(1, 1, 0, 0, 0, 0), done(1, 1, 0, 0, 0, 0)})

	// A second relation replaces the first, or is refused.
	for name, second := range map[string]string{"task": "replace", "desk": "refuse"} {
		c.want(t, 201, "", "POST", "/api/v1/resource-types", object{"name": name, "relations": []any{object{"name": "assignee", "cardinality": "one", "on_second": second}}})
	}
	assigned := func(typ string, subject object) object {
		return object{"resource": resource(typ, "t"), "relation": "assignee", "subject": subject}
	}
	seen = len(w.events(t, c, 0))
	equal(t, "replaced", told(t, c.load(t, "", "", assigned("task", user("ann")), assigned("task", user("bob"))))[0], stored(2, 1, 0, 1, 0, 0))
	equal(t, "events", w.imported(t, c, seen), []string{`{"created":2,"updated":0,"deleted":1,"first_line":1,"last_line":2}`})
	a = c.load(t, "", "", assigned("desk", user("ann")), assigned("desk", user("bob")))
	equal(t, "refused", fmt.Sprint(a.status, " ", a.code(), " ", a.details()["line"]), "409 relation_single_valued 2")
}

// relationImportsRefused names the line that is the reason. Chunks before it stay.
func relationImportsRefused(t *testing.T, w *world, c *client) {
	define(t, c)
	good := lineOf("a", "viewer", user("ann"))
	for want, line := range map[string]any{
		"400 invalid_json":            `{"resource":`,
		"400 validation_failed":       "[]",
		"400 validation_failed ":      `{"resource":` + strings.Repeat(" ", 64<<10) + `{}}`,
		"400 validation_failed  ":     with(good, object{"condition": object{"name": "nothing"}}),
		"400 validation_failed   ":    with(good, object{"expires_at": "soon"}),
		"400 validation_failed    ":   lineOf("", "viewer", user("ann")),
		"400 validation_failed     ":  lineOf("*", "viewer", user("ann")),
		"400 validation_failed      ": object{"resource": resource("document", "a")},
		"400 relation_undefined":      lineOf("a", "nothing", user("ann")),
		"400 subject_invalid":         lineOf("a", "viewer", object{"type": "document", "id": "x"}),
		"404 resource_type_not_found": object{"resource": resource("nothing", "a"), "relation": "viewer", "subject": user("ann")},
		"403 permission_denied":       object{"resource": resource("scope", "users:write"), "relation": "holder", "subject": user("ann")},
	} {
		want = strings.TrimSpace(want)
		a := c.load(t, "", "", good, line)
		if got := fmt.Sprint(a.status, " ", a.code()); got != want || a.details()["line"] != 2.0 {
			t.Errorf("%.100v: %s at %v, want %s at 2", line, got, a.details()["line"], want)
		}
		equal(t, "stored", len(found(t, c, "resource_type", "document")), 0)
	}
	for _, query := range []string{"?first_line=0", "?first_line=-1", "?first_line=9999999999999", "?chunk_size=0", "?chunk_size=20001", "?chunk_size=x"} {
		equal(t, query, c.load(t, query, "", good).code(), "validation_failed")
	}
	a := c.send(t, "POST", relationImportPath, http.Header{"Content-Type": {"application/x-ndjson"}, "Idempotency-Key": {""}}, rows(t, good))
	equal(t, "key", a.code(), "idempotency_key_invalid")
	reader := c.with(w.token(t, c, w.application(t, c, "resources:read")))
	equal(t, "without the right", reader.load(t, "", "", good).status, 403)
	writer := c.with(w.token(t, c, w.application(t, c, "resources:write")))
	equal(t, "with it", writer.load(t, "", "", good).status, 200)

	// After the first chunk the error is the last line.
	a = c.load(t, "?chunk_size=1&first_line=11", "", lineOf("b", "viewer", user("ann")), lineOf("b", "nothing", user("ann")))
	equal(t, "status", a.status, 200)
	equal(t, "lines", told(t, a), []string{
		stored(11, 1, 0, 0, 0, 0),
		`{"details":{"line":12,"relation":"nothing","type":"document"},"error":"relation_undefined","event":"failed"}`,
	})
	equal(t, "request", a.lines(t)[1]["request_id"], a.header.Get("X-Request-Id"))
	equal(t, "relations", found(t, c, "resource_type", "document"), []string{"document:a#viewer@user:ann", "document:b#viewer@user:ann"})
}

// relationImportStreams acknowledges a chunk before the client sends the next one.
func relationImportStreams(t *testing.T, w *world, c *client) {
	define(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := func(query string, of ...any) (*io.PipeWriter, *bufio.Scanner, *http.Response) {
		t.Helper()
		body, send := io.Pipe()
		req, err := http.NewRequestWithContext(ctx, "POST", c.server.URL+relationImportPath+query, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Host, req.Header = c.host, http.Header{"Content-Type": {"application/x-ndjson"}, "Authorization": {"Bearer " + c.token}}
		go send.Write(rows(t, of...))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return send, bufio.NewScanner(res.Body), res
	}
	next := func(lines *bufio.Scanner) string {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the response ended: %v", lines.Err())
		}
		return lines.Text()
	}
	two := []any{lineOf("a", "viewer", user("ann")), lineOf("b", "viewer", user("ann"))}
	send, lines, _ := begin("?chunk_size=2", two...)
	for i := range 3 {
		if line := next(lines); !strings.Contains(line, fmt.Sprintf(`"line":%d`, 2*i+2)) {
			t.Errorf("chunk %d: %s", i, line)
		}
		send.Write(rows(t, lineOf(fmt.Sprint("c", i), "viewer", user("ann")), lineOf(fmt.Sprint("d", i), "viewer", user("ann"))))
	}
	next(lines)
	send.Close()
	if line := next(lines); !strings.Contains(line, `"event":"done"`) || !strings.Contains(line, `"line":8`) {
		t.Errorf("the last line is %s", line)
	}

	// Nothing is left of an import of seven lines.
	send, lines, _ = begin("?first_line=8&chunk_size=2", "", "")
	send.Close()
	if line := next(lines); !strings.Contains(line, `"line":9`) {
		t.Errorf("empty lines: %s", line)
	}
	if line := next(lines); !strings.Contains(line, `"event":"done"`) {
		t.Errorf("the last line is %s", line)
	}

	// An error is told to a client that waits.
	send, lines, _ = begin("?chunk_size=2", two...)
	next(lines)
	send.Write([]byte("[]\n"))
	if line := next(lines); !strings.Contains(line, `"failed"`) {
		t.Errorf("the last line is %s", line)
	}

	// What a client that goes away has sent of a chunk is not stored.
	send, lines, res := begin("?chunk_size=2", two...)
	next(lines)
	send.Write(rows(t, lineOf("lost", "viewer", user("ann"))))
	time.Sleep(20 * time.Millisecond)
	res.Body.Close()
	send.CloseWithError(io.ErrClosedPipe)
	time.Sleep(50 * time.Millisecond)
	if slices.Contains(found(t, c, "resource_type", "document"), "document:lost#viewer@user:ann") {
		t.Error("an incomplete chunk was stored")
	}
}

// relationImportChunks are stored in order, several at a time, up to the first that is refused, while
// the types change.
func relationImportChunks(t *testing.T, w *world, c *client) {
	c.want(t, 201, "", "POST", "/api/v1/resource-types", object{"name": "document", "relations": []any{
		object{"name": "home", "subjects": []any{"user"}, "cardinality": "one"}, object{"name": "viewer", "subjects": []any{"user"}},
	}})
	const chunks, size = 12, 120
	var lines []any
	for i := range chunks * size {
		lines = append(lines, lineOf(fmt.Sprint("d", i), "viewer", user("ann")))
	}
	const second = 7*size + 3 // of a node that has one already
	lines[4*size] = lineOf("single", "home", user("ann"))
	lines[second] = lineOf("single", "home", user("bob"))
	a := c.load(t, fmt.Sprint("?chunk_size=", size), "", lines...)
	answers := a.lines(t)
	last := answers[len(answers)-1]
	equal(t, "code", last["error"], "relation_single_valued")
	equal(t, "line", last["details"].(map[string]any)["line"], float64(second+1))
	equal(t, "chunks", len(answers)-1, 7)
	equal(t, "relations", len(allOf(t, c, "/api/v1/relations?resource_type=document")), 7*size)

	lines[second] = lineOf("other", "home", user("bob"))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if a := c.do(t, "POST", "/api/v1/resource-types", object{"name": fmt.Sprint("note_", i)}); a.status != 201 {
				t.Errorf("a type: %s", a.text)
				return
			}
		}
	}()
	told := c.load(t, fmt.Sprint("?chunk_size=", size, "&first_line=", 7*size+1), "", lines[7*size:]...).lines(t)
	close(stop)
	<-stopped
	equal(t, "created", told[len(told)-1]["created"], float64((chunks-7)*size))
	equal(t, "relations", len(allOf(t, c, "/api/v1/relations?resource_type=document")), chunks*size)
}

// outdated is an engine that validates the first chunk of an import by types that have changed since.
type outdated struct{ api.Engine }

func (o outdated) Import(ctx context.Context, tenant string, req engine.WriteRequest, firstLine, lastLine int64) (engine.WriteResponse, error) {
	if firstLine == 1 && req.Turn != nil {
		return engine.WriteResponse{}, tuplestore.ErrSchemaChanged
	}
	return o.Engine.Import(ctx, tenant, req, firstLine, lastLine)
}

// Chunks that are stored again keep their order.
func TestImportOrder(t *testing.T) {
	w := newWorld(t, databases["SQLite"](t), func(c *api.Config) { c.Engine = outdated{c.Engine} })
	c := w.tenant(t, "imports")
	define(t, c)
	for n := range 10 {
		before := len(w.events(t, c, 0))
		var lines []any
		var want []string
		for i := range 12 {
			lines = append(lines, lineOf(fmt.Sprint(n, ".", i), "viewer", user("ann")))
			want = append(want, fmt.Sprintf(`{"created":1,"updated":0,"deleted":0,"first_line":%d,"last_line":%[1]d}`, i+1))
		}
		equal(t, "status", c.load(t, "?chunk_size=1", "", lines...).status, 200)
		equal(t, "events", w.imported(t, c, before), want)
	}
}

// relationImportsEqual compares relations that were imported with those that were written.
func relationImportsEqual(t *testing.T, w *world, c *client) {
	define(t, c)
	other := w.tenant(t, c.name()+"-written")
	define(t, other)
	var lines []any
	var ops []object
	for i := range 2500 {
		line := lineOf(fmt.Sprint("d", i*7919%500), []string{"viewer", "editor"}[i%2], user(fmt.Sprint("u", i%11)))
		if i%5 == 0 {
			line["expires_at"] = "2126-01-02T03:04:05Z"
		}
		lines, ops = append(lines, line), append(ops, with(object{"op": "create"}, line))
	}
	imported := c.load(t, "?chunk_size=500", "", lines...).lines(t)
	n := 0
	for part := range slices.Chunk(ops, 500) {
		counts := map[any]float64{}
		for _, result := range other.want(t, 200, "", "POST", bulkPath, object{"operations": part}).data()["results"].([]any) {
			counts[result.(map[string]any)["status"]]++
		}
		for status, name := range map[string]string{"created": "created", "updated": "updated", "exists": "existed"} {
			got, _ := imported[n][name].(float64)
			equal(t, fmt.Sprint(name, " of chunk ", n), got, counts[status])
		}
		n++
	}
	all := func(c *client) any {
		records := allOf(t, c, "/api/v1/relations?resource_type=document")
		for _, r := range records {
			delete(r.(map[string]any), "created_at")
			delete(r.(map[string]any), "created_by")
		}
		return records
	}
	equal(t, "relations", all(c), all(other))
	equal(t, "resources", len(allOf(t, c, "/api/v1/resources?type=document")), len(allOf(t, other, "/api/v1/resources?type=document")))
}

// allOf reads all pages of a list.
func allOf(t testing.TB, c *client, target string) (items []any) {
	t.Helper()
	for cursor := ""; ; {
		a := c.want(t, 200, "", "GET", target+"&limit=250"+cursor, nil)
		items = append(items, a.list()...)
		next, _ := a.meta("next_cursor").(string)
		if next == "" {
			return items
		}
		cursor = "&cursor=" + next
	}
}

// BenchmarkImport measures imports over HTTP of new relations, three of each document, and the
// time of processors that a relation takes, the client's included.
func BenchmarkImport(b *testing.B) {
	const documents = 50_000
	for name, url := range databases {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, url(b), nil)
			c := w.tenant(b, "imports")
			define(b, c)
			n := 0
			var took time.Duration
			for b.Loop() {
				b.StopTimer()
				var lines bytes.Buffer
				for range documents {
					n++
					for i := range 3 {
						fmt.Fprintf(&lines, `{"resource":{"type":"document","external_id":"d%d"},"relation":"viewer","subject":{"type":"user","id":"u%d"}}`+"\n", n, (n*7919+i*2503)%10_000)
					}
				}
				b.StartTimer()
				before := processorTime(b)
				a := c.send(b, "POST", relationImportPath, http.Header{"Content-Type": {"application/x-ndjson"}}, lines.Bytes())
				took += processorTime(b) - before
				if last := a.lines(b); last[len(last)-1]["created"] != 3.0*documents {
					b.Fatal(a.text)
				}
			}
			b.ReportMetric(3*documents*float64(b.N)/b.Elapsed().Seconds(), "relations/s")
			b.ReportMetric(float64(took.Nanoseconds())/(3*documents*float64(b.N))/1000, "cpu-µs/relation")
		})
	}
}

// processorTime is the time of processors that this process has used.
func processorTime(t testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
