package reports

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"stonetown/api/web"
	"stonetown/reporting"
)

// format is a format of rows.
type format string

// The formats.
const (
	formatJSON  format = "json"
	formatCSV   format = "csv"
	formatLines format = "jsonl"
)

// accepted returns the first format that an Accept header names; by default JSON.
func accepted(header string) format {
	for part := range strings.SplitSeq(header, ",") {
		mediaType, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(mediaType)) {
		case "text/csv":
			return formatCSV
		case "application/x-ndjson", "application/jsonl":
			return formatLines
		case "application/json", "*/*":
			return formatJSON
		}
	}
	return formatJSON
}

// ListReportRows reads the rows of a run: a page, or all as a file.
func (h *Handlers) ListReportRows(ctx context.Context, request ListReportRowsRequestObject) (ListReportRowsResponseObject, error) {
	info, p := web.InfoOf(ctx), request.Params
	as := format(p.Format)
	if as == "" {
		as = accepted(info.Accept())
	}
	var v web.Validation
	web.OneOf(&v, "format", as, formatJSON, formatCSV, formatLines)
	if as != formatJSON && p.Cursor != "" {
		v.Add("cursor", "not_applicable", "applies to the format json only")
	}
	if as != formatJSON && p.Limit != nil {
		v.Add("limit", "not_applicable", "applies to the format json only")
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	limit, err := web.Limit(p.Limit)
	if err != nil {
		return nil, err
	}
	run, _, err := h.run(ctx, request.ReportID, request.RunID)
	if err != nil {
		return nil, err
	}
	if run.State != reporting.Completed {
		return nil, reporting.ErrUnfinished
	}
	if as != formatJSON {
		return file{h, ctx, run, as}, nil
	}
	list, from := []string{"listReportRows", request.RunID}, 0
	if p.Cursor != "" {
		if err := h.Cursors.Resume(info.Tenant.ID, list, p.Cursor, &from); err != nil {
			return nil, err
		}
	}
	found, err := h.Registry.Rows(ctx, run, from, limit)
	if err != nil {
		return nil, err
	}
	body := ReportRowList{Data: []ReportRow{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	for _, row := range found {
		body.Data = append(body.Data, rowOf(run, row))
	}
	if from+len(found) < run.Rows && len(found) > 0 {
		body.Meta.NextCursor, err = h.next(info, list, from+len(found))
	}
	return ListReportRows200JSONResponse{Body: body}, err
}

// rowOf returns a row with the names of its columns.
func rowOf(run reporting.Run, values []any) ReportRow {
	row := ReportRow{}
	for i, name := range reporting.Columns(run.Kind) {
		row[name] = values[i]
	}
	return row
}

// file is a response with all rows of a run.
type file struct {
	h   *Handlers
	ctx context.Context // of the request
	run reporting.Run
	as  format
}

// rowsAtOnce is how many rows of a file are read at once.
const rowsAtOnce = 500

// VisitListReportRowsResponse implements [ListReportRowsResponseObject].
func (f file) VisitListReportRowsResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", f.run.ID+"."+string(f.as)))
	if f.as == formatLines {
		lines := web.NewLines(w)
		err := f.each(func(values []any) error { return lines.Write(rowOf(f.run, values)) })
		if err == nil && f.run.Rows == 0 {
			w.Header().Set("Content-Type", "application/x-ndjson")
		}
		if err != nil {
			return err
		}
		return lines.Flush()
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	buffer := bufio.NewWriter(w)
	rows := csv.NewWriter(buffer)
	rows.UseCRLF = true // RFC 4180 §2
	if err := rows.Write(reporting.Columns(f.run.Kind)); err != nil {
		return err
	}
	err := f.each(func(values []any) error {
		cells := make([]string, len(values))
		for i, value := range values {
			cells[i] = cell(value)
		}
		return rows.Write(web.CSVCells(cells...))
	})
	if err != nil {
		return err
	}
	rows.Flush()
	if err := rows.Error(); err != nil {
		return err
	}
	return buffer.Flush()
}

// cell returns a value as text. Null is empty.
func cell(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic("reports: " + err.Error()) // it was JSON
	}
	return string(text)
}

// each calls write for all rows.
func (f file) each(write func(values []any) error) error {
	for from := 0; from < f.run.Rows; {
		found, err := f.h.Registry.Rows(f.ctx, f.run, from, rowsAtOnce)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return reporting.ErrRunNotFound // it was deleted meanwhile
		}
		for _, values := range found {
			if err := write(values); err != nil {
				return err
			}
		}
		from += len(found)
	}
	return nil
}
