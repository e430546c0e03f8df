package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"stonetown/api/web"
	"stonetown/identity/federation"
	"stonetown/identity/federation/relyingparty"
	"stonetown/identity/federation/signin"
	"stonetown/internal/document"
	"stonetown/internal/samlprotocol"
	"stonetown/oauth/protocol"
)

const (
	// signedOutPage is the page after a sign-out without another destination.
	signedOutPage = "/auth/sign-in?done=out"
	// maxDestination bounds the destination of a sign-out, in bytes. It can have an ID token.
	maxDestination = 8 << 10
)

// SAML is the part of [saml.Service] that the operations use.
type SAML interface {
	BeginLogout(ctx context.Context, t protocol.Tenant, sessionID string, end samlprotocol.Message) (first samlprotocol.Message, err error)
}

// BeginFederationLogout begins to sign the user out at the SAML applications of the session and, after
// them, at the provider at which the session began.
func (h *Handlers) BeginFederationLogout(ctx context.Context, request BeginFederationLogoutRequestObject) (BeginFederationLogoutResponseObject, error) {
	info := web.InfoOf(ctx)
	current, err := h.owner(ctx, info)
	if err != nil {
		return nil, err
	}
	next := cmp.Or(request.Body.RedirectTo, signedOutPage)
	if len(next) > maxDestination || !web.IsLocalPath(next) {
		return nil, web.ValidationFailed(web.FieldError{Field: "redirect_to", Code: "invalid", Message: "redirect_to must be a path on this host, of at most 8,192 bytes"})
	}
	begun, err := h.Federation.BeginLogout(ctx, federationTenant(info), current.ID, next)
	if err != nil {
		return nil, err
	}
	first, err := h.SAML.BeginLogout(ctx, protocol.Tenant{ID: info.Tenant.ID, BaseURL: info.Tenant.BaseURL}, current.ID, samlprotocol.Message{URL: cmp.Or(begun.URL, next), Form: begun.Form})
	if err != nil {
		return nil, err
	}
	if begun.URL != "" {
		info.SetFederationCookie(begun.State, begun.Secret, false, signin.For)
	}
	frames, err := h.Requests.LogoutFrames(ctx, protocol.Tenant{ID: info.Tenant.ID, BaseURL: info.Tenant.BaseURL}, current.ID)
	if err != nil {
		return nil, err
	}
	if first.URL != "" {
		begun.URL, begun.Form = first.URL, first.Form
	}
	body := FederationLogoutBegun{Meta: meta(info)}
	body.Data.FrontchannelLogoutUris = append([]string{}, frames...)
	body.Data.RedirectTo, body.Data.Form = document.OrNull(begun.URL), fields(begun.Form)
	return BeginFederationLogout200JSONResponse{Body: body}, nil
}

// VisitFinishFederationLogoutResponse implements [FinishFederationLogoutResponseObject].
func (to toProvider) VisitFinishFederationLogoutResponse(w http.ResponseWriter) error {
	return to.VisitStartFederationResponse(w)
}

// FinishFederationLogout redirects a browser that comes back from a sign-out at a provider.
func (h *Handlers) FinishFederationLogout(ctx context.Context, request FinishFederationLogoutRequestObject) (FinishFederationLogoutResponseObject, error) {
	info := web.InfoOf(ctx)
	secret, _ := info.TakeFederationCookie(request.Params.State)
	next, err := h.Federation.FinishLogout(ctx, info.Tenant.ID, request.Slug, request.Params.State, secret)
	if errors.Is(err, signin.ErrExpired) {
		next, err = signedOutPage, nil
	}
	return toProvider{URL: next}, err
}

// VisitReceiveSAMLLogoutQueryResponse implements [ReceiveSAMLLogoutQueryResponseObject].
func (to toProvider) VisitReceiveSAMLLogoutQueryResponse(w http.ResponseWriter) error {
	return to.VisitStartFederationResponse(w)
}

// VisitReceiveSAMLLogoutFormResponse implements [ReceiveSAMLLogoutFormResponseObject].
func (to toProvider) VisitReceiveSAMLLogoutFormResponse(w http.ResponseWriter) error {
	return to.VisitStartFederationResponse(w)
}

