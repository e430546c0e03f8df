package parse

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"stonetown/api/web"
	"stonetown/internal/ratelimit"
)

// operation has the members of an operation that the pipeline enforces.
type operation struct {
	ID       string                `yaml:"operationId"`
	Tags     []string              `yaml:"tags"`
	Security []map[string][]string `yaml:"security"`
	Body     struct {
		Required bool           `yaml:"required"`
		Content  map[string]any `yaml:"content"`
	} `yaml:"requestBody"`
	Parameters []struct {
		Ref string `yaml:"$ref"`
	} `yaml:"parameters"`
	RateLimit ratelimit.Family `yaml:"x-rate-limit"`
	Streaming bool             `yaml:"x-streaming"`
	MaxUpload int64            `yaml:"x-max-upload"`
	Enrolling bool             `yaml:"x-enrolling"`
	FormToken bool             `yaml:"x-form-token"`
	Responses map[string]any   `yaml:"responses"`
}

// methods are the members of a path item that are operations.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// Operations returns the operations of a document by their paths. In a document whose bearer tokens
// have no scopes, the roles of the caller decide: its operations require a token and no scope of it.
func Operations(document []byte) ([]web.Operation, error) {
	var doc struct {
		Security   []map[string][]string           `yaml:"security"`
		Paths      map[string]map[string]yaml.Node `yaml:"paths"`
		Components struct {
			Schemes struct {
				Bearer struct {
					Type string `yaml:"type"`
				} `yaml:"bearer"`
			} `yaml:"securitySchemes"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	byRole := doc.Components.Schemes.Bearer.Type == "http" // the others are oauth2
	var ops []web.Operation
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range methods {
			node, ok := doc.Paths[path][method]
			if !ok {
				continue
			}
			o := operation{Security: doc.Security}
			if err := node.Decode(&o); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			op, err := o.web(strings.ToUpper(method), path, byRole)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			ops = append(ops, op)
		}
	}
	return ops, nil
}

// web converts the operation for the request pipeline. A requirement that the pipeline cannot
// enforce is an error, so the document never promises more than is enforced.
func (o operation) web(method, path string, byRole bool) (web.Operation, error) {
	op := web.Operation{ID: o.ID, Method: method, Path: path}
	if o.ID == "" || len(o.Tags) != 1 {
		return op, fmt.Errorf("needs an operationId and exactly one tag")
	}
	op.Tag = o.Tags[0]
	// GET issues codes, ends sessions, and begins sign-ins and tests at connections.
	op.Effects = op.Tag == "authorization" || op.Tag == "federated-sign-in"
	for _, requirement := range o.Security {
		scopes, bearer := requirement["bearer"]
		_, cookie := requirement["cookie"]
		switch {
		case bearer && byRole && len(scopes) == 0:
			op.AnyScope = true
		case bearer && !byRole && op.Scope == "" && len(scopes) == 1:
			op.Scope = scopes[0]
		case bearer && op.Scope != "" && len(scopes) == 0: // any token, as the alternative
			op.Related = true
		case cookie:
			op.Cookie = true
		case bearer:
			return op, fmt.Errorf("a bearer operation needs exactly one scope, or none where roles decide")
		case len(requirement) == 0:
			op.Anonymous = true
		}
	}
	if op.Anonymous && op.Scope != "" && op.Method != "GET" || op.Cookie && op.Scope == "" {
		return op, fmt.Errorf("a cookie replaces a bearer token, and only reads may require neither")
	}
	if op.Related && (op.Anonymous || op.Cookie) {
		return op, fmt.Errorf("an alternative without a scope requires a token")
	}
	for _, p := range o.Parameters {
		op.Idempotent = op.Idempotent || p.Ref == "#/components/parameters/IdempotencyKey"
	}
	// Reads can be repeated anyway, and their responses must be current.
	if writes := strings.HasSuffix(op.Scope, ":write") || op.AnyScope && method != "GET"; writes != op.Idempotent {
		return op, fmt.Errorf("a bearer operation takes an IdempotencyKey if, and only if, it writes")
	}
	op.RateLimit, op.Streaming, op.MaxUpload, op.Enrolling, op.FormToken = o.RateLimit, o.Streaming, o.MaxUpload, o.Enrolling, o.FormToken
	if !op.RateLimit.Known() {
		return op, fmt.Errorf("unknown x-rate-limit %q", op.RateLimit)
	}
	if _, limited := o.Responses["429"]; limited != (op.RateLimit != ratelimit.None) {
		return op, fmt.Errorf("must declare a 429 response if, and only if, it is rate limited")
	}
	if (op.Streaming || op.MaxUpload > 0) && op.Scope == "" {
		return op, fmt.Errorf("streams without a required scope")
	}
	if len(o.Body.Content) > 1 {
		return op, fmt.Errorf("takes more than one media type")
	}
	for mediaType := range o.Body.Content {
		op.MediaType, op.BodyOptional = mediaType, !o.Body.Required
	}
	return op, nil
}
