package condition

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// isSubtreeOf declares a.isSubtreeOf(b) of SpiceDB: every member of the map a is a member
// of the map b, with an equal value or, for maps, a subtree of it.
var (
	anyMap      = cel.MapType(cel.StringType, cel.DynType)
	isSubtreeOf = cel.Function("isSubtreeOf",
		cel.MemberOverload(subtreeOverload, []*cel.Type{anyMap, anyMap}, cel.BoolType,
			cel.BinaryBinding(func(a, b ref.Val) ref.Val {
				return types.Bool(isSubtree(a.(traits.Mapper), b.(traits.Mapper)))
			})))
)

const subtreeOverload = "map_is_subtree_of_map"

func isSubtree(a, b traits.Mapper) bool {
	for keys := a.Iterator(); keys.HasNext() == types.True; {
		key := keys.Next()
		have, ok := b.Find(key)
		if !ok {
			return false
		}
		want := a.Get(key)
		inner, isMap := want.(traits.Mapper)
		outer, isMapToo := have.(traits.Mapper)
		switch {
		case isMap != isMapToo:
			return false
		case isMap:
			if !isSubtree(inner, outer) {
				return false
			}
		case types.Equal(want, have) != types.True:
			return false
		}
	}
	return true
}

// countValues counts the values in a map or list, including nested ones.
func countValues(v ref.Val) uint64 {
	container, ok := v.(traits.Iterable)
	if !ok {
		return 1
	}
	m, isMap := v.(traits.Mapper)
	n := uint64(0)
	for members := container.Iterator(); members.HasNext() == types.True; {
		member := members.Next()
		if isMap {
			member = m.Get(member)
		}
		n += 1 + countValues(member)
	}
	return n
}