// ReceiveSAMLLogoutQuery receives a message of single logout by the redirect binding.
func (h *Handlers) ReceiveSAMLLogoutQuery(ctx context.Context, request ReceiveSAMLLogoutQueryRequestObject) (ReceiveSAMLLogoutQueryResponseObject, error) {
	return h.singleLogout(ctx, request.Slug, signin.LogoutMessage{Query: web.InfoOf(ctx).RawQuery})
}

// ReceiveSAMLLogoutForm receives a message of single logout by the POST binding.
func (h *Handlers) ReceiveSAMLLogoutForm(ctx context.Context, request ReceiveSAMLLogoutFormRequestObject) (ReceiveSAMLLogoutFormResponseObject, error) {
	form, err := readForm(request.Body, maxSAMLForm)
	if err != nil {
		return nil, err
	}
	return h.singleLogout(ctx, request.Slug, signin.LogoutMessage{Form: form})
}

// singleLogout answers a request of an identity provider. After its answer to a request of this side,
// the browser continues as after other providers: the cookies are not sent with a form of another site,
// but with the request to which it is redirected.
func (h *Handlers) singleLogout(ctx context.Context, slug string, m signin.LogoutMessage) (toProvider, error) {
	begun, err := h.Federation.SingleLogout(ctx, federationTenant(web.InfoOf(ctx)), slug, m)
	if err == nil && begun.URL == "" {
		begun.URL = "/federation/" + url.PathEscape(slug) + "/logged-out?state=" + url.QueryEscape(begun.State)
	}
	return toProvider(begun), err
}

// The bounds of the body of a request with a logout token, and with a SAML message, in bytes.
const (
	maxLogoutForm = 128 << 10
	maxSAMLForm   = 512 << 10
)

// readForm reads the form of a request of an identity provider.
func readForm(body io.Reader, most int64) (url.Values, error) {
	text, err := io.ReadAll(io.LimitReader(body, most+1))
	if err != nil {
		return nil, web.BodyError(err)
	}
	if int64(len(text)) > most {
		return nil, &web.Error{Status: http.StatusRequestEntityTooLarge, Code: "payload_too_large", Message: fmt.Sprintf("the form must have at most %d KiB", most>>10)}
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		return nil, &web.Error{Status: http.StatusBadRequest, Code: "validation_failed", Message: "the body is not a valid form"}
	}
	return form, nil
}

// ReceiveLogoutToken ends the sessions that a logout token names. Its errors are those of OAuth
// (Back-Channel Logout 1.0 §2.8).
func (h *Handlers) ReceiveLogoutToken(ctx context.Context, request ReceiveLogoutTokenRequestObject) (ReceiveLogoutTokenResponseObject, error) {
	invalid := func(message string) error {
		return &web.Error{Status: http.StatusBadRequest, Code: string(protocol.InvalidRequest), Message: message}
	}
	form, err := readForm(request.Body, maxLogoutForm)
	if err != nil || len(form["logout_token"]) != 1 {
		return nil, invalid("the body must be a form of at most 128 KiB with one logout_token")
	}
	err = h.Federation.EndByToken(ctx, web.InfoOf(ctx).Tenant.ID, request.Slug, form.Get("logout_token"))
	failed, ok := errors.AsType[*signin.Failure](err)
	switch {
	case ok && failed.Reason == string(relyingparty.Stale):
		err = invalid("the logout token was used before")
	case ok && (failed.Reason == string(relyingparty.Unavailable) || failed.Reason == string(relyingparty.Unreachable)):
		err = invalid("the logout token cannot be verified: the keys of the provider cannot be read")
	case ok:
		err = invalid("the logout token is not valid")
	case errors.Is(err, federation.ErrNotFound):
		err = &web.Error{Status: http.StatusNotFound, Code: "connection_not_found", Message: federation.ErrNotFound.Error()}
	}
	return ReceiveLogoutToken200Response{Headers: ReceiveLogoutToken200ResponseHeaders{CacheControl: "no-store"}}, err
}
