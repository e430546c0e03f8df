package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"stonetown/api/web"
	"stonetown/controlplane"
	"stonetown/controlplane/management"
)

// TestErrors compares the responses to errors of the domain and of the shared steps.
func TestErrors(t *testing.T) {
	invalid := `[{"field":"slug","code":"invalid","message":"` + controlplane.ErrSlugInvalid.Error() + `"}]`
	for _, tc := range []struct {
		err    error
		status int
		code   string
		fields string
	}{
		{fmt.Errorf("x: %w", management.ErrOrganizationNotFound), 404, "NOT_FOUND", `[]`},
		{management.ErrTenantNotFound, 404, "NOT_FOUND", `[]`},
		{controlplane.ErrTenantNotFound, 404, "NOT_FOUND", `[]`},
		{management.ErrInvitationNotFound, 404, "NOT_FOUND", `[]`},
		{fmt.Errorf("x: %w", controlplane.ErrSlugInvalid), 400, "BAD_REQUEST", invalid},
		{controlplane.ErrSlugTaken, 409, "CONFLICT", `[]`},
		{fmt.Errorf("x: %w", &controlplane.StateError{State: controlplane.TenantSuspended}), 409, "CONFLICT", `[]`},
		{&management.ConflictError{Message: "m"}, 409, "CONFLICT", `[]`},
		{&management.ForbiddenError{Message: "m"}, 403, "FORBIDDEN", `[]`},
		{&management.FieldError{Field: "email", Code: "invalid", Message: "is no address"}, 400, "BAD_REQUEST", `[{"field":"email","code":"invalid","message":"email is no address"}]`},
		{web.RefuseImmutable(web.Member{Name: "id", Value: []byte("1")}, web.Member{Name: "slug", Value: []byte("1")}), 400, "BAD_REQUEST", `[{"field":"id","code":"immutable_field","message":"id cannot be changed"},{"field":"slug","code":"immutable_field","message":"slug cannot be changed"}]`},
		{&web.Error{Status: 400, Code: "cursor_invalid", Message: "m"}, 400, "BAD_REQUEST", `[{"field":"cursor","code":"cursor_invalid","message":"m"}]`},
		{&web.Error{Status: 400, Code: "invalid_json", Message: "m"}, 400, "BAD_REQUEST", `[{"field":"","code":"invalid_json","message":"m"}]`},
		{&web.Error{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "m"}, 405, "BAD_REQUEST", `[]`},
		{&web.Error{Status: 422, Code: "idempotency_key_reused", Message: "m"}, 422, "CONFLICT", `[]`},
		{&web.Error{Status: 401, Code: "insufficient_user_authentication", Message: "m"}, 401, "UNAUTHENTICATED", `[]`},
		{&web.Error{Status: 429, Code: "rate_limited", Message: "m"}, 429, "RATE_LIMITED", `[]`},
		{web.Unavailable("m", 1), 503, "INTERNAL_ERROR", `[]`},
	} {
		e, ok := errors.AsType[*web.Error](tc.err)
		if !ok {
			e = Errors.Translate(tc.err)
		}
		if e == nil {
			t.Errorf("%v is internal", tc.err)
			continue
		}
		status, body := Errors.Body(e, "req_1")
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		message, err := json.Marshal(e.Message)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`{"error":{"code":%q,"message":%s,"field_errors":%s},"meta":{"request_id":"req_1"}}`, tc.code, message, tc.fields)
		if status != tc.status || string(text) != want {
			t.Errorf("%v: %d %s, want %d %s", tc.err, status, text, tc.status, want)
		}
	}
	if e := Errors.Translate(errors.New("database")); e != nil {
		t.Errorf("an internal error is told to the client: %v", e)
	}
}
