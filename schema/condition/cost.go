package condition

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// costs are the costs of calls for which CEL's own model is far too low.
type costs struct{}

// CallCost returns the cost of a call, nil for CEL's own. A regular expression takes linear
// time, but up to a microsecond for each byte of text and a few of the pattern.
// Concatenation costs a unit per byte, because other calls then read its result.
// isSubtreeOf costs a unit for each value of the smaller map, which it may read.
func (costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if overload == subtreeOverload {
		cost := 1 + countValues(args[0])
		return &cost
	}
	if len(args) != 2 {
		return nil
	}
	a, ok1 := args[0].(types.String)
	b, ok2 := args[1].(types.String)
	if !ok1 || !ok2 {
		return nil
	}
	var cost uint64
	switch function {
	case "matches":
		cost = uint64(len(a)/10+1) * uint64(len(b)+1)
	case operators.Add:
		cost = uint64(len(a) + len(b) + 1)
	default:
		return nil
	}
	return &cost
}
