package web

import "strings"

// CSVCells returns a row of CSV that spreadsheets do not take for formulas: an apostrophe is put before
// texts that begin with a character with which formulas, or their disguises, begin.
func CSVCells(row ...string) []string {
	for i, text := range row {
		if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
			row[i] = "'" + text
		}
	}
	return row
}
