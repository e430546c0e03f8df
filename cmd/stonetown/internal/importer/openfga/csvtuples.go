package openfga

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
)

// The columns of a CSV file, in any order.
const (
	userType         = "user_type"
	userID           = "user_id"
	userRelation     = "user_relation"
	relationName     = "relation"
	objectType       = "object_type"
	objectID         = "object_id"
	conditionName    = "condition_name"
	conditionContext = "condition_context"
)

// csvTuples reads tuples after a line with the names of their columns.
func csvTuples(name, text string) ([]written, error) {
	reader := csv.NewReader(strings.NewReader(text))
	reader.ReuseRecord = true
	header, err := reader.Read()
	if err != nil {
		return nil, misreadCSV(name, err)
	}
	columns, err := csvColumns(importer.Place{File: name, Line: 1}, header)
	if err != nil {
		return nil, err
	}
	var tuples []written
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return tuples, nil
		}
		if err != nil {
			return nil, misreadCSV(name, err)
		}
		field := func(column string) string {
			if i, ok := columns[column]; ok {
				return record[i]
			}
			return ""
		}
		line, _ := reader.FieldPos(0)
		w := written{
			at:   importer.Place{File: name, Line: line},
			user: field(userType) + ":" + field(userID), relation: field(relationName),
			object: field(objectType) + ":" + field(objectID), condition: field(conditionName),
		}
		if relation := field(userRelation); relation != "" {
			w.user += "#" + relation
		}
		if context := strings.TrimSpace(field(conditionContext)); context != "" {
			if w.condition == "" {
				return nil, source.Errorf(w.at, "a %s without a %s", conditionContext, conditionName)
			}
			if w.context, err = jsonObject([]byte(context)); err != nil {
				return nil, source.Errorf(w.at, "%v", err)
			}
		}
		tuples = append(tuples, w)
	}
}

func csvColumns(at importer.Place, header []string) (map[string]int, error) {
	known := []string{userType, userID, userRelation, relationName, objectType, objectID, conditionName, conditionContext}
	columns := map[string]int{}
	for i, column := range header {
		column = strings.TrimSpace(column)
		if _, ok := columns[column]; ok {
			return nil, source.Errorf(at, "column %s is given twice", source.Quoted(column))
		}
		found := false
		for _, name := range known {
			found = found || name == column
		}
		if !found {
			return nil, source.Errorf(at, "column %s is unknown; known columns: %s", source.Quoted(column), strings.Join(known, ", "))
		}
		columns[column] = i
	}
	for _, required := range []string{userType, userID, relationName, objectType, objectID} {
		if _, ok := columns[required]; !ok {
			return nil, source.Errorf(at, "column %s is missing", required)
		}
	}
	return columns, nil
}

func misreadCSV(name string, err error) error {
	at := importer.Place{File: name}
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		at.Line = parse.Line
		return source.Errorf(at, "%v", parse.Err)
	}
	if errors.Is(err, io.EOF) {
		return source.Errorf(at, "empty")
	}
	return source.Errorf(at, "%v", err)
}
