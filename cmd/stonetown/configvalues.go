package main

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// prefixes is a list of networks; in a flag they are separated by commas.
type prefixes []netip.Prefix

func (p *prefixes) String() string {
	var list []string
	for _, prefix := range *p {
		list = append(list, prefix.String())
	}
	return strings.Join(list, ",")
}

// Set replaces the list, as a flag.
func (p *prefixes) Set(text string) error {
	var list prefixes
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		list = append(list, prefix)
	}
	*p = list
	return nil
}

// Type is the kind of the flag in the help text.
func (*prefixes) Type() string { return "networks" }

// UnmarshalYAML accepts a list, or the text of a flag.
func (p *prefixes) UnmarshalYAML(node *yaml.Node) error {
	text, err := commas(node)
	if err != nil {
		return err
	}
	return p.Set(text)
}

// commas joins the items of a YAML list by commas, and returns a text unchanged.
func commas(node *yaml.Node) (string, error) {
	if node.Kind == yaml.ScalarNode {
		var text string
		err := node.Decode(&text)
		return text, err
	}
	var list []string
	err := node.Decode(&list)
	return strings.Join(list, ","), err
}

// words is a list of texts; in a flag they are separated by commas.
type words []string

func (c *words) String() string { return strings.Join(*c, ",") }

// Set replaces the list, as a flag.
func (c *words) Set(text string) error {
	*c = nil
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			*c = append(*c, part)
		}
	}
	return nil
}

// Type is the kind of the flag in the help text.
func (*words) Type() string { return "list" }

// UnmarshalYAML accepts a list, or the text of a flag.
func (c *words) UnmarshalYAML(node *yaml.Node) error {
	text, err := commas(node)
	if err != nil {
		return err
	}
	return c.Set(text)
}

// rateLimits are limits by family.ip or family.caller; in a flag they are name=limit, separated
// by commas.
type rateLimits map[string]string

func (l *rateLimits) String() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(*l)) {
		list = append(list, name+"="+(*l)[name])
	}
	return strings.Join(list, ",")
}

// Set replaces the limits, as a flag.
func (l *rateLimits) Set(text string) error {
	limits := rateLimits{}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		name, limit, ok := strings.Cut(part, "=")
		if !ok {
			return fmt.Errorf("%q is not name=limit", part)
		}
		limits[strings.TrimSpace(name)] = strings.TrimSpace(limit)
	}
	*l = limits
	return nil
}

// Type is the kind of the flag in the help text.
func (*rateLimits) Type() string { return "limits" }
