package grants

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
	"stonetown/oauth/workload"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// jwtBearer issues a token of an application to a workload, for the token that a trusted issuer gave
// it (RFC 7523 §2.1). The client may authenticate, and does not have to: the assertion and the
// workload identities of the application decide. The token is that of client_credentials, and
// expires with the assertion at the latest; there is no refresh token (RFC 7521 §4.1).
type jwtBearer struct {
	sources
	authn   *client.Authenticator
	trusted *workload.Registry
	log     *slog.Logger

	workload workload.Workload
	until    time.Time // when the first of the relations that permit it expires; zero: never
}

func (g *jwtBearer) form(r *request) error {
	switch {
	case r.GrantAssertion == "":
		return protocol.NewError(protocol.InvalidRequest, "assertion is required")
	case r.ClientID == "": // a workload may act as several applications
		return protocol.NewError(protocol.InvalidRequest, "client_id is required")
	}
	return nil
}

func (g *jwtBearer) queue(*sqldb.Batch, *request) {}

func (g *jwtBearer) optionalAuthentication() bool { return true }

// present verifies the assertion and finds the application. All refusals of a workload that may not
// act as the client are the same, whether or not there is such a client.
func (g *jwtBearer) present(ctx context.Context, r *request) (err error) {
	if g.workload, err = g.trusted.Verify(ctx, r.tenant, r.GrantAssertion); err != nil {
		refused, ok := errors.AsType[*workload.Refusal](err)
		switch {
		case !ok:
			return err
		case refused.Signed:
			return &denial{refused.Reason, protocol.NewError(protocol.InvalidGrant, "the assertion is refused: "+refused.Reason)}
		}
		return &denial{refused.Reason, protocol.NewError(protocol.InvalidGrant, "the assertion is not valid")}
	}
	if !r.authenticated {
		if r.app, err = g.named(ctx, r.tenant, r.ClientID, client.Application{}); err != nil {
			return err
		}
	}
	reason, err := g.mayAct(ctx, r)
	switch {
	case err != nil:
		return err
	case reason != "":
		return &denial{reason, protocol.NewError(protocol.InvalidGrant, "the workload may not act as this client")}
	case r.app.State != client.Enabled:
		return &denial{"the application is disabled", protocol.NewError(protocol.UnauthorizedClient, "the application is disabled")}
	case !g.workload.Issuer.SingleUse:
		return nil
	}
	usedBefore := &denial{"its jti was used before", protocol.NewError(protocol.InvalidGrant, "the assertion is refused: its jti was used before")}
	used, err := g.authn.UseAssertion(ctx, r.tenant, &r.Credentials, g.workload.Issuer.ID, g.workload.TokenID, g.workload.Expires, func(context.Context) error { return usedBefore })
	if used {
		return usedBefore
	}
	return err
}

// mayAct decides whether the workload may act as the application; empty: it may. The application
// names the workload, and the engine has the relation.
func (g *jwtBearer) mayAct(ctx context.Context, r *request) (reason string, err error) {
	switch {
	case r.app.ClientID == "":
		return "unknown client", nil
	case !r.app.ActsForItself():
		return "the application gets no tokens without a user", nil
	}
	var questions []question
	for _, identity := range r.app.WorkloadIdentities {
		if g.workload.Is(identity) {
			o := identity.Object()
			questions = append(questions, question{
				subject: tuplestore.Subject{Type: o.Type, ID: o.ID},
				queries: []engine.Query{{Resource: tuplestore.Object{Type: schema.ApplicationType, ID: r.app.ClientID}, Action: schema.Impersonator}},
			})
		}
	}
	if len(questions) == 0 {
		return "no workload identity of the application matches", nil
	}
	answers, until, err := g.ask(ctx, r.tenant.ID, questions)
	if err != nil {
		return "", err
	}
	g.until = until
	if !slices.ContainsFunc(answers, func(allowed []bool) bool { return allowed[0] }) {
		return "the relation is missing", nil
	}
	return "", nil
}

func (g *jwtBearer) decide(ctx context.Context, r *request) (*issuance, error) {
	described, err := g.ofApplication(ctx, r)
	if err != nil {
		return nil, err
	}
	claims := described.claims
	described.claims = func(carries token.Entitlement) (token.Entitlement, token.Claims, error) {
		carries, c, err := claims(carries)
		for _, end := range []time.Time{g.workload.Expires, g.until} {
			if !end.IsZero() && (c.Expires == 0 || end.Unix() < c.Expires) {
				c.Expires = end.Unix()
			}
		}
		return carries, c, err
	}
	described.event = func(ctx context.Context, carries token.Entitlement, claims token.Claims) eventlog.Event {
		return workloadExchanged(ctx, r.app, g.workload, carries, claims)
	}
	return described, nil
}

// refused logs a refusal. It records no event, because anyone can send assertions.
func (g *jwtBearer) refused(ctx context.Context, r *request, refusal error) error {
	reason := refusal.Error()
	if d, ok := errors.AsType[*denial](refusal); ok {
		reason = d.reason
	}
	origin := eventlog.OriginOf(ctx)
	g.log.InfoContext(ctx, "workload refused", "request_id", origin.RequestID, "tenant", r.tenant.ID, "client_ip", origin.ClientIP,
		"client_id", r.app.ClientID, "trusted_issuer", g.workload.Issuer.ID, "subject", g.workload.Subject, "reason", reason)
	return nil
}
