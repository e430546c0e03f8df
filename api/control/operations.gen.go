// Code generated from openapi.yaml by derive. DO NOT EDIT.

package control

import "stonetown/api/web"

var operations = []web.Operation{
	{ID: "getCollection", Method: "GET", Path: "/api/v1/collection.json", Tag: "description", RateLimit: "none"},
	{ID: "acceptInvitation", Method: "POST", Path: "/api/v1/invitations/accept", Tag: "invitations", AnyScope: true, MediaType: "application/json", Idempotent: true, RateLimit: "admin"},
	{ID: "getDocumentJSON", Method: "GET", Path: "/api/v1/openapi.json", Tag: "description", RateLimit: "none"},
	{ID: "getDocumentYAML", Method: "GET", Path: "/api/v1/openapi.yaml", Tag: "description", RateLimit: "none"},
	{ID: "listOrganizations", Method: "GET", Path: "/api/v1/organizations", Tag: "organizations", AnyScope: true, RateLimit: "admin"},
	{ID: "createOrganization", Method: "POST", Path: "/api/v1/organizations", Tag: "organizations", AnyScope: true, MediaType: "application/json", Idempotent: true, RateLimit: "admin"},
	{ID: "getOrganization", Method: "GET", Path: "/api/v1/organizations/{org_id}", Tag: "organizations", AnyScope: true, RateLimit: "admin"},
	{ID: "patchOrganization", Method: "PATCH", Path: "/api/v1/organizations/{org_id}", Tag: "organizations", AnyScope: true, MediaType: "application/json", Idempotent: true, RateLimit: "admin"},
	{ID: "listEvents", Method: "GET", Path: "/api/v1/organizations/{org_id}/events", Tag: "events", AnyScope: true, RateLimit: "admin"},
	{ID: "listInvitations", Method: "GET", Path: "/api/v1/organizations/{org_id}/invitations", Tag: "invitations", AnyScope: true, RateLimit: "admin"},
	{ID: "createInvitation", Method: "POST", Path: "/api/v1/organizations/{org_id}/invitations", Tag: "invitations", AnyScope: true, MediaType: "application/json", Idempotent: true, RateLimit: "admin"},
	{ID: "getInvitation", Method: "GET", Path: "/api/v1/organizations/{org_id}/invitations/{invitation_id}", Tag: "invitations", AnyScope: true, RateLimit: "admin"},
	{ID: "deleteInvitation", Method: "DELETE", Path: "/api/v1/organizations/{org_id}/invitations/{invitation_id}", Tag: "invitations", AnyScope: true, Idempotent: true, RateLimit: "admin"},
	{ID: "resendInvitation", Method: "POST", Path: "/api/v1/organizations/{org_id}/invitations/{invitation_id}/resend", Tag: "invitations", AnyScope: true, Idempotent: true, RateLimit: "admin"},
	{ID: "listMembers", Method: "GET", Path: "/api/v1/organizations/{org_id}/members", Tag: "members", AnyScope: true, RateLimit: "admin"},
	{ID: "getMember", Method: "GET", Path: "/api/v1/organizations/{org_id}/members/{member_id}", Tag: "members", AnyScope: true, RateLimit: "admin"},
	{ID: "deleteMember", Method: "DELETE", Path: "/api/v1/organizations/{org_id}/members/{member_id}", Tag: "members", AnyScope: true, Idempotent: true, RateLimit: "admin"},
	{ID: "patchMember", Method: "PATCH", Path: "/api/v1/organizations/{org_id}/members/{member_id}", Tag: "members", AnyScope: true, MediaType: "application/json", Idempotent: true, RateLimit: "admin"},
	{ID: "listPermissions", Method: "GET", Path: "/api/v1/organizations/{org_id}/permissions", Tag: "organizations", AnyScope: true, RateLimit: "admin"},
	{ID: "listServiceAccounts", Method: "GET", Path: "/api/v1/organizations/{org_id}/service-accounts", Tag: "service-accounts", AnyScope: true, RateLimit: "admin"},
	{ID: "createServiceAccount", Method: "POST", Path: "/api/v1/organizations/{org_id}/service-accounts", Tag: "service-accounts", AnyScope: true, MediaType: "application/json", Idempotent: true, RateLimit: "admin"},
	{ID: "getServiceAccount", Method: "GET", Path: "/api/v1/organizations/{org_id}/service-accounts/{service_account_id}", Tag: "service-accounts", AnyScope: true, RateLimit: "admin"},
	{ID: "deleteServiceAccount", Method: "DELETE", Path: "/api/v1/organizations/{org_id}/service-accounts/{service_account_id}", Tag: "service-accounts", AnyScope: true, Idempotent: true, RateLimit: "admin"},
	{ID: "patchServiceAccount", Method: "PATCH", Path: "/api/v1/organizations/{org_id}/service-accounts/{service_account_id}", Tag: "service-accounts", AnyScope: true, MediaType: "application/json", Idempotent: true, RateLimit: "admin"},
	{ID: "rotateServiceAccountSecret", Method: "POST", Path: "/api/v1/organizations/{org_id}/service-accounts/{service_account_id}/rotate-secret", Tag: "service-accounts", AnyScope: true, Idempotent: true, RateLimit: "admin"},
	{ID: "listTenants", Method: "GET", Path: "/api/v1/organizations/{org_id}/tenants", Tag: "tenants", AnyScope: true, RateLimit: "admin"},
	{ID: "createTenant", Method: "POST", Path: "/api/v1/organizations/{org_id}/tenants", Tag: "tenants", AnyScope: true, MediaType: "application/json", Idempotent: true, RateLimit: "admin"},
	{ID: "getTenant", Method: "GET", Path: "/api/v1/organizations/{org_id}/tenants/{tenant_id}", Tag: "tenants", AnyScope: true, RateLimit: "admin"},
	{ID: "patchTenant", Method: "PATCH", Path: "/api/v1/organizations/{org_id}/tenants/{tenant_id}", Tag: "tenants", AnyScope: true, MediaType: "application/json", Idempotent: true, RateLimit: "admin"},
	{ID: "decommissionTenant", Method: "POST", Path: "/api/v1/organizations/{org_id}/tenants/{tenant_id}/decommission", Tag: "tenants", AnyScope: true, MediaType: "application/json", BodyOptional: true, Idempotent: true, RateLimit: "admin"},
	{ID: "openConsole", Method: "POST", Path: "/api/v1/organizations/{org_id}/tenants/{tenant_id}/open-console", Tag: "tenants", AnyScope: true, Idempotent: true, RateLimit: "admin"},
	{ID: "resumeTenant", Method: "POST", Path: "/api/v1/organizations/{org_id}/tenants/{tenant_id}/resume", Tag: "tenants", AnyScope: true, Idempotent: true, RateLimit: "admin"},
	{ID: "suspendTenant", Method: "POST", Path: "/api/v1/organizations/{org_id}/tenants/{tenant_id}/suspend", Tag: "tenants", AnyScope: true, MediaType: "application/json", BodyOptional: true, Idempotent: true, RateLimit: "admin"},
}
