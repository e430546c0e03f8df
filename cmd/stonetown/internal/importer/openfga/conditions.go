package openfga

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/schema/condition"
)

// translateConditions adds the conditions that can be compiled here.
func (m *model) translateConditions() {
	for _, name := range m.conditionsInOrder() {
		d, err := m.condition(name)
		if err == nil {
			_, err = condition.Compile(d)
		}
		if err != nil {
			why, _, _ := strings.Cut(err.Error(), "\n") // CEL draws the position on the next lines
			m.refused[name] = source.Clip(why)
			m.data.Find(m.where.ofCondition(name), importer.Unsupported, fmt.Sprintf("condition %s is left out: %s", source.Clip(name), m.refused[name]))
			continue
		}
		m.conditions[name] = d
		if !m.isUsed(name) {
			m.data.Find(m.where.ofCondition(name), importer.Unsupported, fmt.Sprintf("condition %s is left out: conditions belong to types, and no relation names it", source.Clip(name)))
		}
	}
}

func (m *model) isUsed(condition string) bool {
	for _, r := range m.relations {
		for _, s := range r.subjects {
			if s.GetCondition() == condition {
				return true
			}
		}
	}
	return false
}

func (m *model) condition(name string) (condition.Definition, error) {
	c := m.declared[name]
	d := condition.Definition{Name: m.conditionNames[name], Expression: strings.TrimSpace(c.GetExpression())}
	for _, parameter := range slices.Sorted(maps.Keys(c.GetParameters())) {
		typ, err := parameterType(c.GetParameters()[parameter], 0)
		if err != nil {
			return d, fmt.Errorf("parameter %s %w", source.Quoted(parameter), err)
		}
		d.Parameters = append(d.Parameters, condition.Parameter{Name: parameter, Type: typ})
	}
	return d, nil
}

var parameterTypes = map[openfgav1.ConditionParamTypeRef_TypeName]string{
	openfgav1.ConditionParamTypeRef_TYPE_NAME_ANY:       "any",
	openfgav1.ConditionParamTypeRef_TYPE_NAME_BOOL:      "bool",
	openfgav1.ConditionParamTypeRef_TYPE_NAME_STRING:    "string",
	openfgav1.ConditionParamTypeRef_TYPE_NAME_INT:       "int",
	openfgav1.ConditionParamTypeRef_TYPE_NAME_UINT:      "uint",
	openfgav1.ConditionParamTypeRef_TYPE_NAME_DOUBLE:    "double",
	openfgav1.ConditionParamTypeRef_TYPE_NAME_DURATION:  "duration",
	openfgav1.ConditionParamTypeRef_TYPE_NAME_TIMESTAMP: "timestamp",
	openfgav1.ConditionParamTypeRef_TYPE_NAME_IPADDRESS: "ipaddress",
	openfgav1.ConditionParamTypeRef_TYPE_NAME_MAP:       "map",
	openfgav1.ConditionParamTypeRef_TYPE_NAME_LIST:      "list",
}

func parameterType(t *openfgav1.ConditionParamTypeRef, depth int) (string, error) {
	name := parameterTypes[t.GetTypeName()]
	switch {
	case name == "":
		return "", fmt.Errorf("is of type %s, which is not known", t.GetTypeName())
	case depth > maxNesting:
		return "", fmt.Errorf("has a type nested more than %d deep", maxNesting)
	case name != "map" && name != "list":
		return name, nil
	case len(t.GetGenericTypes()) != 1:
		return "", fmt.Errorf("is a %s without an element type", name)
	}
	of, err := parameterType(t.GetGenericTypes()[0], depth+1)
	return name + "<" + of + ">", err
}
