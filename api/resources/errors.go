package resources

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/schema"
)

// Codes of answers, batch items and bulk failures.
const (
	codeResourceTypeNotFound = "resource_type_not_found"
	codeResourceNotFound     = "resource_not_found"
	codeRelationUndefined    = "relation_undefined"
	codeSubjectInvalid       = "subject_invalid"
	codeContextMissing       = "condition_context_missing"
	codeConditionFailed      = "condition_failed"
	codeExclusionCycle       = "exclusion_cycle"
)

// reasonCardinality: relations are illegal because their resources have several, where the type
// is to allow one.
const reasonCardinality = "cardinality"

// withSubject adds the subject of the existing relation to the refusal of a second one, for callers
// who may read relations.
func withSubject(info *web.RequestInfo, err error) error {
	var single *engine.SingleValuedError
	e := translate(err)
	if e == nil || !errors.As(err, &single) || !info.Principal.Scopes.Has(readScope) {
		return err
	}
	e.Details["subject"] = engine.SubjectDocumentOf(single.Tuple.Subject)
	return e
}

// translate returns the response for an error of the engine, or nil if the client did not
// cause it.
func translate(err error) *web.Error {
	var (
		ours         *web.Error
		contextual   *engine.ContextualError
		unknownType  *engine.UnknownTypeError
		undefined    *engine.UndefinedRelationError
		noResource   *engine.ResourceNotFoundError
		noRelation   *engine.RelationNotFoundError
		hasRelation  *engine.RelationExistsError
		hasSubject   *engine.SingleValuedError
		filter       *engine.FilterError
		badSubject   *engine.InvalidSubjectError
		badResource  *engine.InvalidResourceError
		noCondition  *engine.UnknownConditionError
		badQualifier *engine.InvalidQualifierError
		undecided    *engine.ConditionError
		cycle        *engine.NegativeCycleError
		inUse        *engine.TypeInUseError
		typesChanged *engine.TypesChangedError
		invalidType  *schema.Error
		badRename    *schema.RenameError
		nameInUse    *engine.NameInUseError
		tooComplex   *engine.BudgetError
		past         *engine.PastError
		answer       = func(status int, code string, cause error, details web.Details) *web.Error {
			return &web.Error{Status: status, Code: code, Message: cause.Error(), Details: details}
		}
	)
	switch {
	case errors.As(err, &ours):
		return ours
	case translateAssertions(err) != nil:
		return translateAssertions(err)
	case errors.As(err, &contextual):
		if e := translate(contextual.Err); e != nil {
			return atIndex(e, contextual.Index)
		}
		return nil
	case errors.As(err, &unknownType):
		return answer(http.StatusNotFound, codeResourceTypeNotFound, unknownType, web.Details{"type": unknownType.Type})
	case errors.As(err, &undefined):
		return answer(http.StatusBadRequest, codeRelationUndefined, undefined, web.Details{"type": undefined.Type, "relation": undefined.Relation})
	case errors.As(err, &noResource):
		return answer(http.StatusNotFound, codeResourceNotFound, noResource, web.Details{"type": noResource.Resource.Type, "external_id": noResource.Resource.ID})
	case errors.As(err, &noRelation):
		return answer(http.StatusNotFound, "relation_not_found", noRelation, nil)
	case errors.As(err, &hasRelation):
		return answer(http.StatusConflict, "relation_exists", hasRelation, nil)
	case errors.As(err, &hasSubject):
		t := hasSubject.Tuple
		return answer(http.StatusConflict, "relation_single_valued", hasSubject, web.Details{"resource": engine.RefTo(t.Object), "relation": t.Relation})
	case errors.As(err, &filter):
		return web.ValidationFailed(web.FieldError{Field: filter.Field, Code: filter.Code, Message: filter.Message})
	case errors.As(err, &badSubject):
		return answer(http.StatusBadRequest, codeSubjectInvalid, badSubject, web.Details{"reason": badSubject.Reason})
	case errors.As(err, &badResource):
		return web.ValidationFailed(web.FieldError{Field: "external_id", Code: "invalid", Message: badResource.Message})
	case errors.As(err, &noCondition):
		return web.ValidationFailed(web.FieldError{Field: "condition/name", Code: "condition_undefined", Message: noCondition.Error()})
	case errors.As(err, &badQualifier):
		field := badQualifier.Field
		if field == "context" {
			field = "condition/context"
		}
		return web.ValidationFailed(web.FieldError{Field: field, Code: "invalid", Message: badQualifier.Message})
	case errors.As(err, &undecided):
		details := web.Details{"conditions": undecided.Conditions, "missing": append([]string{}, undecided.Missing...)}
		return answer(http.StatusBadRequest, conditionCode(undecided), undecided, details)
	case errors.As(err, &cycle):
		details := web.Details{"type": cycle.Node.Object.Type, "external_id": cycle.Node.Object.ID, "relation": cycle.Node.Relation}
		return answer(http.StatusBadRequest, codeExclusionCycle, cycle, details)
	case errors.As(err, &inUse):
		details := web.Details{"type": inUse.Type, "relation": inUse.Relation, "count": inUse.Count}
		if inUse.Condition != "" {
			details["condition"] = inUse.Condition
		}
		if inUse.Crowded {
			details["reason"] = reasonCardinality
		}
		return answer(http.StatusConflict, "resource_type_in_use", inUse, details)
	case errors.As(err, &nameInUse):
		return answer(http.StatusConflict, "resource_type_in_use", nameInUse, web.Details{
			"type": nameInUse.Type, "relation": nameInUse.Relation, "used_by": map[string]string{"type": nameInUse.By.Type, "id": nameInUse.By.ID},
		})
	case errors.As(err, &badRename):
		return renameError(badRename)
	case errors.As(err, &typesChanged):
		return answer(http.StatusConflict, "resource_types_changed", typesChanged, web.Details{"revision": typesChanged.Version})
	case errors.As(err, &invalidType) && invalidType.IsRewrite():
		return answer(http.StatusBadRequest, "rewrite_invalid", invalidType, web.Details{"type": invalidType.Type, "path": pointer(invalidType.Path), "reason": invalidType.Reason})
	case errors.As(err, &invalidType):
		return web.ValidationFailed(web.FieldError{Field: pointer(invalidType.Path), Code: invalidType.Reason, Message: invalidType.Message})
	case errors.As(err, &tooComplex):
		return answer(http.StatusBadRequest, "check_too_complex", tooComplex, web.Details{
			"limit": tooComplex.Limit, "spent_on": tooComplex.Spent(), "spent_on_conditions": tooComplex.OnConditions,
		})
	case errors.As(err, &past) && errors.Is(err, engine.ErrInstantInFuture):
		return web.ValidationFailed(web.FieldError{Field: "at", Code: "in_the_future", Message: "at must not be in the future"})
	case errors.As(err, &past) && errors.Is(err, engine.ErrTokenExpired):
		return answer(http.StatusGone, "history_expired", past, nil)
	case errors.As(err, &past):
		return web.ValidationFailed(web.FieldError{Field: "at", Code: "invalid", Message: "at is neither an RFC 3339 time nor a consistency token that was issued for this tenant"})
	case errors.Is(err, engine.ErrPosition):
		return web.CursorInvalid()
	case errors.Is(err, engine.ErrTokenInvalid), errors.Is(err, engine.ErrTokenUnknown):
		return web.ValidationFailed(web.FieldError{Field: "consistency_token", Code: "invalid", Message: "the consistency token was not issued for this tenant"})
	case errors.Is(err, engine.ErrTokenExpired):
		return answer(http.StatusGone, "history_expired", engine.ErrTokenExpired, nil)
	}
	return nil
}

