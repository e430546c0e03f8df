package bench

import (
	"fmt"
	"html/template"
	"math"
	"os"
	"slices"
	"strconv"
)

// WriteHTML writes the report as a page: for each measure a bar for every target,
// on a scale on which each step is a factor of ten, and the whole table below.
func (r *Report) WriteHTML(path string) error {
	type bar struct {
		Figure
		Width float64 // percent
		Text  string
	}
	type chart struct {
		Title string
		Bars  []bar
	}
	page := struct {
		*Report
		Charts []chart
	}{Report: r}
	var most float64
	for _, f := range r.Figures {
		most = max(most, f.PerSecond)
	}
	for _, f := range r.Figures {
		title := fmt.Sprintf("%s: %s, %d at once", f.Workload, f.Measure, f.Workers)
		i := slices.IndexFunc(page.Charts, func(c chart) bool { return c.Title == title })
		if i < 0 {
			i = len(page.Charts)
			page.Charts = append(page.Charts, chart{Title: title})
		}
		b := bar{f, 100 * math.Log10(max(f.PerSecond, 1)) / math.Log10(max(most, 10)), number(f.PerSecond) + "/s"}
		if f.Failed != "" {
			b = bar{Figure: f, Text: "failed: " + f.Failed}
		}
		page.Charts[i].Bars = append(page.Charts[i].Bars, b)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := htmlReport.Execute(f, page); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// number writes a whole number with a comma between thousands.
func number(n float64) string {
	text := strconv.Itoa(int(n + .5))
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// duration writes microseconds with three significant digits; empty for zero.
func duration(µs float64) string {
	switch {
	case µs == 0:
		return ""
	case µs < 1000:
		return fmt.Sprintf("%.3g µs", µs)
	case µs < 1e6:
		return fmt.Sprintf("%.3g ms", µs/1e3)
	default:
		return fmt.Sprintf("%.3g s", µs/1e6)
	}
}

var htmlReport = template.Must(template.New("report").Funcs(template.FuncMap{"number": number, "reads": reads, "time": duration}).Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Authorization engines, measured</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1d232a }
h2 { font-size: 1rem; margin: 1.6rem 0 .3rem }
.bar { display: grid; grid-template-columns: 8rem 1fr; align-items: center; gap: .6rem; margin: .2rem 0 }
.bar span { background: #d9e6f5; border-left: 3px solid #2a6fb5; padding: .1rem .4rem; white-space: nowrap; box-sizing: border-box }
table { border-collapse: collapse; margin-top: 2rem; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #dde3ea; text-align: right }
td:nth-child(-n+3), th:nth-child(-n+3) { text-align: left }
</style>
<h1>Authorization engines, measured</h1>
<p>{{.Started}}, {{.Go}}, {{.CPUs}} CPUs. Units (checks, tuples) per second; each step of a bar's scale is a factor of ten. Every answer was compared with an oracle.</p>
{{range .Charts}}<h2>{{.Title}}</h2>
{{range .Bars}}<div class="bar"><div>{{.Target}}</div><span style="width: {{printf "%.1f" .Width}}%">{{.Text}}{{if .P50}}, p50 {{time .P50}}, p99 {{time .P99}}{{end}}</span></div>
{{end}}{{end}}
<table><tr><th>target<th>workload<th>measure<th>at once<th>per call<th>per second<th>p50<th>p90<th>p99<th>p99.9<th>reads/1,000</tr>
{{range .Figures}}<tr><td>{{.Target}}<td>{{.Workload}}<td>{{.Measure}}<td>{{.Workers}}<td>{{.PerCall}}<td>{{if .Failed}}failed{{else}}{{number .PerSecond}}{{end}}<td>{{time .P50}}<td>{{time .P90}}<td>{{time .P99}}<td>{{time .P999}}<td>{{reads .Reads}}</tr>
{{end}}</table></html>
`))
