package authorization

import (
	"context"
	"errors"
	"net/url"

	"stonetown/internal/jwks"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/requestobject"
)

// opened returns the parameters of a request of an application: those of its request object, if there
// is one, in the request or at its request_uri. Then the others are ignored, even those that the
// object does not have (RFC 9101 §6.3). A refusal is sent to the redirect URI outside the object if
// the application has registered that, and otherwise is a [*PageError].
func (s *Service) opened(ctx context.Context, tenant protocol.Tenant, app client.Application, given url.Values) (params url.Values, err error) {
	object, at := given.Get(requestobject.Parameter), ""
	if len(app.RequestURIs) > 0 { // otherwise the application cannot have one, as the rules say
		at = given.Get("request_uri")
	}
	if object == "" && at == "" {
		return given, nil
	}
	refuse := func(code, description string) error {
		if redirectsTo(app, given) != nil {
			return &PageError{description}
		}
		outer, _ := parse(facts{tenant: tenant, app: app, params: given})
		return outer.Refusal(code, description)
	}
	switch {
	case len(given[requestobject.Parameter]) > 1:
		return nil, refuse(string(protocol.InvalidRequest), "request is given more than once")
	case len(given["request_uri"]) > 1:
		return nil, refuse(string(protocol.InvalidRequest), "request_uri is given more than once")
	case object != "" && given.Get("request_uri") != "":
		return nil, refuse(string(protocol.InvalidRequest), "request and request_uri cannot be combined")
	case at != "" && app.State != client.Enabled:
		return nil, refuse(string(protocol.UnauthorizedClient), "the application is disabled")
	case at != "" && app.RequirePAR:
		return nil, refuse(string(protocol.InvalidRequest), "the application must push its authorization requests (RFC 9126)")
	case at != "":
		var code, description string
		if object, code, description, err = s.fetched(ctx, app, at); code != "" {
			err = refuse(code, description)
		}
		if err != nil {
			return nil, err
		}
	}
	err = s.authn.Signed(ctx, app, func(keys jwks.Set) (err error) {
		by := requestobject.Client{ID: app.ClientID, Keys: keys, Algs: app.RequestObjectAlgs(), Bounded: app.Profile == client.FAPI2}
		params, err = requestobject.Read(object, by, tenant.BaseURL, s.clock())
		return err
	})
	refusal, refused := errors.AsType[*requestobject.Refusal](err)
	switch {
	case errors.Is(err, requestobject.ErrUnsigned) && at != "":
		err = refuse(protocol.InvalidRequestObject, err.Error())
	case errors.Is(err, requestobject.ErrUnsigned):
		err = refuse(protocol.RequestNotSupported, err.Error())
	case errors.Is(err, jwks.ErrUnknown):
		err = refuse(protocol.InvalidRequestObject, "the request object is signed with a key that the client has not registered")
	case refused:
		err = refuse(protocol.InvalidRequestObject, refusal.Error())
	}
	return params, err
}
