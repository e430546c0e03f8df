package scim

import (
	"net/http"

	"stonetown/api/web"
	"stonetown/identity/scim"
)

// serviceProvider describes the service (RFC 7643 §5, RFC 9865 §4).
func serviceProvider(q *request) (response, error) {
	supported := map[string]any{"supported": true}
	return discovered(q, map[string]any{
		"schemas":          []string{"urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"},
		"documentationUri": q.info.Tenant.BaseURL + "/docs/scim",
		"patch":            supported,
		"bulk":             map[string]any{"supported": true, "maxOperations": scim.MaxBulk, "maxPayloadSize": web.MaxBody},
		"filter":           map[string]any{"supported": true, "maxResults": scim.MaxPage},
		"changePassword":   map[string]any{"supported": false},
		"sort":             supported,
		"etag":             supported,
		"pagination": map[string]any{
			"cursor": true, "index": true, "defaultPaginationMethod": "index", "defaultPageSize": scim.DefaultPage, "maxPageSize": scim.MaxPage,
		},
		"authenticationSchemes": []any{map[string]any{
			"type": "oauthbearertoken", "name": "OAuth 2.0", "primary": true, "specUri": "https://www.rfc-editor.org/info/rfc6750",
			"description": "An access token with the scope " + Scope + ".",
		}},
		"meta": map[string]any{"resourceType": "ServiceProviderConfig", "location": q.client.Base + "/ServiceProviderConfig"},
	})
}

// discovered returns a document of the discovery, which has no filter (RFC 7644 §4).
func discovered(q *request, body any) (response, error) {
	if q.info.Query().Has("filter") {
		return response{}, &scim.Error{Status: http.StatusForbidden, Detail: "the endpoint has no filter"}
	}
	return response{status: http.StatusOK, body: body}, nil
}

func everything(q *request, list []any) (response, error) {
	return discovered(q, map[string]any{
		"schemas": []string{scim.ListMessage}, "totalResults": len(list), "itemsPerPage": len(list), "startIndex": 1, "Resources": list,
	})
}

func schemas(q *request) (response, error) {
	var list []any
	for _, s := range scim.Schemas() {
		list = append(list, s.Document(q.client.Base))
	}
	return everything(q, list)
}

func schema(q *request) (response, error) {
	for _, s := range scim.Schemas() {
		if s.ID == q.id {
			return discovered(q, s.Document(q.client.Base))
		}
	}
	return response{}, &scim.Error{Status: http.StatusNotFound, Detail: "there is no such schema"}
}

func resourceTypes(q *request) (response, error) {
	var list []any
	for _, t := range scim.Types {
		list = append(list, t.Document(q.client.Base))
	}
	return everything(q, list)
}

func resourceType(q *request) (response, error) {
	for _, t := range scim.Types {
		if t.Name == q.id {
			return discovered(q, t.Document(q.client.Base))
		}
	}
	return response{}, &scim.Error{Status: http.StatusNotFound, Detail: "there is no such type"}
}
