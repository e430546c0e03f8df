package resources

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"stonetown/api/web"
	"stonetown/engine"
)

// readScope is the scope of lists of relations.
const readScope = "resources:read"

// maxPreconditions is the maximum number of preconditions of a request.
const maxPreconditions = 100

// preconditions reads the preconditions of a bulk write. Because a refusal tells which relations
// exist, they require the scope that lists of relations do.
func preconditions(info *web.RequestInfo, in []Precondition) ([]engine.Precondition, error) {
	if len(in) == 0 {
		return nil, nil
	}
	if !info.Principal.Scopes.Has(readScope) {
		return nil, web.InsufficientScope(info, readScope)
	}
	if len(in) > maxPreconditions {
		return nil, tooMany("preconditions", maxPreconditions)
	}
	var v validation
	out := make([]engine.Precondition, len(in))
	for i, p := range in {
		path := preconditionPath(i)
		switch {
		case p.MustExist != nil && p.MustNotExist != nil:
			v.Add(path, "conflict", "must_exist and must_not_exist cannot be combined")
		case p.MustExist != nil:
			out[i] = engine.Precondition{Filter: v.filter(path+"/must_exist/", *p.MustExist), MustExist: true}
		case p.MustNotExist != nil:
			out[i] = engine.Precondition{Filter: v.filter(path+"/must_not_exist/", *p.MustNotExist)}
		default:
			v.Add(path, "required", "must have must_exist or must_not_exist")
		}
	}
	return out, v.Err()
}

func preconditionPath(i int) string { return "preconditions/" + strconv.Itoa(i) }

// filter reads a filter. An empty member is refused: to ignore it would select more relations.
func (v *validation) filter(path string, in PreconditionFilter) (f engine.RelationFilter) {
	fields := filterFields(&f)
	given := map[string]*string{
		"resource_type": in.ResourceType, "external_id": in.ExternalID, "relation": in.Relation,
		"subject_type": in.SubjectType, "subject_id": in.SubjectID, "subject_relation": in.SubjectRelation,
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if value := given[name]; value != nil && v.Text(path, name, *value) {
			*fields[name] = *value
		}
	}
	return f
}

// preconditionError returns the response for an error of a precondition, nil for other errors.
func preconditionError(err error) *web.Error {
	var unmet *engine.PreconditionError
	if errors.As(err, &unmet) {
		return &web.Error{
			Status: http.StatusConflict, Code: "precondition_failed", Message: unmet.Error(),
			Details: web.Details{"index": unmet.Index, "consistency_token": unmet.Token},
		}
	}
	var invalid *engine.InvalidPreconditionError
	if !errors.As(err, &invalid) {
		return nil
	}
	var filter *engine.FilterError
	if errors.As(err, &filter) {
		return web.ValidationFailed(web.FieldError{Field: preconditionPath(invalid.Index), Code: filter.Code, Message: filter.Error()})
	}
	e := translate(invalid.Err)
	if e != nil {
		located := *e
		located.Message = fmt.Sprintf("precondition %d: %s", invalid.Index, e.Message)
		located.Details = web.Details{"precondition": invalid.Index}
		maps.Copy(located.Details, e.Details)
		e = &located
	}
	return e
}
