package condition

import (
	"fmt"
	"net/netip"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// address is an IP address as a CEL value. IPv4 in IPv6 counts as IPv4.
type address struct{ netip.Addr }

var addressType = cel.OpaqueType("ipaddress")

// inCIDR declares ip.in_cidr(prefix).
var inCIDR = cel.Function("in_cidr",
	cel.MemberOverload("ipaddress_in_cidr_string", []*cel.Type{addressType, cel.StringType}, cel.BoolType,
		cel.BinaryBinding(func(ip, prefix ref.Val) ref.Val {
			p, err := netip.ParsePrefix(string(prefix.(types.String)))
			if err != nil {
				return types.NewErr("not a CIDR prefix")
			}
			return types.Bool(p.Contains(ip.(address).Addr))
		})))

// toAddress declares ipaddress(text).
var toAddress = cel.Function(toAddressName,
	cel.Overload("string_to_ipaddress", []*cel.Type{cel.StringType}, addressType,
		cel.UnaryBinding(func(text ref.Val) ref.Val {
			a, err := parseAddress(string(text.(types.String)))
			if err != nil {
				return types.NewErr("not an IP address")
			}
			return a
		})))

const toAddressName = "ipaddress"

// checkAddresses refuses calls of ipaddress with a constant that is not an address.
func checkAddresses(expression *ast.AST) error {
	for _, call := range ast.MatchDescendants(ast.NavigateAST(expression), ast.FunctionMatcher(toAddressName)) {
		args := call.AsCall().Args()
		if len(args) != 1 || args[0].Kind() != ast.LiteralKind {
			continue
		}
		if text, ok := args[0].AsLiteral().(types.String); ok {
			if _, err := parseAddress(string(text)); err != nil {
				return fmt.Errorf("%q is not an IP address", string(text))
			}
		}
	}
	return nil
}

func (a address) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("an IP address is no %v", t)
}

func (a address) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.StringType:
		return types.String(a.String())
	case types.TypeType:
		return addressType
	}
	return types.NewErr("an IP address is no %s", t.TypeName())
}

func (a address) Equal(other ref.Val) ref.Val {
	b, ok := other.(address)
	return types.Bool(ok && a == b)
}

func (a address) Type() ref.Type { return addressType }
func (a address) Value() any     { return a.Addr }