// renameError returns the response for an error in a rename.
func renameError(err *schema.RenameError) *web.Error {
	e := &web.Error{Message: err.Message}
	switch err.Reason {
	case "unknown_type":
		e.Status, e.Code = http.StatusNotFound, codeResourceTypeNotFound
		e.Details = web.Details{"type": cmp.Or(err.Rename.Type, err.Rename.From)}
	case "unknown_relation":
		e.Status, e.Code = http.StatusBadRequest, codeRelationUndefined
		e.Details = web.Details{"type": err.Rename.Type, "relation": err.Rename.From}
	case "exists":
		e.Status, e.Code, e.Details = http.StatusConflict, "name_taken", web.Details{"rename": err.Rename.String()}
	case "ambiguous":
		e.Status, e.Code, e.Details = http.StatusConflict, "rename_ambiguous", web.Details{"rename": err.Rename.String()}
	default:
		return web.ValidationFailed(web.FieldError{Field: "renames/" + strconv.Itoa(err.Index) + "/" + err.Field, Code: err.Reason, Message: err.Message})
	}
	return e
}

// atIndex adds the index of an operation of a bulk write, or of a contextual relation, to
// an error.
func atIndex(e *web.Error, index int) *web.Error {
	located := *e
	located.Details = web.Details{"index": index, "code": e.Code}
	maps.Copy(located.Details, e.Details)
	return &located
}

// pointer converts a path of the schema compiler, relations[2].rewrites[0], to a JSON
// pointer (RFC 6901) without its leading slash.
func pointer(path string) string {
	if action, ok := strings.CutPrefix(path, "actions."); ok { // the only name that can contain other characters
		return "actions/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(action)
	}
	return strings.NewReplacer("[", "/", "]", "", ".", "/").Replace(path)
}
